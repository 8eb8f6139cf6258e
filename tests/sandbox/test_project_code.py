"""pytest over a project as a workspace has it, in every sandbox that works here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import remora.sandbox
from remora.errors import ToolFailed, ToolLimitExceeded
from remora.sandbox import Limits, LocalSpawner
from remora.sandbox._plan import LOADER, Command, encode, make_plan, read_outcome
from remora.sandbox._probe import SandboxReport
from remora.sandbox._python import Interpreter, find_python
from sandbox.boxes import KINDS, NONE, alive, any_box, box, no_plugins

QUIET = ["pytest", "-q", "--no-header", "-p", "no:cacheprovider"]


def tree(root: Path) -> dict[str, bytes | str]:
    """Everything below `root`, as it is on the disk."""
    found: dict[str, bytes | str] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        found[name] = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else "folder"
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "a project, with odd 'characters'"
    (root / "tests").mkdir(parents=True)
    (root / "value.py").write_text("VALUE = 'the project has this'\n")
    (root / "tests" / "test_value.py").write_text(
        "import value\n\ndef test_value():\n    assert value.VALUE == 'the agent wrote this'\n"
    )
    (root / "pytest.ini").write_text(no_plugins())
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("token = canary\n")
    return root


@pytest.fixture
def over(project: Path) -> Path:
    folder = project / ".agentfs" / "workspaces" / "01AGENT"
    (folder / "tests").mkdir(parents=True)
    (folder / "value.py").write_text("VALUE = 'the agent wrote this'\n")
    (folder / "tests" / "test_new.py").write_text("def test_new():\n    assert True\n")
    return folder


@pytest.mark.parametrize("kind", KINDS)
async def test_tests_see_the_workspaces_files_and_write_none_of_the_users(kind: str, project: Path, over: Path) -> None:
    (project / "tests" / "test_write.py").write_text(
        "from pathlib import Path\n"
        "def test_write(tmp_path):\n"
        "    Path('value.py').write_text('overwritten')\n"
        "    Path('new').write_text('x')\n"
        "    (tmp_path / 'x').write_text('x')\n"
        "    (Path.home() / 'x').write_text('x')\n"
        "    assert Path('value.py').read_text() == 'overwritten'\n"
        "    assert not list(Path('.git').iterdir()) if Path('.git').exists() else True\n"
        "    assert not list(Path('.agentfs').iterdir()) if Path('.agentfs').exists() else True\n"
    )
    before = tree(project)
    done = await LocalSpawner(report=box(kind)).run(QUIET, cwd=project, over=over)
    assert (done.returncode, done.sandbox) == (0, kind), done.stdout.decode() + done.stderr.decode()
    assert b"3 passed" in done.stdout
    assert tree(project) == before


async def test_without_the_workspace_the_projects_own_files_are_tested(project: Path) -> None:
    done = await LocalSpawner(report=any_box()).run([*QUIET, "tests/test_value.py"], cwd=project)
    assert done.returncode == 1
    assert b"the project has this" in done.stdout


@pytest.mark.parametrize("kind", KINDS)
async def test_the_report_comes_back_as_an_artifact(kind: str, project: Path, over: Path) -> None:
    argv = [*QUIET, "--junitxml=report.xml", "tests/test_new.py::test_new"]
    done = await LocalSpawner(report=box(kind)).run(argv, cwd=project, over=over)
    assert b'tests="1"' in done.artifacts["report.xml"]
    assert done.argv[-2:] == ("--junitxml=report.xml", "./tests/test_new.py::test_new")


@pytest.mark.parametrize("what", ["os.symlink('/etc/passwd', p)", "os.mkfifo(p)", "os.mkdir(p)"])
async def test_a_report_that_is_no_plain_file_is_not_taken(what: str, project: Path) -> None:
    (project / "conftest.py").write_text(
        "import os\n\ndef pytest_unconfigure():\n"
        "    p = '/run/remora/report.xml'\n"
        "    os.path.lexists(p) and os.unlink(p)\n"
        f"    {what}\n"
    )
    argv = [*QUIET, "--junitxml=report.xml", "tests"]
    done = await LocalSpawner(report=any_box()).run(argv, cwd=project)
    assert done.returncode == 1
    assert done.artifacts == {}


async def test_without_a_sandbox_project_code_is_refused_and_the_way_to_one_is_told(project: Path) -> None:
    (project / "conftest.py").write_text("open('ran', 'w')\n")
    with pytest.raises(ToolFailed, match="no sandbox works here") as refused:
        await LocalSpawner(report=NONE).run(QUIET, cwd=project)
    assert "apt install bubblewrap" in refused.value.message
    assert not (project / "ran").exists()


async def test_without_a_sandbox_ruff_still_looks(project: Path) -> None:
    done = await LocalSpawner(report=NONE).run(["ruff", "check"], cwd=project, stdin=b"import os\n")
    assert b"F401" in done.stdout
    assert done.sandbox == ""


async def test_what_the_user_allows_without_a_sandbox_says_so_and_works_on_a_copy(project: Path, over: Path) -> None:
    (project / "conftest.py").write_text("open('ran', 'w')\n")
    before = tree(project)
    spawner = LocalSpawner(report=NONE, allow_unsandboxed=True)
    done = await spawner.run([*QUIET, "--junitxml=r.xml"], cwd=project, over=over)
    assert (done.returncode, done.sandbox) == (0, "none"), done.stdout.decode() + done.stderr.decode()
    assert b'tests="2"' in done.artifacts["r.xml"]
    assert tree(project) == before


async def test_a_daemon_of_tests_without_a_sandbox_dies_with_them(project: Path, tmp_path: Path) -> None:
    (project / "conftest.py").write_text(
        "import subprocess\n"
        f"subprocess.Popen(['sh', '-c', 'echo $$ > {tmp_path}/daemon; sleep 600'], start_new_session=True)\n"
        f"while not (lambda p: p.exists() and p.read_text())(__import__('pathlib').Path('{tmp_path}/daemon')): pass\n"
    )
    spawner = LocalSpawner(report=NONE, allow_unsandboxed=True)
    await spawner.run([*QUIET, "tests/test_value.py"], cwd=project)
    assert not alive(int((tmp_path / "daemon").read_text()))


async def test_a_sandbox_that_fails_is_told_and_never_replaced_by_less(project: Path, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho no namespaces today >&2\nexit 1\n")
    broken.chmod(0o755)
    (project / "conftest.py").write_text("open('ran', 'w')\n")
    with pytest.raises(ToolFailed, match="could not be set up: no namespaces today"):
        await LocalSpawner(report=SandboxReport(broken, ""), allow_unsandboxed=True).run(QUIET, cwd=project)
    assert not (project / "ran").exists()


async def test_the_private_area_has_a_size(project: Path) -> None:
    (project / "conftest.py").write_text(
        "import errno\n"
        "try:\n"
        "    for n in range(100):\n"
        "        open(f'/tmp/{n}', 'wb').write(b'x' * 1_000_000)\n"
        "except OSError as error:\n"
        "    print('stopped by', errno.errorcode[error.errno])\n"
    )
    limits = Limits(disk=16 * 1024 * 1024)
    try:
        done = await LocalSpawner(report=any_box(), limits=limits).run([*QUIET, "-s", "tests"], cwd=project)
        assert b"stopped by ENOSPC" in done.stdout
    except ToolLimitExceeded as stopped:
        assert "16 MB of files" in stopped.message


def make_venv(root: Path) -> Path:
    venv = root / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    site = next(venv.glob("lib/python3.*/site-packages"))
    (site / "pytest").mkdir()
    (site / "pytest" / "__init__.py").write_text("")
    (site / "pytest" / "__main__.py").write_text("import sys; print('the venv runs', sys.prefix)\n")
    return venv


@pytest.mark.parametrize("kind", KINDS)
async def test_the_projects_own_virtual_environment_runs_the_tests(kind: str, project: Path) -> None:
    venv = make_venv(project)
    done = await LocalSpawner(report=box(kind)).run(QUIET, cwd=project)
    assert done.stdout.decode() == f"the venv runs {venv}\n", done.stderr.decode()


@pytest.mark.parametrize("target", ["/bin/sh", "{home}/bin/tool", "/nonexistent/bin/python"])
def test_a_virtual_environment_cannot_name_what_is_shown(
    target: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hostile one leads to a program in the user's home, so that the home would be shown as its installation."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").write_text("")
    (tmp_path / "lib" / "python3.11").mkdir(parents=True)
    (tmp_path / "lib" / "python3.11" / "os.py").write_text("")
    venv = make_venv(project)
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to(target.format(home=tmp_path))
    (venv / "pyvenv.cfg").write_text(f"home = {tmp_path}/bin\n")
    try:
        found = find_python(project.resolve())
    except ToolFailed as refused:
        assert "not a Python installation" in refused.message
    else:
        assert found.reads == found.links == ()


def test_a_virtual_environment_that_is_a_link_is_not_taken(project: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    venv = make_venv(tmp_path / "elsewhere")
    (project / ".venv").symlink_to(venv)
    assert find_python(project.resolve()).path == Path(sys.executable)


def test_no_pytest_at_all_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remora.sandbox._python.find_spec", lambda name: None)
    with pytest.raises(ToolFailed, match="`pytest` is not installed") as refused:
        find_python(project)
    assert "pip install pytest" in str(refused.value.hint)


async def test_a_path_may_hold_what_separates_paths(project: Path, over: Path) -> None:
    odd = project.rename(project.parent / "with: a colon, and \\ more")
    done = await LocalSpawner(report=any_box()).run(QUIET, cwd=odd, over=odd / over.relative_to(project))
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_has_the_sandbox_too() -> None:
    """Root may make namespaces where others may not, and some limits do not count for it."""
    any_box()
    python = Path("/usr/bin/python3")
    if not python.exists():
        pytest.skip("no Python here that another user may start")
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as status:
        package = Path(folder, "_jail")
        shutil.copytree(Path(remora.sandbox.__file__).parent / "_jail", package)
        os.chmod(folder, 0o755)  # noqa: S103
        order = Command(package, None, Interpreter(Path("/bin/true")), (), {}, Limits())
        plan = {**make_plan(order, "namespaces", status.fileno()), "argv": ["/usr/bin/id", "-u"]}
        argv = [str(python), "-I", "-S", "-c", LOADER, folder, *encode(plan)]
        done = subprocess.run(argv, capture_output=True, pass_fds=(status.fileno(),), check=False, **nobody)
        status.seek(0)
        facts = read_outcome(status.read()).facts
    if "problem" in facts:
        pytest.skip(f"an ordinary user may not: {facts['problem']}")
    assert (done.stdout, facts) == (b"1000\n", {"view": "overlay", "returncode": "0"})
