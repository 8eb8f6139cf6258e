"""Memory that a test holds in the kernel counts against its limit; what tests ordinarily use goes on working."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.kernel_memory import PRELUDE, SOCKETS
from remora.errors import ToolLimitExceeded
from remora.sandbox import Limits, LocalSpawner
from remora.sandbox._cgroup import Cgroup, find_place
from sandbox.boxes import KINDS, box, no_plugins

MB = 1024 * 1024
ARGV = ["pytest", "-q", "-s", "--no-header", "-p", "no:cacheprovider"]

ORDINARY = """
import asyncio, multiprocessing, os, socket, sqlite3, subprocess, sys, threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

def square(x):
    return x * x

def test_socket_pairs():
    pairs = [socket.socketpair() for _ in range(100)]
    pairs[0][0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    pairs[0][0].setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    pairs[0][0].sendall(b'x' * 1000)
    assert pairs[0][1].recv(1000) == b'x' * 1000

def test_servers():
    async def main():
        async def answer(reader, writer):
            writer.write(await reader.readline())
            writer.close()
        server = await asyncio.start_server(answer, '127.0.0.1', 0)
        async def ask():
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b'hello\\n')
            assert await reader.readline() == b'hello\\n'
            writer.close()
        await asyncio.gather(*(ask() for _ in range(60)))
        server.close()
    asyncio.run(main())

def test_large_transfer():
    at = socket.create_server(('127.0.0.1', 0))
    def send():
        with socket.create_connection(at.getsockname()) as one:
            one.sendall(b'x' * 20_000_000)
    thread = threading.Thread(target=send)
    thread.start()
    one, _ = at.accept()
    got = 0
    while data := one.recv(1 << 20):
        got += len(data)
    thread.join()
    assert got == 20_000_000

def test_processes():
    with ProcessPoolExecutor(2) as pool:
        assert list(pool.map(square, range(10))) == [x * x for x in range(10)]
    with ThreadPoolExecutor(100) as pool:
        assert list(pool.map(square, range(200)))[-1] == 199 * 199
    queue = multiprocessing.Queue()
    child = multiprocessing.Process(target=queue.put, args=(b'x' * 1_000_000,))
    child.start()
    assert len(queue.get()) == 1_000_000
    child.join()
    assert subprocess.run('echo a | cat | tr a b', shell=True, capture_output=True).stdout == b'b\\n'

def test_many_files(tmp_path):
    files = [(tmp_path / str(n)).open('w') for n in range(900)]
    database = sqlite3.connect(tmp_path / 'db')
    database.execute('create table a (b)')
    assert len(files) == 900
"""


def project(root: Path, attack: str) -> Path:
    (root / "pytest.ini").write_text(no_plugins())
    (root / "attack.py").write_text(f"{PRELUDE}{attack}\ntime.sleep(600)\n")
    (root / "conftest.py").write_text("import subprocess, sys\nsubprocess.run([sys.executable, 'attack.py'])\n")
    return root


@pytest.mark.parametrize("kind", KINDS)
async def test_filled_socket_pairs_are_stopped_at_the_memory_limit(kind: str, tmp_path: Path) -> None:
    spawner = LocalSpawner(report=box(kind), limits=Limits(memory=128 * MB))
    with pytest.raises(ToolLimitExceeded, match="128 MB of memory"):
        await spawner.run(ARGV, cwd=project(tmp_path, SOCKETS["socket pairs"]), limit_s=120)


@pytest.mark.parametrize("kind", KINDS)
async def test_what_tests_ordinarily_use_works(kind: str, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(no_plugins())
    (tmp_path / "test_ordinary.py").write_text(ORDINARY)
    done = await LocalSpawner(report=box(kind)).run(ARGV, cwd=tmp_path, limit_s=120)
    assert b"5 passed" in done.stdout, done.stdout.decode() + done.stderr.decode()


def test_a_cgroup_is_used_or_it_is_told_why_not() -> None:
    place, problem = find_place()
    assert (place is None) == bool(problem)


async def test_in_a_cgroup_the_kernel_ends_a_command_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    report = box("landlock")
    if report.cgroup is None:
        pytest.skip(f"no cgroup can be had here: {report.cgroup_problem}")
    before = set(report.cgroup.iterdir())
    # Where the watch would see nothing: memory that a closed socket's receiver holds counts nothing below 256 sockets.
    attack = "for _ in range(100):\n    a, b = socket.socketpair(); fill(a); fill(b); kept.append((a, b))\n"
    spawner = LocalSpawner(report=report, limits=Limits(memory=48 * MB))
    with pytest.raises(ToolLimitExceeded, match="48 MB of memory"):
        await spawner.run(ARGV, cwd=project(tmp_path, attack), limit_s=120)
    assert set(report.cgroup.iterdir()) == before


def test_a_cgroup_that_cannot_be_made_leaves_no_folder(tmp_path: Path) -> None:
    """On a file system that is none of cgroups: the folder is made, and its files are not there to be read."""
    (tmp_path / "a").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        Cgroup(tmp_path / "a", Limits())
