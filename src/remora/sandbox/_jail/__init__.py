"""The program that isolates another one, and supervises it until it ends.

It starts once per command, so it imports little. A plan says what to do:

- `mode`: `namespaces` (create them), `bubblewrap` (already started inside), `bare` (no isolation, only supervision)
- `root`, `over`, `hide`, `view`: the project, the folder of changed files, paths to hide, and whether the project is
  seen as a `copy` or an `overlay`
- `read`, `links`, `inside`: other readable paths (from, to), links to create, and readable paths inside the project
- `argv`, `env`, `limits`, `artifacts`: the program, its resources and the files to return
- `cgroup`: the descriptor through which this process enters the command's cgroup, or none
- `status`: the descriptor of a file that receives the report, one line for each fact: `returncode N`, `limit TEXT`,
  `problem TEXT`, `view TEXT`, and `artifact SIZE NAME` followed by that many bytes
"""

from __future__ import annotations

import errno
import marshal
import os
import stat
import sys

from . import _linux as linux
from . import _walls as walls
from ._root import build_root, enter_namespaces
from ._view import copy_changed, copy_view
from ._watch import KILL, end_descendants, watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OUT = "/run/remora"
SOURCE = "/run/remora-source"
MAX_ARTIFACT = 8 * 1024 * 1024
"""Total bytes of the files that a program may return."""
MAX_DESCRIPTOR = 1 << 20
FAILED = 126
"""Exit status if the program could not be started."""


def main(argv: list[str]) -> None:
    """Run the plan, then exit."""
    plan = marshal.loads(bytes.fromhex("".join(argv)))  # noqa: S302 - from our own parent
    linux.prctl(linux.PR_SET_PDEATHSIG, KILL)
    if os.getppid() not in (plan["parent"], 0):
        os._exit(FAILED)
    try:
        _enter_cgroup(plan["cgroup"])
        _MODES[plan["mode"]](plan)
    except OSError as error:
        _report(plan, {"problem": str(error.strerror or error)})
        os._exit(FAILED)
    os._exit(0)


def _enter_cgroup(door: int | None) -> None:
    """Move this process into the command's cgroup. Children inherit it."""
    if door is not None:
        try:
            os.write(door, b"0")
        except OSError as error:
            raise OSError(error.errno, f"cannot enter the cgroup: {error.strerror}") from None
        os.close(door)


def _in_namespaces(plan: dict[str, Any]) -> None:
    if not walls.landlock_version():
        raise OSError(errno.ENOSYS, "this kernel has no Landlock")
    plan["of_root"] = os.getuid() == 0
    enter_namespaces()
    inside = os.fork()
    if inside:
        os.waitpid(inside, 0)
        return
    linux.prctl(linux.PR_SET_PDEATHSIG, KILL)
    build_root(plan)
    _run(plan, everyone=True)


def _in_bubblewrap(plan: dict[str, Any]) -> None:
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    over = f"{SOURCE}/over" if plan["over"] else None
    if plan["view"] == "copy":
        copy_view(f"{SOURCE}/base", over, plan["root"], plan["hide"])
    else:
        copy_changed(over, plan["root"])
    _run(plan, everyone=True)


def _bare(plan: dict[str, Any]) -> None:
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    _run(plan, everyone=False)
    end_descendants(os.getpid())


_MODES = {"namespaces": _in_namespaces, "bubblewrap": _in_bubblewrap, "bare": _bare}


def _run(plan: dict[str, Any], *, everyone: bool) -> None:
    """Run the program and report how it ended.

    Remaining processes die with this one, the first of its pid namespace.
    """
    child = os.fork()
    if child == 0:
        _exec_program(plan)
    result = watch(child, plan["limits"], plan["areas"], everyone=everyone)
    _report(plan, {"view": plan["view"], **result})
    if "returncode" in result:
        room = MAX_ARTIFACT
        for name, path in plan["artifacts"].items():
            data = _artifact(path, room)
            if data is not None:
                room -= len(data)
                _write(plan["status"], f"artifact {len(data)} {name}\n".encode() + data)


def _exec_program(plan: dict[str, Any]) -> None:
    """Apply all restrictions and execute the program. Never returns."""
    try:
        os.chdir(plan["cwd"])
        os.closerange(3, MAX_DESCRIPTOR)
        walls.set_limits(plan["limits"], own_users=plan["mode"] != "bare")
        if plan["mode"] != "bare":
            if walls.landlock_version():
                walls.restrict_files(plan["may_read"], plan["may_write"])
            walls.restrict_calls()
        os.execve(plan["argv"][0], plan["argv"], plan["env"])  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"{plan['argv'][0]} could not be started: {error}\n")
        sys.stderr.flush()
    os._exit(FAILED)


def _artifact(path: str, room: int) -> bytes | None:
    """The content of a returned file, if it is a regular file within the limit.

    The program may have put anything there.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        facts = os.fstat(file)
        plain = stat.S_ISREG(facts.st_mode) and facts.st_size <= room
        return os.read(file, room) if plain else None
    finally:
        os.close(file)


def _report(plan: dict[str, Any], facts: dict[str, Any]) -> None:
    for name, fact in facts.items():
        text = str(fact).replace("\n", " ")
        _write(plan["status"], f"{name} {text}\n".encode())


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
