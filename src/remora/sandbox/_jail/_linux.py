"""System calls that Python does not offer. Each raises `OSError` naming the call that failed."""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
MNT_DETACH = 2
NEW_USER, NEW_NS, NEW_NET, NEW_PID = 0x10000000, 0x00020000, 0x40000000, 0x20000000
NEW_IPC, NEW_UTS, NEW_CGROUP = 0x08000000, 0x04000000, 0x02000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 36, 38
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_SETATTR = 442
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *args: Any) -> int:
    """Call a libc function."""
    result = int(getattr(_libc, name)(*args))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def syscall(number: int, *args: Any, name: str) -> int:
    """Make a system call that libc has no function for."""
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in args]
    result = int(_libc.syscall(ctypes.c_long(number), *words))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return result


def prctl(option: int, value: int) -> None:
    """Set a property of this process."""
    call("prctl", option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))


def mount(source: str | None, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    """Mount at `target`."""
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    try:
        call("mount", *words, ctypes.c_ulong(flags), None if data is None else os.fsencode(data))
    except OSError as error:
        raise OSError(error.errno, f"mount {kind or 'bind'} at {target}: {os.strerror(error.errno or 0)}") from None


def bind(source: str, target: str, *, read_only: bool = True) -> None:
    """Bind-mount `source`, with everything mounted below it, at `target`."""
    mount(source, target, None, MS_BIND | MS_REC)
    if read_only:
        make_read_only(target, deep=True)


def make_read_only(target: str, *, deep: bool) -> None:
    """Make a mount read-only, without devices or set-user-id programs."""
    attributes = (ctypes.c_uint64 * 4)(_ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, 0, 0, 0)
    flags = _AT_RECURSIVE if deep else 0
    syscall(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), flags, attributes, 32, name="mount_setattr")


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root of this process. The old root is then at `old`."""
    syscall(_PIVOT_ROOT[os.uname().machine], os.fsencode(new), os.fsencode(old), name="pivot_root")
