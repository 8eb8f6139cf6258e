from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from remora.errors import ToolError, ToolFailed, ToolLimitExceeded
from remora.sandbox import LocalSpawner, probe
from remora.sandbox._allow import check_arguments, find_program
from sandbox.boxes import alive

CHECK = ["ruff", "check", "--output-format", "json", "--no-cache", "--stdin-filename", "a.py", "-"]
CANARY = "sk-canary-8f2b77"


async def test_ruff_runs_on_what_it_is_given(tmp_path: Path) -> None:
    done = await LocalSpawner().run(CHECK, cwd=tmp_path, stdin=b"import os\n")
    assert done.returncode == 1
    assert b"F401" in done.stdout
    assert list(tmp_path.iterdir()) == []


INJECTIONS: list[list[str]] = [
    [],
    [""],
    ["sh", "-c", "id"],
    ["/bin/sh"],
    ["./ruff", "check"],
    ["../ruff", "check"],
    ["ruff; id", "check"],
    ["ruff\0", "check"],
    ["RUFF", "check"],
    ["python", "-c", "1"],
    ["ruff"],
    ["ruff", "format"],
    ["ruff", "clean"],
    ["ruff", "server"],
    ["ruff", "rule", "--all"],
    ["ruff", "rule", "F401", "--config=ruff.toml"],
    ["ruff", "linter"],
    ["ruff", "--version"],
    ["ruff", "@args"],
    ["ruff", "--config", "x", "check"],
    *(
        ["ruff", "check", *extra]
        for extra in (
            ["--fix"],
            ["--fix-only"],
            ["--unsafe-fixes"],
            ["--diff"],
            ["--watch"],
            ["-w"],
            ["--add-noqa"],
            ["--add-noqa=x"],
            ["--output-file", "x"],
            ["--output-file=x"],
            ["-o", "x"],
            ["-ox"],
            ["--config", "evil.toml"],
            ["--config=lint.select=['ALL']"],
            ["--cache-dir", "/tmp/x"],
            ["--cache-dir=/tmp/x"],
            ["--show-settings"],
            ["--show-files"],
            ["--statistics"],
            ["--preview"],
            ["--exclude", "x"],
            ["--extension", "py:ipynb"],
            ["--target-version=main"],
            ["@args"],
            ["."],
            ["/etc"],
            ["a.py"],
            ["--", "a.py"],
            ["--output-format", "sarif"],
            ["--output-format=json --fix"],
            ["--output-format"],
            ["--output-format="],
            ["--select", "--fix"],
            ["--select", "ALL;id"],
            ["--select", "$(id)"],
            ["--select=@args"],
            ["--stdin-filename", "../x.py"],
            ["--stdin-filename", "/etc/x.py"],
            ["--stdin-filename", "a/../../x.py"],
            ["--stdin-filename", ""],
            ["--stdin-filename", "a\nb.py"],
            ["--stdin-filename", "a\0b.py"],
            ["--stdin-filename", "a" * 5000],
            ["--no-cache=x"],
            ["--no-cach"],
            ["--isolated "],
            [" -"],
            ["-", "--fix"],
            ["--\ud800"],
        )
    ),
]


