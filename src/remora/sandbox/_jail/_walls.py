"""Restrictions that a process applies before it executes the program: files by Landlock, system calls by seccomp.

Both are a second line of defence behind the namespaces. seccomp also blocks what namespaces leave open: sockets to the
virtual machine's host (`AF_VSOCK`), the kernel's key rings, and memory that no limit counts.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct

from . import _linux as linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""Number of file access rights in each Landlock version. Later versions have as many as version 5."""
_FILE_RIGHTS = _EXECUTE | 1 << 1 | _READ_FILE | 1 << 14 | 1 << 15
_SCOPES = 0b11
"""Scopes since version 6: abstract sockets and signals cannot leave the sandbox."""


def landlock_version() -> int:
    """The kernel's Landlock version; 0 for none."""
    try:
        return linux.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION, name="landlock_create_ruleset")
    except OSError:
        return 0


def restrict_files(read: Iterable[str], write: Iterable[str]) -> None:
    """Restrict files with Landlock: `read` paths can be read and executed, `write` paths also changed."""
    version = landlock_version()
    every = (1 << _RIGHTS.get(version, 16)) - 1
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = (ctypes.c_uint64 * 3)(every, 0, _SCOPES if version >= 6 else 0)
    ruleset = linux.syscall(_CREATE_RULESET, rules, size, 0, name="landlock_create_ruleset")
    for path in read:
        _allow(ruleset, path, _EXECUTE | _READ_FILE | _READ_DIR)
    for path in write:
        _allow(ruleset, path, every & ~(_MAKE_CHAR | _MAKE_BLOCK))
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.syscall(_RESTRICT_SELF, ruleset, 0, name="landlock_restrict_self")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):
        rights &= _FILE_RIGHTS
    rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, folder))
    linux.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0, name="landlock_add_rule")
    os.close(folder)


_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_REFUSED: dict[str, Sequence[int]] = {
    # keyctl add_key request_key bpf perf_event_open userfaultfd memfd_create shmget mount umount2 pivot_root
    # unshare setns, then those with one number everywhere: io_uring_*, memfd_secret, clone3, the new mount calls.
    "x86_64": (250, 248, 249, 321, 298, 323, 319, 29, 165, 166, 155, 272, 308, *(68, 64, 275, 276, 278, 300)),
    "aarch64": (219, 217, 218, 280, 241, 282, 279, 194, 40, 39, 41, 97, 268, *(186, 190, 76, 77, 75, 262)),
    # The second group allocates memory that no limit counts: msgget semget splice tee vmsplice fanotify_init.
}
_REFUSED_EVERYWHERE = (425, 426, 427, 447, 435, 428, 429, 430, 431, 432, 433, 442, 444, 445, 446)
_CLONE = {"x86_64": 56, "aarch64": 220}
_SOCKET = {"x86_64": 41, "aarch64": 198}
_SET_OPTION = {"x86_64": 54, "aarch64": 208}
_SOCKET_LEVEL, _BUFFER_SIZES = 1, (7, 8)
"""`SO_SNDBUF` and `SO_RCVBUF`: how much kernel memory a socket may use."""
OPEN_FILES, SIGNALS = 4096, 4096
"""Most open files per process, and most pending signals of all processes."""
_FAMILIES = (1, 2, 10, 16)
"""Allowed socket families: Unix, IPv4, IPv6 and netlink. All are confined to a network namespace."""
_X32 = 0x40000000
_ENOSYS, _EPERM, _EAFNOSUPPORT = 38, 1, 97
_KILL, _ERRNO, _PASS = 0x80000000, 0x00050000, 0x7FFF0000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _FIRST, _SECOND, _THIRD = 0, 4, 16, 24, 32
"""Offsets of the call number, the architecture and the arguments in the filter's input."""


def is_supported_machine() -> bool:
    """Whether the system call numbers of this processor are known."""
    return os.uname().machine in _ARCH


def restrict_calls() -> None:
    """Install the seccomp filter for this process and its children."""
    program = filter_program(os.uname().machine)
    buffer = ctypes.create_string_buffer(program)
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer)))
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.call("prctl", linux.PR_SET_SECCOMP, ctypes.c_ulong(2), header, ctypes.c_ulong(0), ctypes.c_ulong(0))


def filter_program(machine: str) -> bytes:
    """Build the seccomp filter: refused calls fail with ENOSYS, `socket` and `clone` arguments are checked.

    Setting a socket's buffer size succeeds without effect: to programs it is only a hint.
    """
    steps = [(_LOAD, 0, 0, _MACHINE), (_EQUAL, 1, 0, _ARCH[machine]), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    steps += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    for number in (*_REFUSED[machine], *_REFUSED_EVERYWHERE):
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    steps += [(_EQUAL, 0, 4, _CLONE[machine]), (_LOAD, 0, 0, _FIRST)]
    steps += [(_ANY_BIT, 0, 1, linux.NEW_USER), (_RETURN, 0, 0, _ERRNO | _EPERM), (_RETURN, 0, 0, _PASS)]
    steps += [(_EQUAL, 0, 7, _SET_OPTION[machine]), (_LOAD, 0, 0, _SECOND), (_EQUAL, 0, 4, _SOCKET_LEVEL)]
    steps += [(_LOAD, 0, 0, _THIRD), (_EQUAL, 1, 0, _BUFFER_SIZES[0]), (_EQUAL, 0, 1, _BUFFER_SIZES[1])]
    steps += [(_RETURN, 0, 0, _ERRNO), (_RETURN, 0, 0, _PASS)]
    steps += [(_EQUAL, 0, 2 + len(_FAMILIES), _SOCKET[machine]), (_LOAD, 0, 0, _FIRST)]
    steps += [(_EQUAL, len(_FAMILIES) - at, 0, family) for at, family in enumerate(_FAMILIES)]
    steps += [(_RETURN, 0, 0, _ERRNO | _EAFNOSUPPORT), (_RETURN, 0, 0, _PASS)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def set_limits(limits: dict[str, Any], *, own_users: bool) -> None:
    """Set resource limits: no core dumps; file, address space and process limits.

    Processes only if users are namespaced.
    """
    bounds = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, limits["address_space"])]
    bounds += [(resource.RLIMIT_FSIZE, limits["disk"]), (resource.RLIMIT_NOFILE, OPEN_FILES)]
    bounds.append((resource.RLIMIT_SIGPENDING, SIGNALS))
    if own_users:
        bounds.append((resource.RLIMIT_NPROC, limits["processes"]))
    for kind, bound in bounds:
        hard = resource.getrlimit(kind)[1]
        bound = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(kind, (bound, bound))


def kernel() -> tuple[int, int]:
    """Major and minor version of Linux."""
    major, minor, *_ = os.uname().release.split(".")
    return int(major), int("".join(char for char in minor if char.isdigit()) or 0)
