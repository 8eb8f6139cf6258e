"""Opens files by walking each path from an open directory, one name at a time.

Symbolic links are never followed, `..` is refused, and each step is relative to the directory opened by the step
before. So no path, link or race leads outside the root.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from remora.errors import WorkspaceError
from remora.workspaces._swap import exchange, move

MAX_FILE = 64 * 1024 * 1024
MAX_PATH = 1024
MAX_NAME = 255
CLOSED = frozenset({".agentfs", ".git"})
"""Names that agents may not enter, at any depth."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking, so that opening a named pipe in the project does not hang.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_STAGED = re.compile(r"\.[0-9a-f]{16}\.remora")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def names(path: str) -> tuple[str, ...]:
    """Split a path into names. Raises `WorkspaceError` for a path that could lead elsewhere."""
    if not path or "\0" in path:
        raise WorkspaceError(f"Path {path!r:.120} is not valid: expected text without NUL")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise WorkspaceError(f"Path {path!r:.120} is not text") from None
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if path.startswith("/") or ".." in parts or not parts or path.endswith("/"):
        raise WorkspaceError(f"Path {path!r:.120} leads outside: expected one relative to the project, without `..`")
    if size > MAX_PATH or any(len(part.encode()) > MAX_NAME for part in parts):
        raise WorkspaceError(f"Path {path!r:.120} is too long: at most {MAX_PATH} bytes in total, {MAX_NAME} per name")
    if closed := [part for part in parts if part.casefold() in CLOSED]:
        raise WorkspaceError(f"Path {path!r:.120} is not allowed: agents may not enter `{closed[0]}`")
    return parts


@dataclass(frozen=True)
class Entries:
    """The names in one folder, sorted."""

    files: list[str]
    folders: list[str]


