"""The daemon, a real process over real files: nothing is missed, nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from watchfiles._rust_notify import WatchfilesRustInternalError

from hub.conftest import FILES, until, write
from hub.test_index import same
from remora.errors import HubError
from remora.hub import HubClient, start_daemon, status, stop_daemon
from remora.hub._daemon import Daemon as Watcher
from remora.hub._lock import WriterLock

TAKE = "shop/stock.py:take"
Daemon = Callable[[], int]


def is_there(pid: int) -> bool:
    """Whether the process runs still."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def shows(client: HubClient, node: str, text: str) -> bool:
    """Whether the index, and not only a reader for itself, has this in the node's facts."""
    pulled = client.facts([node])
    return text in str(pulled.facts.get(node, "")) and pulled.freshness.get(node) == "index"


def test_a_saved_file_is_in_the_index_at_once(running: Path) -> None:
    client = HubClient(running, running / ".agentfs")
    for number in range(5):
        write(running, {"shop/stock.py": f'def take():\n    """Number {number}."""\n'})
        until(lambda number=number: shows(client, TAKE, f"Number {number}."))


def test_files_made_right_after_their_folder_are_not_missed(running: Path) -> None:
    client = HubClient(running, running / ".agentfs")
    for number in range(50):
        write(running, {f"new{number}/deep/a.py": "def f(): ...\n"})
    until(lambda: all(shows(client, f"new{number}/deep/a.py:f", "def f()") for number in range(50)))


def test_renames_moves_and_deletions_are_followed(running: Path, tmp_path: Path) -> None:
    state = running / ".agentfs"
    write(running, {"one/a.py": "def f(): ...\n", "one/b/c.py": "", "gone/d.py": ""})
    until(lambda: {"one/a.py", "one/b/c.py", "gone/d.py"} <= files_of(state))
    (running / "one/a.py").rename(running / "one/renamed.py")
    (running / "one").rename(running / "two")
    shutil.rmtree(running / "gone")
    write(running, {"two/new/x.py": "def f(): ...\n"})
    moved = {"two/renamed.py", "two/b/c.py", "two/new/x.py"}
    until(lambda: {path for path in files_of(state) if path.startswith(("one", "two", "gone"))} == moved)
    assert same(running, state, tmp_path)


def files_of(state: Path) -> set[str]:
    from remora.kv import KVFile

    kv = KVFile(state / "hub.db", durable=False)
    try:
        return {row.key.removeprefix("file:") for row in kv.scan("file:")}
    finally:
        kv.close()


def test_what_git_ignores_comes_in_and_goes_out_with_the_rule(running: Path) -> None:
    write(running, {".gitignore": "tests/\n"})
    until(lambda: "tests/test_cart.py" not in files_of(running / ".agentfs"))
    write(running, {".gitignore": ""})
    until(lambda: "tests/test_cart.py" in files_of(running / ".agentfs"))


async def test_there_is_one_daemon_and_it_ends_when_told(project: Path, state: Path, daemon: Daemon) -> None:
    pid = daemon()
    with pytest.raises(HubError, match=f"running already: process {pid}"):
        start_daemon(project, state)
    found = await status(state)
    assert (found.daemon, found.pid, found.index, found.files) == ("running", pid, "ready", len(FILES))
    assert stop_daemon(state) == pid
    assert stop_daemon(state) is None
    until(lambda: not is_there(pid))
    assert (await status(state)).daemon == "none"


async def test_of_many_that_are_started_at_once_one_runs(project: Path, state: Path, daemon: Daemon) -> None:
    outcomes: list[object] = []

    def start() -> None:
        try:
            outcomes.append(start_daemon(project, state).pid)
        except HubError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    running = [each for each in outcomes if isinstance(each, int)]
    assert len(running) == 1
    assert (await status(state)).pid == running[0]


async def test_a_killed_daemon_leaves_an_index_that_is_whole(
    project: Path, state: Path, daemon: Daemon, tmp_path: Path
) -> None:
    for number in range(2):
        pid = daemon()
        write(project, {f"burst/{n}.py": f"def f{number}(): ...\n" for n in range(40)})
        os.kill(pid, signal.SIGKILL)
        until(lambda: WriterLock(state).holder() is None)
        pulled = await HubClient(project, state).pull([f"burst/{n}.py:f{number}" for n in range(10)])
        assert len(pulled.facts) == 10
    daemon()
    assert same(project, state, tmp_path)


async def test_beside_a_stopped_daemon_readers_see_the_files_and_write_nothing(
    project: Path, state: Path, daemon: Daemon
) -> None:
    pid = daemon()
    client = HubClient(project, state)
    os.kill(pid, signal.SIGSTOP)
    before = (state / "hub.db").read_bytes(), {path.name for path in state.iterdir()}
    write(project, {"shop/stock.py": 'def take():\n    """Anew."""\n'})
    pulled = await asyncio.wait_for(client.pull([TAKE]), 5)
    assert pulled.facts[TAKE]["doc"] == "Anew."
    assert pulled.freshness[TAKE] == "workspace"
    assert ((state / "hub.db").read_bytes(), {path.name for path in state.iterdir()}) == before
    assert stop_daemon(state) == pid
    until(lambda: not is_there(pid))


