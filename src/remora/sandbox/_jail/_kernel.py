"""Estimates kernel memory that no process is charged for: sockets, page tables, open files, inodes, locks.

Without a cgroup nothing counts it, so each object counts as the most it can hold.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SOCKET = 448 * 1024
"""Most bytes in a socket's buffers. A sandboxed process cannot raise this."""
FREE_SOCKETS = 256
"""Sockets that are not counted: few programs fill their buffers."""
OPEN_FILE = 10 * 1024
"""Bytes per open file: two pages of a pipe beyond the user's allowance, plus kernel structures."""
FREE_FILES = 256
"""Open files of a process that are not counted."""
INODE = 1536
"""Bytes per file in memory beyond its size: the inode and its directory entry in the cache."""
LOCKS = 10_000
"""Most file locks: the kernel has no limit of its own."""
MAPPINGS = 65_530 * 256
"""Bytes that the kernel needs for the most mappings that a process may have."""
_LOCK_TEXT = 1024 * 1024
_FEW_MAPPINGS = 256 * 1024
"""Bytes of `/proc/PID/maps` for about 4,000 mappings. Few programs have more."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Sockets:
    """The sockets of this network namespace."""

    def __init__(self) -> None:
        self._tcp = _sockstat()[2]

    def held(self) -> int:
        """Most bytes that they can hold now, including sockets without a descriptor."""
        used, tcp, pages = _sockstat()
        # The kernel counts TCP memory for the whole machine, so only the growth since the start counts here.
        grown = max(0, pages - self._tcp) * _PAGE if tcp else 0
        return max(0, used - FREE_SOCKETS) * SOCKET + grown


def _sockstat() -> tuple[int, int, int]:
    """Sockets in this namespace, TCP sockets among them, and pages of TCP memory on this machine."""
    used = tcp = pages = 0
    for line in _read("/proc/net/sockstat").splitlines():
        words = line.split()
        if words[:2] == [b"sockets:", b"used"]:
            used = int(words[2])
        elif words[:1] == [b"TCP:"]:
            facts = dict(zip(words[1::2], words[2::2], strict=False))
            tcp, pages = int(facts.get(b"inuse", 0)) + int(facts.get(b"tw", 0)), int(facts.get(b"mem", 0))
    return used, tcp, pages


def process_memory(pid: int) -> tuple[int, int]:
    """Resident bytes of a process, and kernel memory for it: page tables and open files."""
    resident = tables = slots = 0
    for line in _read(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"VmRSS:"):
            resident = int(line.split()[1]) * 1024
        elif line.startswith(b"VmPTE:"):
            tables = int(line.split()[1]) * 1024
        elif line.startswith(b"FDSize:"):
            slots = int(line.split()[1])
    files = _open_files(pid, slots) if slots > FREE_FILES else 0
    return resident, tables + max(0, files - FREE_FILES) * OPEN_FILE


def _open_files(pid: int, slots: int) -> int:
    """Number of open files. If that is not visible, the size of the descriptor table."""
    try:
        # Since Linux 6.2 the size of this folder is the number of entries; before, it is 0.
        return os.stat(f"/proc/{pid}/fd").st_size or len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        return slots
    except OSError:
        return 0


def mappings(pid: int) -> int:
    """Bytes that the kernel may need for a process's mappings; 0 for an ordinary number of them."""
    try:
        file = os.open(f"/proc/{pid}/maps", os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return MAPPINGS
    except OSError:
        return 0
    os.close(file)
    return MAPPINGS if len(_read(f"/proc/{pid}/maps", _FEW_MAPPINGS)) >= _FEW_MAPPINGS else 0


def written(areas: Sequence[str]) -> tuple[int, int]:
    """Bytes in the private file systems, and kernel memory for the files there."""
    total = inodes = 0
    for area in areas:
        usage = os.statvfs(area)
        total += (usage.f_blocks - usage.f_bfree) * usage.f_frsize
        inodes += usage.f_files - usage.f_ffree
    return total, max(0, inodes) * INODE


def too_many_locks() -> bool:
    """Whether more than `LOCKS` file locks are held."""
    return _read("/proc/locks", _LOCK_TEXT).count(b"\n") > LOCKS


def proportional(pid: int) -> int:
    """Proportional set size of a process: shared pages count as its share."""
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return process_memory(pid)[0]


def _read(path: str, limit: int = 1 << 16) -> bytes:
    """The first bytes of a `/proc` file; empty if it cannot be read."""
    parts: list[bytes] = []
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        while limit > 0 and (part := os.read(file, limit)):
            parts.append(part)
            limit -= len(part)
    except OSError:
        return b""
    finally:
        os.close(file)
    return b"".join(parts)