class Door:
    """Access to the files below one directory."""

    def __init__(self, root: Path, *, max_file: int = MAX_FILE) -> None:
        self.root = root
        self._max_file = max_file

    def read(self, path: str, *, limit: int | None = None) -> bytes:
        """Read the file. Raises `FileNotFoundError`, or `WorkspaceError` if it is not a regular file or too large."""
        limit = self._max_file if limit is None else limit
        with self._folder(path) as (folder, name), _open_file(path, name, _FILE, folder) as file:
            info = os.fstat(file)
            _require_regular(path, info)
            if info.st_size > limit:
                raise WorkspaceError(f"`{path}` has {info.st_size:,} bytes: the limit is {limit:,}")
            return _read_all(path, file, limit)

    def mode(self, path: str) -> int | None:
        """The file's permissions, or None if there is no file."""
        try:
            with self._folder(path) as (folder, name), _open_file(path, name, _FILE, folder) as file:
                info = os.fstat(file)
                if stat.S_ISDIR(info.st_mode):
                    return None
                _require_regular(path, info)
                return stat.S_IMODE(info.st_mode)
        except FileNotFoundError:
            return None

    def read_only(self, path: str) -> str | None:
        """The file, or its nearest existing folder, if the owner may not write it; else None."""
        mode = self.mode(path)
        if mode is not None and not mode & stat.S_IWUSR:
            return path
        folders = names(path)[:-1]
        there = folders[: len(folders) - len(self.missing_folders(path))]
        with self._folder("/".join((*there, "x"))) as (held, _):
            return None if os.fstat(held).st_mode & stat.S_IWUSR else "/".join(there) or "."

    def changed_at_ns(self, path: str) -> int | None:
        """When the file or its directory entry last changed (`ctime`), in nanoseconds; None if there is no file.

        Programs can set back every other time of a file, but not this one.
        """
        try:
            with self._folder(path) as (folder, name), _translate_errors(path):
                return os.stat(name, dir_fd=folder, follow_symlinks=False).st_ctime_ns
        except FileNotFoundError:
            return None

    def entries(self, folder: str) -> Entries:
        """Regular files and folders in a folder (empty for the root), without links. Raises `FileNotFoundError`."""
        with (
            self._folder(f"{folder}/x" if folder else "x") as (held, _),
            _translate_errors(folder),
            os.scandir(held) as info,
        ):
            known = [entry for entry in info if _is_visible(entry.name)]
            return Entries(
                sorted(entry.name for entry in known if entry.is_file(follow_symlinks=False)),
                sorted(entry.name for entry in known if entry.is_dir(follow_symlinks=False)),
            )

    def check_parents(self, path: str) -> None:
        """Raises `WorkspaceError` if a parent folder of `path` is a file."""
        parts = names(path)
        for end in range(1, len(parts)):
            folder = "/".join(parts[:end])
            if self.mode(folder) is not None:
                raise WorkspaceError(f"`{path}` cannot be created: `{folder}` is a file, not a directory")

    def missing_folders(self, path: str) -> list[str]:
        """The parent folders of `path` that do not exist, outermost first."""
        *folders, _ = names(path)
        around = ["/".join(folders[:end]) for end in range(1, len(folders) + 1)]
        return [folder for folder in around if not self._is_folder(folder)]

    def stage(
        self, path: str, data: bytes, *, mode: int, folder_mode: int = 0o755, sync: bool = True, name: str = ""
    ) -> str:
        """Write `data` to a temporary file beside `path` and return its name. Synced if asked."""
        with self._folder(path, create=folder_mode) as (folder, _):
            staged = _check_staged_name(name or staged_name())
            with _translate_errors(path), _open_file(path, staged, _NEW, folder, 0o600) as file:
                _write_all(file, data)
                os.fchmod(file, mode)
                if sync:
                    os.fsync(file)
            return staged

    def put(self, path: str, staged: str) -> None:
        """Move a staged file into place atomically."""
        with self._folder(path) as (folder, name), _translate_errors(path):
            _require_regular_or_absent(path, name, folder)
            os.rename(_check_staged_name(staged), name, src_dir_fd=folder, dst_dir_fd=folder)

    def swap(self, path: str, staged: str) -> None:
        """Exchange the staged file with the file in place, which then has the staged name."""
        with self._folder(path) as (folder, name), _translate_errors(path):
            _require_regular_or_absent(path, name, folder)
            exchange(_check_staged_name(staged), name, folder)

    def move_in(self, path: str, staged: str) -> None:
        """Move the staged file into place. Raises `FileExistsError` if a file is there."""
        with self._folder(path) as (folder, name), _translate_errors(path):
            move(_check_staged_name(staged), name, folder)

    def move_out(self, path: str, staged: str) -> None:
        """Move the file in place to the staged name. Raises `FileNotFoundError` if there is none."""
        with self._folder(path) as (folder, name), _translate_errors(path):
            _require_regular(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
            move(name, _check_staged_name(staged), folder)

    def remove_folder(self, path: str) -> None:
        """Remove the folder if it is empty."""
        with contextlib.suppress(OSError, WorkspaceError), self._folder(path) as (folder, name):
            os.rmdir(name, dir_fd=folder)

    def write(self, path: str, data: bytes, *, mode: int, folder_mode: int = 0o755, sync: bool = True) -> None:
        """Write `data` to `path` atomically. If that fails, nothing is left behind."""
        staged = self.stage(path, data, mode=mode, folder_mode=folder_mode, sync=sync)
        try:
            self.put(path, staged)
        except BaseException:
            self.discard(path, staged)
            raise

    def discard(self, path: str, staged: str) -> None:
        """Delete the staged file."""
        with contextlib.suppress(OSError, WorkspaceError), self._folder(path) as (folder, _):
            os.unlink(_check_staged_name(staged), dir_fd=folder)

    def remove(self, path: str) -> None:
        """Delete the file. Raises `WorkspaceError` if it is not a regular file."""
        with self._folder(path) as (folder, name), _translate_errors(path):
            _require_regular_or_absent(path, name, folder)
            os.unlink(name, dir_fd=folder)

    def sync(self, path: str) -> None:
        """Sync the directory of `path` to disk."""
        with self._folder(path) as (folder, _):
            os.fsync(folder)

    def _is_folder(self, path: str) -> bool:
        try:
            with self._folder(f"{path}/x"):
                return True
        except FileNotFoundError:
            return False

    @contextlib.contextmanager
    def _folder(self, path: str, *, create: int | None = None) -> Iterator[tuple[int, str]]:
        """Open the directory that contains `path`, and yield it with the last name."""
        *folders, name = names(path)
        held = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in folders:
                inner = _open(path, part, _FOLDER, held) if create is None else _make_folder(path, part, create, held)
                os.close(held)
                held = inner
            yield held, name
        finally:
            os.close(held)


def staged_name() -> str:
    """A name for a staged file. Agents do not see such files."""
    return f".{secrets.token_hex(8)}.remora"


def is_staged_name(name: str) -> bool:
    """Whether `staged_name` could have produced it: a single name, so it cannot lead elsewhere."""
    return _STAGED.fullmatch(name) is not None


def _check_staged_name(staged: str) -> str:
    if not is_staged_name(staged):
        raise WorkspaceError(f"{staged!r:.120} is not the name of a staged file: nothing was moved or deleted")
    return staged


def _is_visible(name: str) -> bool:
    """Whether agents may see the name: valid text, not closed to them, and not a staged file."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return name.casefold() not in CLOSED and not _STAGED.fullmatch(name)


def _open(path: str, name: str, flags: int, folder: int, mode: int = 0o600) -> int:
    with _translate_errors(path):
        try:
            return os.open(name, flags, mode, dir_fd=folder)
        except NotADirectoryError:
            number = errno.ELOOP if _is_link(name, folder) else errno.ENOENT
            raise OSError(number, os.strerror(number)) from None


def _make_folder(path: str, name: str, mode: int, folder: int) -> int:
    with _translate_errors(path), contextlib.suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=folder)
    try:
        return _open(path, name, _FOLDER, folder)
    except FileNotFoundError as error:
        raise WorkspaceError(f"`{path}` cannot be created: `{name}` is a file, not a directory") from error


@contextlib.contextmanager
def _open_file(path: str, name: str, flags: int, folder: int, mode: int = 0o600) -> Iterator[int]:
    file = _open(path, name, flags, folder, mode)
    try:
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, FileExistsError) as error:
        raise type(error)(error.errno, error.strerror, path) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise WorkspaceError(f"`{path}` goes through a symbolic link, which is never followed") from error
        raise WorkspaceError(f"`{path[:200]}` cannot be accessed: {error.strerror}") from error


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _require_regular(path: str, info: os.stat_result) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise WorkspaceError(f"`{path}` is not a regular file")


def _require_regular_or_absent(path: str, name: str, folder: int) -> None:
    try:
        _require_regular(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return


def _read_all(path: str, file: int, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := os.read(file, 1024 * 1024):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise WorkspaceError(f"`{path}` grew while it was read: the limit is {limit:,} bytes")
    return b"".join(parts)


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
