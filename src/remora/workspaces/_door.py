"""The one door to files: every path is walked from a directory that is held open, one name at a time.

No name is followed if it is a symbolic link, none is `..`, and what was checked is what is opened, because each step
stands on the directory opened by the step before. So no path, no link and no race leads outside.
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
"""Names that no agent may enter, at any depth."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not blocking, so that a named pipe in the project cannot hold us.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_STAGED = re.compile(r"\.[0-9a-f]{16}\.remora")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def names(path: str) -> tuple[str, ...]:
    """The names that a path goes through. Raises `WorkspaceError` for one that could lead elsewhere."""
    if not path or "\0" in path:
        raise WorkspaceError(f"Path {path!r:.120} is not a path: expected text without NUL")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise WorkspaceError(f"Path {path!r:.120} is not text") from None
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if path.startswith("/") or ".." in parts or not parts or path.endswith("/"):
        raise WorkspaceError(f"Path {path!r:.120} leads outside: expected one relative to the project, without `..`")
    if size > MAX_PATH or any(len(part.encode()) > MAX_NAME for part in parts):
        raise WorkspaceError(f"Path {path!r:.120} is too long: {MAX_PATH} bytes in all, {MAX_NAME} a name")
    if closed := [part for part in parts if part.casefold() in CLOSED]:
        raise WorkspaceError(f"Path {path!r:.120} is not for agents: `{closed[0]}` is closed to them")
    return parts


@dataclass(frozen=True)
class Entries:
    """The names in one folder, each kind in order."""

    files: list[str]
    folders: list[str]


