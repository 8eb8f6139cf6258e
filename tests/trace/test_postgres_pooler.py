"""The Postgres store behind PgBouncer, where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from postgres import Server, free_port
from remora.app import make_store
from remora.errors import ConfigError, TraceLocked
from remora.events import NoticeEvent
from remora.trace import PostgresTrace

BOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
pytestmark = pytest.mark.skipif(BOUNCER is None, reason="row 34: pgbouncer is not installed")
SETTINGS = """[databases]
* = user=owner host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = any
pool_mode = {mode}
unix_socket_dir =
"""


@contextmanager
def pooled(server: Server, mode: str) -> Iterator[str]:
    """The URL of a new store behind a pooler."""
    import psycopg

    port, url = free_port(), server.new_url()
    settings = server.folder / f"pgbouncer-{port}.ini"
    settings.write_text(SETTINGS.format(server=server.port, port=port, mode=mode))
    settings.chmod(0o644)
    user: dict[str, Any] = server._as_user() if os.geteuid() == 0 else {}
    process = subprocess.Popen([str(BOUNCER), "-q", settings], stderr=subprocess.DEVNULL, **user)
    try:
        through = url.replace(f":{server.port}/", f":{port}/")
        end = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(through.partition("?")[0]).close()
                break
            except psycopg.OperationalError:
                assert time.monotonic() < end, "pgbouncer does not answer"
        yield through
    finally:
        process.terminate()
        process.wait()


async def test_a_pooler_in_session_mode_is_as_the_server_itself(postgres: Server, clock: Any) -> None:
    with pooled(postgres, "session") as url:
        make_store(url)
        async with PostgresTrace(url, clock=clock) as first, PostgresTrace(url, clock=clock) as second:
            await first.append("traces/01TEST", [NoticeEvent(message="a")])
            with pytest.raises(TraceLocked):
                await second.append("traces/01TEST", [NoticeEvent(message="b")])
            (event,) = await first.append("traces/01TEST", [NoticeEvent(message="c")])
    assert event.seq == 1


async def test_a_pooler_in_transaction_mode_is_refused_before_anything_is_written(postgres: Server, clock: Any) -> None:
    with pooled(postgres, "transaction") as url:
        make_store(url)
        for _ in range(5):
            async with PostgresTrace(url, clock=clock) as trace:
                with pytest.raises(ConfigError) as refused:
                    await trace.append("traces/01TEST", [NoticeEvent(message="a")])
                assert "pool_mode = session" in str(refused.value.hint)
