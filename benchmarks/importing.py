"""How fast logs of other agents are read and imported, and how much memory that takes.

    python -m benchmarks.importing [--megabytes 40]

Writes a session like Claude Code's: replies with a call each, results of about 4 KB, and the copy of every result that
such logs hold. Prints megabytes a second of processor time, the best of several rounds, for

- reading the log as an import does,
- the floor: reading it, then writing its records with their digests and nothing else, in one batch for 64 records,
- an import without packets, and an import with the prompts of packets,

and the most memory that the process held.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from remora.analysis.logs import AssistantTurn, Conversation, LogFile, LogProblem, read_log
from remora.app import open_project
from remora.app._import_track import BATCH

NOW = "2026-11-17T12:00:00.000000Z"
RESULT_LINES = 80
ROUNDS = 5
SESSION = "00000000-0000-4000-8000-000000000001"


def write_session(path: Path, size: int) -> None:
    """Write a session of about `size` bytes."""
    dice = random.Random(7)
    words = [
        f"{a}{b}" for a in ("read", "load", "parse", "index", "cache") for b in ("_file", "_line", "er", "ing", "")
    ]
    turn, written = 0, 0
    with path.open("w", encoding="utf-8") as log:
        written += log.write(_line("user", {"role": "user", "content": "Make the importer faster"}) + "\n")
        while written < size:
            turn += 1
            call = {"type": "tool_use", "id": f"toolu_{turn}", "name": "Read", "input": {"file_path": f"/w/f{turn}.py"}}
            texts = [{"type": "text", "text": f"I read file {turn}."}, call]
            reply = {"id": f"msg_{turn}", "role": "assistant", "model": "m", "content": texts}
            lines = [f"{n:>6}\t{' '.join(dice.choices(words, k=6))}" for n in range(RESULT_LINES)]
            content = "\n".join(lines)
            result = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": content}
            written += log.write(_line("assistant", reply) + "\n")
            copy = {"type": "text", "file": {"content": content}}
            written += log.write(_line("user", {"role": "user", "content": [result]}, toolUseResult=copy) + "\n")


def _line(kind: str, message: dict[str, object], **more: object) -> str:
    around = {"type": kind, "sessionId": SESSION, "isSidechain": False, "cwd": "/w", "version": "2.0.0", "uuid": "u"}
    return json.dumps({**around, "message": message, **more})


def read(path: Path) -> None:
    """Read a log from end to end, twice as an import does: once to check it, once for its steps."""
    with path.open("rb") as stream:
        for found in read_log(LogFile(path.name, stream)):
            if isinstance(found, LogProblem):
                raise found
            for _ in found.steps():
                pass


def read_and_write(path: Path) -> None:
    """What parsing and writing alone take: no event is built, nothing is summarized, redacted or folded."""
    prev, seq, lines = None, 0, []
    with path.open("rb") as stream, tempfile.TemporaryFile() as out:
        for found in read_log(LogFile(path.name, stream)):
            if isinstance(found, LogProblem):
                raise found
            for record in _records(found):
                line = orjson.dumps({"v": 1, "seq": seq, "ts": NOW, "agent_id": "a", **record, "prev": prev})
                prev, seq = f"sha256:{hashlib.sha256(line).hexdigest()}", seq + 1
                lines.append(line)
                if len(lines) == BATCH:
                    os.write(out.fileno(), b"\n".join(lines) + b"\n")
                    lines = []
        os.write(out.fileno(), b"\n".join(lines))
        os.fdatasync(out.fileno())


def _records(found: Conversation) -> Iterator[dict[str, Any]]:
    turns = (step for step in found.steps() if isinstance(step, AssistantTurn))
    for turn, step in enumerate(turns, 1):
        calls = [{"call_id": call.call_id, "tool": call.tool, "args": call.args} for call in step.calls]
        yield {"type": "turn_start", "turn": turn, "data": {}}
        yield {"type": "model_response", "turn": turn, "data": {"text": step.text, "calls": calls}}
        for index, call in enumerate(calls):
            yield {"type": "tool_call", "turn": turn, "data": call}
            yield {"type": "tool_result", "turn": turn, "data": {**call, "raw": step.results.get(index)}}


def imported(path: Path, *, packets: bool) -> None:
    """Import a log into an empty project."""
    with tempfile.TemporaryDirectory() as folder:
        done = asyncio.run(open_project(Path(folder)).streams.import_chats([path], packets=packets))
        if done.problems:
            raise SystemExit(done.problems[0])


def measure(name: str, work: Callable[[], None], size: int) -> None:
    """Print the megabytes a second of processor time."""
    spent = min(_spent(work) for _ in range(ROUNDS))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name:<28} {size / 1e6 / spent:7.1f} MB/s   {spent:6.1f} s   peak {peak:5.0f} MB", flush=True)


def _spent(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=float, default=40)
    wanted = options.parse_args().megabytes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{SESSION}.jsonl"
        write_session(path, int(wanted * 1e6))
        size = path.stat().st_size
        print(f"a session of {size / 1e6:.0f} MB")
        measure("read", lambda: read(path), size)
        measure("floor: read and write", lambda: read_and_write(path), size)
        measure("import without packets", lambda: imported(path, packets=False), size)
        small = Path(folder) / "small" / f"{SESSION}.jsonl"
        small.parent.mkdir()
        write_session(small, size // 10)
        measure("import with packets (1/10)", lambda: imported(small, packets=True), small.stat().st_size)


if __name__ == "__main__":
    main()
