"""Renames that lose no file: atomic exchange, and rename only to a free name."""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache
from typing import Any, Literal

_FLAGS = {"free": 1, "exchange": 2}
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})


def exchange(one: str, other: str, folder: int) -> None:
    """Exchange two names in an open folder, atomically if the system can."""
    if not _rename(one, other, folder, "exchange"):
        spare = f"{one}.kept"
        os.link(other, spare, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        os.rename(one, other, src_dir_fd=folder, dst_dir_fd=folder)
        os.rename(spare, one, src_dir_fd=folder, dst_dir_fd=folder)


def move(source: str, target: str, folder: int) -> None:
    """Rename `source` to `target`. Raises `FileExistsError` if `target` exists."""
    if not _rename(source, target, folder, "free"):
        os.link(source, target, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        os.unlink(source, dir_fd=folder)


def _rename(source: str, target: str, folder: int, how: Literal["free", "exchange"]) -> bool:
    """Call `renameat2`. Returns False if the system or file system does not support it."""
    call = _renameat2()
    if call is None:
        return False
    if call(folder, os.fsencode(source), folder, os.fsencode(target), _FLAGS[how]) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), target)


@cache
def _renameat2() -> Any:
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None  # not Linux, or a C library without it
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return call
