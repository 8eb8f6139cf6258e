"""Builds a private root for a program: the system to read, the project to work on, and nothing else.

Everything writable is in one tmpfs of a fixed size, which disappears with the last process.
"""

from __future__ import annotations

import _socket
import ctypes
import errno
import os
import struct

from . import _linux as linux
from ._view import copy_changed, copy_view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ALL_NAMESPACES = (
    linux.NEW_USER | linux.NEW_NS | linux.NEW_NET | linux.NEW_PID | linux.NEW_IPC | linux.NEW_UTS | linux.NEW_CGROUP
)
INSIDE_ID = 1000
"""User and group id inside. Not 0, so that executing a program drops every privilege."""
FIRST_PID = 300
"""The kernel uses lower pids only once in a pid namespace."""
_UP_AND_RUNNING, _SET_FLAGS = 0x41, 0x8914
DEVICES = ("null", "zero", "full", "random", "urandom")


def enter_namespaces() -> None:
    """Give this process private user, mount, network and other namespaces. The next child starts the pid namespace."""
    user, group = os.getuid(), os.getgid()
    linux.call("unshare", ALL_NAMESPACES)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{INSIDE_ID} {user} 1")
    _write("/proc/self/gid_map", f"{INSIDE_ID} {group} 1")


def build_root(plan: dict[str, Any]) -> None:
    """Make `/` the program's private root. The previous root becomes unreachable."""
    linux.mount(None, "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("stage", "/tmp", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=16m,mode=755")  # noqa: S108
    os.makedirs("/tmp/old")  # noqa: S108
    linux.pivot_root("/tmp", "/tmp/old")  # noqa: S108
    os.chdir("/")
    _mount_private(plan["limits"]["disk"])
    _mount_system(plan)
    _mount_proc(plan["limits"]["processes"], of_root=plan["of_root"])
    _mount_devices()
    _mount_project(plan)
    _enable_loopback()
    os.chdir("/new")
    linux.pivot_root(".", ".")
    linux.call("umount2", b".", linux.MNT_DETACH)
    os.chdir("/")
    linux.make_read_only("/", deep=False)


def _mount_private(size: int) -> None:
    os.makedirs("/new")
    linux.mount("root", "/new", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=16m,mode=755")
    os.makedirs("/area")
    options = f"size={size},nr_inodes=200000,mode=755"
    linux.mount("area", "/area", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)
    for name, path in (("tmp", "tmp"), ("vartmp", "var/tmp"), ("home", "home/somebody"), ("out", "run/remora")):
        os.makedirs(f"/area/{name}")
        os.makedirs(f"/new/{path}", exist_ok=True)
        linux.bind(f"/area/{name}", f"/new/{path}", read_only=False)


def _mount_system(plan: dict[str, Any]) -> None:
    for path, target in plan["links"]:
        _make_parents(f"/new{path}")
        if not os.path.lexists(f"/new{path}"):
            os.symlink(target, f"/new{path}")
    for source, path in plan["read"]:
        show(f"/old{source}", f"/new{path}")


def show(source: str, target: str) -> None:
    """Make `source` readable at `target`."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        _make_parents(target)
        _touch(target)
    linux.bind(source, target)


def _mount_proc(processes: int, *, of_root: bool) -> None:
    os.makedirs("/new/proc")
    linux.mount("proc", "/new/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    _write("/new/proc/sys/user/max_user_namespaces", "0")
    try:
        _write("/new/proc/sys/kernel/pid_max", str(FIRST_PID + processes))
    except OSError:
        # Before Linux 6.14 `pid_max` is global. RLIMIT_NPROC still applies, but not to root.
        if of_root:
            raise OSError(errno.EPERM, "cannot limit the processes of root before Linux 6.14") from None


def _mount_devices() -> None:
    os.makedirs("/new/dev/pts")
    for name in DEVICES:
        _touch(f"/new/dev/{name}")
        linux.mount(f"/old/dev/{name}", f"/new/dev/{name}", None, linux.MS_BIND)
    linux.mount("devpts", "/new/dev/pts", "devpts", linux.MS_NOSUID | linux.MS_NOEXEC, "newinstance,ptmxmode=0666")
    os.symlink("pts/ptmx", "/new/dev/ptmx")
    os.symlink("/proc/self/fd", "/new/dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"/new/dev/{name}")
    os.makedirs("/area/shm")
    os.makedirs("/new/dev/shm")
    linux.bind("/area/shm", "/new/dev/shm", read_only=False)


def _mount_project(plan: dict[str, Any]) -> None:
    root = plan["root"]
    os.makedirs(f"/new{root}", exist_ok=True)
    # A fixed name: the project's path may contain characters that mount options cannot.
    os.makedirs("/base")
    linux.bind(f"/old{root}", "/base")
    over = f"/old{plan['over']}" if plan["over"] else None
    plan["view"] = "overlay" if _mount_overlay(over, f"/new{root}") else "copy"
    if plan["view"] == "copy":
        os.makedirs("/area/copy")
        copy_view("/base", over, "/area/copy", plan["hide"])
        linux.bind("/area/copy", f"/new{root}", read_only=False)
        for path in plan["inside"]:
            show(f"/old{path}", f"/new{path}")
    _touch("/empty")
    for name in plan["hide"]:
        _hide(f"/new{root}", name)


def _mount_overlay(over: str | None, target: str) -> bool:
    """Mount the project at `target` as an overlay with the changed files. Returns False if that fails.

    The changed files are copied: their folder is inside the project, and overlay layers may not contain each other.
    Some file systems cannot be a layer at all.
    """
    os.makedirs("/area/upper")
    os.makedirs("/area/work")
    copy_changed(over, "/area/upper")
    options = "lowerdir=/base,upperdir=/area/upper,workdir=/area/work,userxattr"
    try:
        linux.mount("project", target, "overlay", linux.MS_NOSUID | linux.MS_NODEV, options)
    except OSError:
        return False
    return True


def _hide(root: str, name: str) -> None:
    """Hide a path. A link is left alone: its target is not in this root."""
    path = root
    for part in name.split("/"):
        path = f"{path}/{part}"
        if os.path.islink(path) or not os.path.lexists(path):
            return
    if os.path.isdir(path):
        linux.mount("hidden", path, "tmpfs", linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV, "size=4k,mode=555")
    else:
        linux.bind("/empty", path)


def _enable_loopback() -> None:
    """Enable `127.0.0.1` inside. The namespace has no other network device."""
    door = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    request = ctypes.create_string_buffer(struct.pack("16sH22x", b"lo", _UP_AND_RUNNING))
    linux.call("ioctl", door.fileno(), ctypes.c_ulong(_SET_FLAGS), request)
    door.close()


def _make_parents(path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)


def _touch(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