INJECTIONS += [
    ["pytest", *extra]
    for extra in (
        ["-p", "evil"],
        ["-pevil"],
        ["-p=evil"],
        ["-p"],
        ["-p", "no:cacheprovider,evil"],
        ["-p", "no:terminal"],
        ["-c", "evil.ini"],
        ["-cevil.ini"],
        ["--config-file=evil.ini"],
        ["--rootdir=/"],
        ["--rootdir", "/etc"],
        ["--basetemp=."],
        ["--basetemp", "/tmp/x"],
        ["-o", "addopts=-pevil"],
        ["-ox=y"],
        ["--override-ini=x=y"],
        ["--confcutdir=/"],
        ["--pyargs", "os"],
        ["--import-mode=importlib"],
        ["--pdb"],
        ["--pdbcls=evil:Evil"],
        ["--trace"],
        ["--debug=x"],
        ["--log-file=x"],
        ["--pastebin=all"],
        ["--junitxml=../x.xml"],
        ["--junitxml=/tmp/x.xml"],
        ["--junitxml", "-x.xml"],
        ["--junitxml=a/b.xml"],
        ["--junitxml="],
        ["--junit-xml=x.xml"],
        ["--junitxml=.."],
        ["--junit-prefix=x"],
        ["--cache-clear"],
        ["--deselect=x"],
        ["--ignore=x"],
        ["--lf"],
        ["-n", "99"],
        ["--tb=evil"],
        ["--tb", "--pdb"],
        ["--maxfail=-1"],
        ["--maxfail=1e9"],
        ["--color=yes"],
        ["-k"],
        ["-k", ""],
        ["-k", "a\nb"],
        ["-k", "a\0b"],
        ["-kx"],
        ["-m", "a\x1b[0m"],
        ["-qp", "evil"],
        ["-xpevil"],
        ["--", "-p"],
        ["-"],
        ["/etc/passwd"],
        ["../x"],
        ["tests/../../x"],
        ["tests/../../x::test"],
        ["::test"],
        ["a\0.py"],
        ["a\n.py"],
        ["\ud800.py"],
        ["a" * 5000],
        ["--version"],
        ["--fixtures"],
        ["--setup-only"],
        [""],
    )
]


@pytest.mark.parametrize("argv", INJECTIONS, ids=lambda argv: ascii(" ".join(argv))[:60])
async def test_an_argument_outside_the_table_is_refused(argv: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\n")
    (tmp_path / "args").write_text("--version\n")
    with pytest.raises(ToolFailed, match="not allowed"):
        await LocalSpawner().run(argv, cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "args"]
    assert (tmp_path / "a.py").read_text() == "import os\n"


def test_how_many_injections_were_tried(record_property: Callable[[str, object], None]) -> None:
    assert len(INJECTIONS) >= 60
    record_property("row 21", f"{len(INJECTIONS)} payloads refused by name, 0 with an effect")


@pytest.mark.parametrize("name", ["@args", "@args/x.py", "@args::test_a"])
def test_a_test_path_stays_a_path(name: str) -> None:
    assert check_arguments(["pytest", name]) == [f"./{name}"]


def test_a_value_of_pytest_stays_in_its_word() -> None:
    argv = ["pytest", "-k", "--pdb", "-m", "-p evil", "--tb", "short", "-p", "no:cacheprovider"]
    assert check_arguments(argv) == ["-k=--pdb", "-m=-p evil", "--tb=short", "-pno:cacheprovider"]


@pytest.mark.parametrize("name", ["@args", "-x.py", "--fix", "a b.py", "$(id).py", "é.py"])
async def test_a_file_may_have_any_name_and_it_stays_a_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "args").write_text("--version\n")
    assert f"--stdin-filename={name}" in check_arguments(["ruff", "check", "--stdin-filename", name])
    done = await LocalSpawner().run([*CHECK[:-2], name, "-"], cwd=tmp_path, stdin=b"import os\n")
    assert b'"code"' in done.stdout


async def test_a_projects_own_settings_cannot_make_ruff_write(tmp_path: Path) -> None:
    (tmp_path / "ruff.toml").write_text('fix = true\nunsafe-fixes = true\ncache-dir = "cache"\n')
    (tmp_path / "a.py").write_text("import os\n")
    done = await LocalSpawner().run(CHECK, cwd=tmp_path, stdin=b"import os\n")
    assert b'"F401"' in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "ruff.toml"]
    assert (tmp_path / "a.py").read_text() == "import os\n"


def test_a_program_of_the_project_or_of_path_is_never_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ruff", "ruff.py"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tmp_path not in find_program("ruff").parents


