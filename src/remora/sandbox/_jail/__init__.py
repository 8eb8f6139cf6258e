"""The program that shuts another one in, and stays with it until the end.

It is started for every command, so it imports little. A plan says what to do:

- `mode`: `namespaces` (it makes them itself), `bubblewrap` (it was started inside), `bare` (no walls, only the watch)
- `root`, `over`, `hide`, `view`: the project, the folder of changed files, what is not to be seen of it, and whether
  it is a `copy` or an `overlay`
- `read`, `links`, `inside`: what else can be read (from, to), links to make, and readable paths inside the project
- `argv`, `env`, `limits`, `artifacts`: the program, and what it may use and leave
- `cgroup`: the descriptor through which this process enters the command's cgroup, or none
- `status`: the descriptor of a file that takes the result, a line for each fact: `returncode N`, `limit TEXT`,
  `problem TEXT`, `view TEXT`, and `artifact SIZE NAME` with so many bytes after it
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
"""Bytes of all that a program may leave, together."""
MAX_DESCRIPTOR = 1 << 20
FAILED = 126
"""The exit status of a program that could not be started."""


def main(argv: list[str]) -> None:
    """Carry out the plan and end with it."""
    plan = marshal.loads(bytes.fromhex("".join(argv)))  # noqa: S302 - from our own parent
    linux.prctl(linux.PR_SET_PDEATHSIG, KILL)
    if os.getppid() not in (plan["parent"], 0):
        os._exit(FAILED)
    try:
        _enter_cgroup(plan["cgroup"])
        _MODES[plan["mode"]](plan)
    except OSError as error:
        _tell(plan, {"problem": str(error.strerror or error)})
        os._exit(FAILED)
    os._exit(0)


def _enter_cgroup(door: int | None) -> None:
    """This process, and all that it starts, count in the command's cgroup."""
    if door is not None:
        try:
            os.write(door, b"0")
        except OSError as error:
            raise OSError(error.errno, f"the cgroup cannot be entered: {error.strerror}") from None
        os.close(door)


def _in_namespaces(plan: dict[str, Any]) -> None:
    if not walls.landlock_version():
        raise OSError(errno.ENOSYS, "Landlock is not in this kernel")
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
    """The program ran and its end is told. Whoever it left behind dies with this process, its namespace's first."""
    child = os.fork()
    if child == 0:
        _become(plan)
    result = watch(child, plan["limits"], plan["areas"], everyone=everyone)
    _tell(plan, {"view": plan["view"], **result})
    if "returncode" in result:
        room = MAX_ARTIFACT
        for name, path in plan["artifacts"].items():
            data = _artifact(path, room)
            if data is not None:
                room -= len(data)
                _write(plan["status"], f"artifact {len(data)} {name}\n".encode() + data)


def _become(plan: dict[str, Any]) -> None:
    """This process is the program, behind all walls. It never returns."""
    try:
        os.chdir(plan["cwd"])
        os.closerange(3, MAX_DESCRIPTOR)
        walls.set_limits(plan["limits"], own_users=plan["mode"] != "bare")
        if plan["mode"] != "bare":
            if walls.landlock_version():
                walls.shut_files(plan["may_read"], plan["may_write"])
            walls.shut_calls()
        os.execve(plan["argv"][0], plan["argv"], plan["env"])  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"{plan['argv'][0]} could not be started: {error}\n")
        sys.stderr.flush()
    os._exit(FAILED)


def _artifact(path: str, room: int) -> bytes | None:
    """What the program left there, if it is a plain file of a sensible size. It may have put anything there."""
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


def _tell(plan: dict[str, Any], facts: dict[str, Any]) -> None:
    for name, fact in facts.items():
        text = str(fact).replace("\n", " ")
        _write(plan["status"], f"{name} {text}\n".encode())


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