class Door:
    """Files beneath one directory."""

    def __init__(self, root: Path, *, max_file: int = MAX_FILE) -> None:
        self.root = root
        self._max_file = max_file

    def read(self, path: str, *, limit: int | None = None) -> bytes:
        """The file's bytes. Raises `FileNotFoundError`, or `WorkspaceError` if it is no plain file or too large."""
        limit = self._max_file if limit is None else limit
        with self._folder(path) as (folder, name), _opened(path, name, _FILE, folder) as file:
            found = os.fstat(file)
            _plain(path, found)
            if found.st_size > limit:
                raise WorkspaceError(f"`{path}` has {found.st_size:,} bytes: at most {limit:,} are read")
            return _read_all(path, file, limit)

    def mode(self, path: str) -> int | None:
        """The file's permissions, or None where there is no file."""
        try:
            with self._folder(path) as (folder, name), _opened(path, name, _FILE, folder) as file:
                found = os.fstat(file)
                if stat.S_ISDIR(found.st_mode):
                    return None
                _plain(path, found)
                return stat.S_IMODE(found.st_mode)
        except FileNotFoundError:
            return None

    def read_only(self, path: str) -> str | None:
        """The file, or the folder that it is in or would be made in, if its owner may not write it; else None."""
        mode = self.mode(path)
        if mode is not None and not mode & stat.S_IWUSR:
            return path
        folders = names(path)[:-1]
        there = folders[: len(folders) - len(self.missing_folders(path))]
        with self._folder("/".join((*there, "x"))) as (held, _):
            return None if os.fstat(held).st_mode & stat.S_IWUSR else "/".join(there) or "."

    def saved_at(self, path: str) -> int | None:
        """When the file, or the name that leads to it, was last changed, in nanoseconds; None where there is no file.

        Whoever saves can set back every other time of a file, but not this one.
        """
        try:
            with self._folder(path) as (folder, name), _translated(path):
                return os.stat(name, dir_fd=folder, follow_symlinks=False).st_ctime_ns
        except FileNotFoundError:
            return None

    def entries(self, folder: str) -> Entries:
        """What is in a folder (empty for the root): plain files and folders, no links. Raises `FileNotFoundError`."""
        with (
            self._folder(f"{folder}/x" if folder else "x") as (held, _),
            _translated(folder),
            os.scandir(held) as found,
        ):
            known = [entry for entry in found if _is_ours(entry.name)]
            return Entries(
                sorted(entry.name for entry in known if entry.is_file(follow_symlinks=False)),
                sorted(entry.name for entry in known if entry.is_dir(follow_symlinks=False)),
            )

    def fits(self, path: str) -> None:
        """Returns if a file could be made at `path`. Raises `WorkspaceError` if a file stands where a folder must."""
        parts = names(path)
        for end in range(1, len(parts)):
            folder = "/".join(parts[:end])
            if self.mode(folder) is not None:
                raise WorkspaceError(f"`{path}` cannot be made: `{folder}` is a file, not a directory")

    def missing_folders(self, path: str) -> list[str]:
        """The folders around `path` that do not exist, the outermost first."""
        *folders, _ = names(path)
        around = ["/".join(folders[:end]) for end in range(1, len(folders) + 1)]
        return [folder for folder in around if not self._is_folder(folder)]

    def stage(
        self, path: str, data: bytes, *, mode: int, folder_mode: int = 0o755, sync: bool = True, name: str = ""
    ) -> str:
        """The name of a file beside `path` that holds `data`, synced where asked, and is not yet in its place."""
        with self._folder(path, create=folder_mode) as (folder, _):
            staged = _checked(name or staged_name())
            with _translated(path), _opened(path, staged, _NEW, folder, 0o600) as file:
                _write_all(file, data)
                os.fchmod(file, mode)
                if sync:
                    os.fsync(file)
            return staged

    def put(self, path: str, staged: str) -> None:
        """Moves a staged file into its place: the old content or the new, never a mixture."""
        with self._folder(path) as (folder, name), _translated(path):
            _plain_or_absent(path, name, folder)
            os.rename(_checked(staged), name, src_dir_fd=folder, dst_dir_fd=folder)

    def swap(self, path: str, staged: str) -> None:
        """The staged file is in its place, and what was there waits under the staged name."""
        with self._folder(path) as (folder, name), _translated(path):
            _plain_or_absent(path, name, folder)
            exchange(_checked(staged), name, folder)

    def move_in(self, path: str, staged: str) -> None:
        """The staged file is in its place. Raises `FileExistsError` if something is there."""
        with self._folder(path) as (folder, name), _translated(path):
            move(_checked(staged), name, folder)

    def move_out(self, path: str, staged: str) -> None:
        """What was in its place waits under the staged name. Raises `FileNotFoundError` if nothing was there."""
        with self._folder(path) as (folder, name), _translated(path):
            _plain(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
            move(name, _checked(staged), folder)

    def remove_folder(self, path: str) -> None:
        """The folder is gone if it was empty."""
        with contextlib.suppress(OSError, WorkspaceError), self._folder(path) as (folder, name):
            os.rmdir(name, dir_fd=folder)

    def write(self, path: str, data: bytes, *, mode: int, folder_mode: int = 0o755, sync: bool = True) -> None:
        """`data` is at `path`; if that fails, nothing is left behind."""
        staged = self.stage(path, data, mode=mode, folder_mode=folder_mode, sync=sync)
        try:
            self.put(path, staged)
        except BaseException:
            self.discard(path, staged)
            raise

    def discard(self, path: str, staged: str) -> None:
        """The staged file is gone."""
        with contextlib.suppress(OSError, WorkspaceError), self._folder(path) as (folder, _):
            os.unlink(_checked(staged), dir_fd=folder)

    def remove(self, path: str) -> None:
        """The file is gone. Raises `WorkspaceError` if it is no plain file."""
        with self._folder(path) as (folder, name), _translated(path):
            _plain_or_absent(path, name, folder)
            os.unlink(name, dir_fd=folder)

    def sync(self, path: str) -> None:
        """The directory of `path` is on the disk as it is now."""
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
        """The open directory that holds `path`, and the last name."""
        *folders, name = names(path)
        held = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in folders:
                inner = _open(path, part, _FOLDER, held) if create is None else _made(path, part, create, held)
                os.close(held)
                held = inner
            yield held, name
        finally:
            os.close(held)


def staged_name() -> str:
    """A name for a file that waits beside its place. No agent sees such a file."""
    return f".{secrets.token_hex(8)}.remora"


def is_staged_name(name: str) -> bool:
    """Whether `staged_name` could have made it: one name, so that it leads nowhere."""
    return _STAGED.fullmatch(name) is not None


def _checked(staged: str) -> str:
    if not is_staged_name(staged):
        raise WorkspaceError(f"{staged!r:.120} is not the name of a staged file: nothing is moved or deleted")
    return staged


def _is_ours(name: str) -> bool:
    """Whether an agent may see the name: not closed to it, not a file that waits, and text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return name.casefold() not in CLOSED and not _STAGED.fullmatch(name)


def _open(path: str, name: str, flags: int, folder: int, mode: int = 0o600) -> int:
    with _translated(path):
        try:
            return os.open(name, flags, mode, dir_fd=folder)
        except NotADirectoryError:
            number = errno.ELOOP if _is_link(name, folder) else errno.ENOENT
            raise OSError(number, os.strerror(number)) from None


def _made(path: str, name: str, mode: int, folder: int) -> int:
    with _translated(path), contextlib.suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=folder)
    try:
        return _open(path, name, _FOLDER, folder)
    except FileNotFoundError as error:
        raise WorkspaceError(f"`{path}` cannot be made: `{name}` is a file, not a directory") from error


@contextlib.contextmanager
def _opened(path: str, name: str, flags: int, folder: int, mode: int = 0o600) -> Iterator[int]:
    file = _open(path, name, flags, folder, mode)
    try:
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, FileExistsError) as error:
        raise type(error)(error.errno, error.strerror, path) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise WorkspaceError(f"`{path}` goes through a symbolic link, which is never followed") from error
        raise WorkspaceError(f"`{path[:200]}` cannot be used: {error.strerror}") from error


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _plain(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise WorkspaceError(f"`{path}` is not a plain file")


def _plain_or_absent(path: str, name: str, folder: int) -> None:
    try:
        _plain(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return


def _read_all(path: str, file: int, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := os.read(file, 1024 * 1024):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise WorkspaceError(f"`{path}` grew while it was read: at most {limit:,} bytes are read")
    return b"".join(parts)


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
