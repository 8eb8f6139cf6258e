"""Renames that lose nothing: two names change places at once, or a name is taken only if it is free."""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache
from typing import Any, Literal

_FLAGS = {"free": 1, "exchange": 2}
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})


def exchange(one: str, other: str, folder: int) -> None:
    """The two names in the open folder have changed places, at once where the system can."""
    if not _renamed(one, other, folder, "exchange"):
        kept = f"{one}.kept"
        os.link(other, kept, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        os.rename(one, other, src_dir_fd=folder, dst_dir_fd=folder)
        os.rename(kept, one, src_dir_fd=folder, dst_dir_fd=folder)


def move(source: str, target: str, folder: int) -> None:
    """`source` is at `target`. Raises `FileExistsError` if something is there already."""
    if not _renamed(source, target, folder, "free"):
        os.link(source, target, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        os.unlink(source, dir_fd=folder)


def _renamed(source: str, target: str, folder: int, how: Literal["free", "exchange"]) -> bool:
    """Whether it was done; false where the system or the file system cannot."""
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
