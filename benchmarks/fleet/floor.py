"""What the same server does for `pgbench`: bare inserts of lines of the same size, without streams, epochs or chains.

The floor for our writers. `streams`: one connection that inserts 16 rows a transaction. `processes`: 16 connections
that insert one row each.
"""

from __future__ import annotations

import re
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.fleet.appends import RAW, cpu_below
from remora.events import ToolResultEvent, encode

WRITERS = 16
_TABLE = """
DROP SCHEMA IF EXISTS floor CASCADE;
CREATE SCHEMA floor;
CREATE SEQUENCE floor.numbers;
CREATE TABLE floor.records (stream bigint, seq bigint, epoch bigint, line bytea NOT NULL, PRIMARY KEY (stream, seq));
ALTER TABLE floor.records ALTER COLUMN line SET STORAGE MAIN;
"""
_ROW = "(:client_id, nextval('floor.numbers'), 1, :line)"


def measure(binaries: Path, url: str, server: int, seconds: int) -> list[dict[str, Any]]:
    """One row for each kind of writer."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_TABLE)
    return [
        _row(binaries, url, server, seconds, *each) for each in (("streams", 1, WRITERS), ("processes", WRITERS, 1))
    ]


def _row(binaries: Path, url: str, server: int, seconds: int, kind: str, clients: int, rows: int) -> dict[str, Any]:
    line = ToolResultEvent(call_id="c1", tool="run_linter", outcome="success", raw=RAW)
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(f"INSERT INTO floor.records VALUES {', '.join([_ROW] * rows)};\n")
        script.flush()
        command: list[Any] = [binaries / "pgbench", "-n", "-M", "prepared", "-c", clients, "-T", seconds]
        command += ["-D", f"line={encode(line).decode()}", "-f", script.name, "-d", url]
        before, database = _children_cpu(), cpu_below(server)
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    found = re.search(r"actually processed: (\d+)", done.stdout)
    rate = re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)
    assert found and rate, done.stdout
    events = int(found[1]) * rows
    row: dict[str, Any] = {"store": "pgbench", "writers": WRITERS, "as": kind, "batch": 1, "events": events}
    row |= {"events_s": round(float(rate[1]) * rows), "writer_us": round(1e6 * (_children_cpu() - before) / events)}
    return row | {"server_us": round(1e6 * (cpu_below(server) - database) / events)}


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