async def test_no_key_of_ours_is_in_a_childs_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    program = "import os; print(sorted(os.environ.items())); print(open('/proc/self/environ').read())"
    done = await LocalSpawner().execute(
        [sys.executable, "-I", "-c", program], cwd=tmp_path, stdin=b"", limit_s=20
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert CANARY.encode() not in done.stdout + done.stderr
    assert b"OPENAI" not in done.stdout


async def test_a_child_past_its_time_is_killed_with_its_children(tmp_path: Path) -> None:
    program = "sleep 600 & echo $! > child; echo $$ > parent; wait"
    with pytest.raises(ToolLimitExceeded, match=r"0\.5 s"):
        await LocalSpawner().execute(["/bin/sh", "-c", program], cwd=tmp_path, stdin=b"", limit_s=0.5)
    for name in ("child", "parent"):
        assert not alive(int((tmp_path / name).read_text()))


async def test_endless_output_is_stopped_at_its_limit(tmp_path: Path) -> None:
    spawner = LocalSpawner(max_output=1024 * 1024)
    with pytest.raises(ToolLimitExceeded, match="1 MB of output"):
        await spawner.execute(["/bin/sh", "-c", "yes; yes >&2"], cwd=tmp_path, stdin=b"", limit_s=60)


async def _cancelled_once_begun(program: str, folder: Path) -> None:
    """The program was cancelled after it had written into the pipe `begun`."""
    os.mkfifo(folder / "begun")
    running = asyncio.ensure_future(
        LocalSpawner().execute(["/bin/sh", "-c", program], cwd=folder, stdin=b"", limit_s=600)
    )
    await asyncio.to_thread((folder / "begun").read_text)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_cancelling_kills_the_child(tmp_path: Path) -> None:
    await _cancelled_once_begun("echo $$ > parent; echo > begun; sleep 600", tmp_path)
    assert not alive(int((tmp_path / "parent").read_text()))


async def test_cancelling_while_the_child_starts_kills_its_children_too(tmp_path: Path) -> None:
    program = "sleep 600 & echo $! > child; wait"
    for ticks in range(12):
        running = asyncio.ensure_future(
            LocalSpawner().execute(["/bin/sh", "-c", program], cwd=tmp_path, stdin=b"", limit_s=600)
        )
        for _ in range(ticks):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        child = tmp_path / "child"
        assert not child.exists() or not child.read_text().strip() or not alive(int(child.read_text()))


async def test_a_child_that_reads_nothing_is_no_error(tmp_path: Path) -> None:
    done = await LocalSpawner().execute(["/bin/true"], cwd=tmp_path, stdin=b"x" * 5_000_000, limit_s=20)
    assert done.returncode == 0


async def test_what_cannot_start_is_a_tool_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="could not be started"):
        await LocalSpawner().execute(["/nonexistent/x"], cwd=tmp_path, stdin=b"", limit_s=1)


def test_the_probe_tells_what_applies() -> None:
    report = probe()
    assert report.applies in ("bubblewrap", "landlock", "none")
    assert (report.applies == "bubblewrap") == (not report.bwrap_problem)
    assert (report.applies == "none") == bool(report.bwrap_problem and report.own_problem)


async def test_a_daemon_that_left_the_group_dies_too(tmp_path: Path) -> None:
    await _cancelled_once_begun("setsid sh -c 'echo $$ > daemon; echo > begun; sleep 600' & sleep 600", tmp_path)
    assert not alive(int((tmp_path / "daemon").read_text()))


async def test_no_one_is_orphaned_while_the_others_are_killed(tmp_path: Path) -> None:
    # The child ends as soon as the youngest of its many children does, which is found first.
    program = (
        "setsid sh -c 'echo $$ > daemon; sleep 600' & while [ ! -s daemon ]; do :; done; "
        "for i in $(seq 40); do sleep 600 & done; last=$!; echo > begun; wait $last"
    )
    await _cancelled_once_begun(program, tmp_path)
    assert not alive(int((tmp_path / "daemon").read_text()))
