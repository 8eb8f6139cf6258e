"""Who made a state folder. A project may have come from somebody else, its state folder included.

{state_dir}/id                            32 hexadecimal digits, random, written when the folder is made
{user's state}/states/{id}.json           the same id and the folder's path, device and inode, outside any project

A clone or an archive can bring the first file, but not the second. So a folder is *own* if both fit together, else
*foreign*: it may be read, with nothing in it believed, and nothing in it is acted upon until its user claims it.
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
"""What a folder may hold that nothing was recorded in."""
_FOLDERS = ("traces", "runs", "workspaces", "blobs", "blobs/sha256")


def user_state_home(environment: Mapping[str, str] = os.environ) -> Path:
    """The user's own folder for Remora's state, outside any project. Raises `ConfigError` where there is no home."""
    named = environment.get("XDG_STATE_HOME", "")
    try:
        base = Path(named) if named.startswith("/") else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise ConfigError("There is no home folder: expected one, or `XDG_STATE_HOME` to name a folder") from error
    return base / "remora"


def private_folder(folder: Path) -> Path:
    """The folder, made for its owner only where it was missing. Raises `ConfigError` if others could write there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise ConfigError(
            f"`{folder}` cannot be made: {error.strerror}",
            hint="Remora keeps there what must not lie in a project. Set `XDG_STATE_HOME` to a folder of yours",
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise ConfigError(
            f"`{folder}` could be written by others: expected a folder of yours with mode 0700",
            hint="Change its owner or mode, or set `XDG_STATE_HOME` to a folder of yours",
        )
    return folder


def check_state_dir(state_dir: Path) -> None:
    """Raises `ConfigError` for a state folder that is a link, holds one, or that somebody else could have written."""
    try:
        found = state_dir.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"`{state_dir}` cannot be looked at: {error.strerror}") from error
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
    """Whose folder it is. One that has been moved is still its maker's; a copy is foreign."""
    known = _registered(_read_id(state_dir), home or user_state_home())
    if known is not None:
        found = state_dir.stat()
        same_place = known.get("path") == str(state_dir.resolve())
        if same_place or (known.get("device"), known.get("inode")) == (found.st_dev, found.st_ino):
            return "own"
    return "absent" if _is_unused(state_dir) else "foreign"


def claim(state_dir: Path, home: Path | None = None) -> None:
    """The folder, which exists, is this user's from now on, under a new id. Raises `ConfigError`."""
    name, found = secrets.token_hex(16), state_dir.stat()
    registered = private_folder(private_folder(home or user_state_home()) / STATES) / f"{name}.json"
    record = {"path": str(state_dir.resolve()), "device": found.st_dev, "inode": found.st_ino}
    _write(registered, json.dumps(record).encode())
    _write(state_dir / ID_FILE, name.encode())


def make_own(state_dir: Path, home: Path | None = None) -> None:
    """The folder is there, private, its user's own, and git looks at none of it. Raises `ConfigError`."""
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


def _is_unused(state_dir: Path) -> bool:
    try:
        return _HARMLESS.issuperset(os.listdir(state_dir))  # noqa: PTH208 (names are all that is asked)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise ConfigError(f"`{state_dir}` cannot be looked at: {error.strerror}") from error


def _links(state_dir: Path) -> Iterator[Path]:
    """Links at the places that Remora writes or reads, each folder looked at once."""
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
    """The first bytes of a plain file; nothing where there is none, or another kind of file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(handle, "rb") as file:
        return file.read(_MAX_FILE) if stat.S_ISREG(os.fstat(handle).st_mode) else b""


def _write(path: Path, data: bytes) -> None:
    """The file holds `data`, the old content or the new, and is its owner's only."""
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, 0o600)  # whatever the umask took away
        file.write(data)
    aside.replace(path)


def _refused(state_dir: Path, why: str) -> ConfigError:
    return ConfigError(
        f"The state folder `{state_dir}` {why}",
        hint="It may have come with the project. Move it away, or name another folder with `--state-dir`",
    )
