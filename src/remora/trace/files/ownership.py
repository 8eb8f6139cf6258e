"""Who created a state folder. A project may come from somebody else, with its state folder.

{state_dir}/id                            32 random hexadecimal digits, written when the folder is created
{user's state}/states/{id}.json           the same id with the folder's path, device and inode, outside any project

A clone or an archive can contain the first file, but not the second. A folder is *own* if both match, else *foreign*:
it can be read, but its index is not trusted, and no command acts on it until the user claims it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from remora.errors import ConfigError

Standing = Literal["absent", "own", "foreign"]

ID_FILE = "id"
STATES = "states"
_ID = re.compile(r"[0-9a-f]{32}")
_MAX_FILE = 64 * 1024
_HARMLESS = frozenset({".gitignore", ID_FILE})
"""Files that a state folder may have before anything was recorded."""
_FOLDERS = ("traces", "runs", "workspaces", "blobs", "blobs/sha256")


def user_state_home(environment: Mapping[str, str] = os.environ) -> Path:
    """The user's folder for Remora's state, outside any project. Raises `ConfigError` if the user has no home."""
    named = environment.get("XDG_STATE_HOME", "")
    try:
        base = Path(named) if named.startswith("/") else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise ConfigError("There is no home folder: expected one, or `XDG_STATE_HOME` to name a folder") from error
    return base / "remora"


def private_folder(folder: Path) -> Path:
    """Create the folder with mode 0700 if it is missing. Raises `ConfigError` if other users can write to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise ConfigError(
            f"`{folder}` cannot be created: {error.strerror}",
            hint="Remora stores state there that must not be in a project. Set `XDG_STATE_HOME` to a folder of yours",
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise ConfigError(
            f"`{folder}` could be written by others: expected a folder of yours with mode 0700",
            hint="Change its owner or mode, or set `XDG_STATE_HOME` to a folder of yours",
        )
    return folder


def check_state_dir(state_dir: Path) -> None:
    """Raises `ConfigError` for a state folder that is or contains a symbolic link, or that other users can write to."""
    try:
        found = state_dir.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"`{state_dir}` cannot be read: {error.strerror}") from error
    if stat.S_ISLNK(found.st_mode):
        raise _refused(state_dir, "is a link: expected a folder of Remora's own")
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigError(f"`{state_dir}` is not a folder: expected one for Remora's state")
    if found.st_uid != os.geteuid():
        raise _refused(state_dir, f"belongs to another user (uid {found.st_uid}): expected a folder of yours")
    if found.st_mode & stat.S_IWOTH:
        raise _refused(state_dir, "can be written by every user: expected mode 0700")
    for link in _links(state_dir):
        raise _refused(state_dir, f"holds a link, `{link.relative_to(state_dir)}`, which Remora never makes")


def standing(state_dir: Path, home: Path | None = None) -> Standing:
    """Whether this user created the folder. A moved folder is still `own`; a copy is `foreign`."""
    known = _registered(_read_id(state_dir), home or user_state_home())
    if known is not None:
        found = state_dir.stat()
        same_place = known.get("path") == str(state_dir.resolve())
        if same_place or (known.get("device"), known.get("inode")) == (found.st_dev, found.st_ino):
            return "own"
    return "absent" if _is_unused(state_dir) else "foreign"


def claim(state_dir: Path, home: Path | None = None) -> None:
    """Register an existing folder as this user's own, under a new id. Raises `ConfigError`."""
    name, found = secrets.token_hex(16), state_dir.stat()
    registered = private_folder(private_folder(home or user_state_home()) / STATES) / f"{name}.json"
    record = {"path": str(state_dir.resolve()), "device": found.st_dev, "inode": found.st_ino}
    _write(registered, json.dumps(record).encode())
    _write(state_dir / ID_FILE, name.encode())


def make_own(state_dir: Path, home: Path | None = None) -> None:
    """Create and claim the folder unless it exists, with a `.gitignore` for all of it. Raises `ConfigError`."""
    check_state_dir(state_dir)
    if standing(state_dir, home) == "absent":
        try:
            state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (state_dir / ".gitignore").exists():
                _write(state_dir / ".gitignore", b"*\n")
            claim(state_dir, home)
        except OSError as error:
            raise ConfigError(
                f"`{state_dir}` cannot hold Remora's state: {error.strerror}",
                hint="Name a folder that you may write to with `--state-dir`",
            ) from error


def forget_own(state_dir: Path, home: Path | None = None) -> None:
    """Remove the user's record of a folder that is about to be deleted."""
    if name := _read_id(state_dir):
        ((home or user_state_home()) / STATES / f"{name}.json").unlink(missing_ok=True)


def _is_unused(state_dir: Path) -> bool:
    try:
        return _HARMLESS.issuperset(os.listdir(state_dir))  # noqa: PTH208 (names are all that is asked)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise ConfigError(f"`{state_dir}` cannot be read: {error.strerror}") from error


def _links(state_dir: Path) -> Iterator[Path]:
    """Symbolic links in the folders that Remora reads or writes."""
    for folder in (state_dir, *(state_dir / name for name in _FOLDERS)):
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries if entry.is_symlink())


def _read_id(state_dir: Path) -> str:
    text = _read(state_dir / ID_FILE).decode(errors="replace").strip()
    return text if _ID.fullmatch(text) else ""


def _registered(name: str, home: Path) -> dict[str, Any] | None:
    if not name:
        return None
    try:
        record = json.loads(_read(home / STATES / f"{name}.json"))
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _read(path: Path) -> bytes:
    """The first bytes of a regular file; empty if there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(handle, "rb") as file:
        return file.read(_MAX_FILE) if stat.S_ISREG(os.fstat(handle).st_mode) else b""


def _write(path: Path, data: bytes) -> None:
    """Replace the file atomically, with mode 0600."""
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, 0o600)  # in spite of the umask
        file.write(data)
    aside.replace(path)


def _refused(state_dir: Path, why: str) -> ConfigError:
    return ConfigError(
        f"The state folder `{state_dir}` {why}",
        hint="It may have come with the project. Move it away, or name another folder with `--state-dir`",
    )
