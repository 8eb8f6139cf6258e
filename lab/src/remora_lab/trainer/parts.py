"""Files in parts, for machines that take and give only small files.

python -m remora_lab.trainer.parts split FILE FOLDER --bytes 30000000
python -m remora_lab.trainer.parts join FOLDER FILE --sha256 DIGEST
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

_CHUNK = 1024 * 1024


def split(file: Path, folder: Path, size: int, name: str = "") -> list[Path]:
    """Write `file` into `folder`: whole if it has at most `size` bytes, else in parts `NAME.000`, `NAME.001`, …"""
    folder.mkdir(parents=True, exist_ok=True)
    name = name or file.name
    if file.stat().st_size <= size:
        whole = folder / name
        whole.write_bytes(file.read_bytes())
        return [whole]
    made = []
    with file.open("rb") as source:
        while data := source.read(size):
            made.append(folder / f"{name}.{len(made):03}")
            made[-1].write_bytes(data)
    return made


def join(folder: Path | None, file: Path, sha256: str = "") -> None:
    """Make `file` from its parts in `folder`, unless it is there. Raises `ValueError` if a part or the digest is wrong.

    Parts have the names that `split` gives them. Nothing is kept of a file with a wrong digest.
    """
    if file.exists():
        _check(file, sha256)
        return
    parts = sorted((folder or file.parent).glob(f"{file.name}.[0-9][0-9][0-9]"))
    if [part.suffix for part in parts] != [f".{place:03}" for place in range(len(parts))] or not parts:
        raise ValueError(f"`{folder}` does not hold every part of `{file.name}`: it has {len(parts)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".joining")
    with unfinished.open("wb") as target:
        for part in parts:
            target.write(part.read_bytes())
    _check(unfinished, sha256)
    unfinished.replace(file)


def _check(file: Path, sha256: str) -> None:
    if not sha256:
        return
    found = hashlib.sha256()
    with file.open("rb") as source:
        while data := source.read(_CHUNK):
            found.update(data)
    if found.hexdigest() != sha256:
        file.unlink()
        raise ValueError(f"`{file.name}` has SHA-256 {found.hexdigest()[:12]}…, expected {sha256[:12]}…: not kept")


def main(words: list[str] | None = None) -> int:
    """Split a file, or join one."""
    parser = argparse.ArgumentParser(prog="python -m remora_lab.trainer.parts", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    splitting = commands.add_parser("split")
    splitting.add_argument("file", type=Path)
    splitting.add_argument("folder", type=Path)
    splitting.add_argument("--bytes", type=int, default=30_000_000)
    joining = commands.add_parser("join")
    joining.add_argument("folder", type=Path)
    joining.add_argument("file", type=Path)
    joining.add_argument("--sha256", default="")
    given = parser.parse_args(words)
    try:
        if given.command == "split":
            split(given.file, given.folder, given.bytes)
        else:
            join(given.folder, given.file, given.sha256)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - a program of its own
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