def test_a_damaged_index_is_made_anew_while_it_is_used(
    project: Path, state: Path, daemon: Daemon, tmp_path: Path
) -> None:
    daemon()
    client = HubClient(project, state)
    with (state / "hub.db").open("r+b") as file:
        file.write(bytes(8192))
    write(project, {"shop/stock.py": 'def take():\n    """Anew."""\n'})
    assert client.facts([TAKE]).facts[TAKE]["doc"] == "Anew."
    until(lambda: shows(client, TAKE, "Anew."))
    until(lambda: same(project, state, tmp_path))


def test_a_deleted_index_is_made_anew(project: Path, state: Path, daemon: Daemon, tmp_path: Path) -> None:
    daemon()
    for name in ("hub.db", "hub.db-wal", "hub.db-shm"):
        (state / name).unlink(missing_ok=True)
    until(lambda: files_of(state) == set(FILES))
    assert same(project, state, tmp_path)


def test_it_ends_by_itself_when_its_project_is_gone(project: Path, daemon: Daemon) -> None:
    pid = daemon()
    shutil.rmtree(project)
    until(lambda: not is_there(pid))


def test_edits_while_others_read_are_never_seen_half(running: Path) -> None:
    stop = threading.Event()

    def edit() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            text = f"def take():\n    one_{number}()\n\n\ndef one_{number}():\n    take()\n"
            place = running / "shop/stock.new"
            place.write_text(text)
            place.replace(running / "shop/stock.py")

    writer = threading.Thread(target=edit)
    writer.start()
    try:
        client = HubClient(running, running / ".agentfs")
        until(lambda: "one_" in (running / "shop/stock.py").read_text())
        for _ in range(60):
            facts = client.facts([TAKE]).facts[TAKE]
            (callee,) = facts["calls"]
            assert callee in facts["callers"]
            assert facts["calls"][callee] == f"def {callee.rpartition(':')[2]}()"
    finally:
        stop.set()
        writer.join()


def test_changed_rules_and_storms_make_it_look_at_all_files(
    project: Path, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.mkdir()
    watcher = Watcher(project, state)
    watcher._sweep()
    write(project, {".gitignore": "tests/\n"})
    watcher._update({str(project / ".gitignore")})
    assert "tests/test_cart.py" not in files_of(state)
    monkeypatch.setattr("remora.hub._daemon.MAX_SINGLE_UPDATES", 3)
    write(project, {"untold.py": ""})
    watcher._update({str(project / f"told{number}.py") for number in range(5)})
    assert "untold.py" in files_of(state)


def test_a_watch_that_breaks_is_set_up_anew_and_all_files_are_looked_at(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks() -> Iterator[set[tuple[int, str]]]:
        yield {(1, "before")}
        raise WatchfilesRustInternalError("error in underlying watcher: No such file or directory")

    watches = iter([breaks(), iter([{(1, "after")}])])
    monkeypatch.setattr("watchfiles.watch", lambda *_, **__: next(watches))
    state.mkdir()
    watcher = Watcher(project, state)
    watcher._sweep()
    assert watcher._next_sweep > 0
    assert list(watcher._batches()) == [{(1, "before")}, {(1, "after")}]
    assert watcher._next_sweep == 0


@pytest.mark.faults
def test_a_branch_switch_of_a_thousand_files_is_followed(
    project: Path, state: Path, daemon: Daemon, tmp_path: Path
) -> None:
    def branch(name: str) -> None:
        shutil.rmtree(project / "tree", ignore_errors=True)
        text = f"from tree.d0.f0 import main_{name}\n\n\ndef main_{name}():\n    main_{name}()\n"
        write(project, {f"tree/d{n % 50}/f{n}.py": text + f"# {n}\n" for n in range(1000)})

    branch("old")
    daemon()
    for name in ("new", "other"):
        branch(name)
        client = HubClient(project, state)
        until(lambda name=name, client=client: shows(client, f"tree/d49/f999.py:main_{name}", "def"), 60)
        until(lambda: same(project, state, tmp_path), 120)


@pytest.mark.faults
def test_kills_at_random_moments_leave_the_old_records_or_the_new(
    project: Path, state: Path, daemon: Daemon, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    import random

    rnd = random.Random(33)
    for number in range(40):
        pid = daemon()
        timer = threading.Timer(rnd.random() * 0.3, os.kill, (pid, signal.SIGKILL))
        timer.start()
        while is_there(pid):
            write(project, {f"burst/{rnd.randrange(60)}.py": f"def f{number}():\n    f{number}()\n"})
        until(lambda: WriterLock(state).holder() is None)
        nodes = [f"burst/{n}.py:f{k}" for n in range(8) for k in range(number + 1)]
        for node, facts in HubClient(project, state).facts(nodes[:16]).facts.items():
            path, _, name = node.partition(":")
            assert f"def {name}()" in (project / path).read_text()
            assert facts["signature"] == f"def {name}()"
    daemon()
    assert same(project, state, tmp_path)
