"""`FileBlobs`: durable, compressed where it pays, and never trusted without its digest."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remora.errors import TraceError
from remora.events import digest
from remora.trace import Disk, FileBlobs
from remora.trace.files import blobs as blob_files
from remora.trace.files.blobs import CHUNK

TEXT = b"the same words again and again, " * 1000


@pytest.fixture
def blobs(state_dir: Path) -> FileBlobs:
    return FileBlobs(state_dir)


def file_of(blobs: FileBlobs, name: str) -> Path:
    path = blobs.path(name)
    assert path is not None
    return path


class SteppingDisk(Disk):
    """Writes down the steps that decide about durability."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def write_some(self, handle: int, data: memoryview) -> int:
        self.steps.append("write")
        return super().write_some(handle, data)

    def sync(self, handle: int) -> None:
        self.steps.append("sync")
        super().sync(handle)

    def rename(self, source: Path, target: Path) -> None:
        self.steps.append("rename")
        super().rename(source, target)

    def sync_dir(self, path: Path) -> None:
        self.steps.append("sync_dir")
        super().sync_dir(path)


async def test_a_blob_lies_where_its_digest_says(blobs: FileBlobs, state_dir: Path) -> None:
    small, large, noise = [await blobs.put(data) for data in (b"small", TEXT, os.urandom(5000))]
    hexes = [name.removeprefix("sha256:") for name in (small, large, noise)]
    folder = state_dir / "blobs" / "sha256"
    assert file_of(blobs, small) == folder / hexes[0][:2] / f"{hexes[0][2:]}.raw"
    assert file_of(blobs, large) == folder / hexes[1][:2] / f"{hexes[1][2:]}.gz"
    assert file_of(blobs, noise) == folder / hexes[2][:2] / f"{hexes[2][2:]}.raw"
    assert gzip.decompress(file_of(blobs, large).read_bytes()) == TEXT


async def test_files_are_for_their_owner_only_and_nothing_else_is_left(blobs: FileBlobs, state_dir: Path) -> None:
    name = await blobs.put(TEXT)
    for path in state_dir.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)
    assert [path for path in (state_dir / "blobs").rglob("*") if path.is_file()] == [file_of(blobs, name)]


async def test_the_content_is_synced_before_its_name_and_the_name_before_the_answer(state_dir: Path) -> None:
    disk = SteppingDisk()
    blobs = FileBlobs(state_dir, disk=disk)
    await blobs.put(b"makes the folders")
    disk.steps.clear()
    await blobs.put(TEXT)
    assert disk.steps[-4:] == ["write", "sync", "rename", "sync_dir"]


async def test_what_is_there_already_is_not_written_again(state_dir: Path) -> None:
    disk = SteppingDisk()
    blobs = FileBlobs(state_dir, disk=disk)
    name = await blobs.put(TEXT)
    os.utime(file_of(blobs, name), (1, 1))
    disk.steps.clear()
    assert await blobs.put(TEXT) == name
    assert disk.steps == ["sync_dir"]
    assert file_of(blobs, name).stat().st_mtime > 1


async def test_many_at_once_with_the_same_bytes_leave_one_file(blobs: FileBlobs, state_dir: Path) -> None:
    names = await asyncio.gather(*(blobs.put(TEXT) for _ in range(20)))
    assert len(set(names)) == 1
    assert len([path for path in (state_dir / "blobs").rglob("*") if path.is_file()]) == 1


@pytest.mark.parametrize("change", ["cut", "flip", "other", "empty", "more"])
@pytest.mark.parametrize("data", [b"small", TEXT], ids=["raw", "gz"])
async def test_a_damaged_blob_is_an_error_and_putting_it_again_heals_it(
    blobs: FileBlobs, data: bytes, change: str
) -> None:
    name = await blobs.put(data)
    path = file_of(blobs, name)
    good = path.read_bytes()
    middle = len(good) // 2
    flipped = good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :]
    other = gzip.compress(b"other") if path.suffix == ".gz" else b"other"
    changes = {"cut": good[:-1], "flip": flipped, "other": other, "empty": b"", "more": good + other}
    path.write_bytes(changes[change])
    with pytest.raises(TraceError, match="damaged"):
        await blobs.get(name)
    await blobs.put(data)
    assert await blobs.get(name) == data


def plant(state_dir: Path, name: str, packed: bytes) -> Path:
    """A file of gzip where the blob of that digest would lie."""
    path = state_dir / "blobs" / "sha256" / name[7:9] / f"{name[9:]}.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed)
    return path


def bomb(size: int) -> tuple[str, bytes]:
    """The digest of `size` zeros, and a gzip file a thousandth of that."""
    packer, seen, zeros = zlib.compressobj(1, wbits=31), hashlib.sha256(), bytes(1024 * 1024)
    parts = []
    for _ in range(size // len(zeros)):
        seen.update(zeros)
        parts.append(packer.compress(zeros))
    return f"sha256:{seen.hexdigest()}", b"".join([*parts, packer.flush()])


@pytest.mark.parametrize("right", [True, False], ids=["right digest", "other digest"])
async def test_a_bomb_is_refused_without_being_held_or_unpacked_to_its_end(
    blobs: FileBlobs, state_dir: Path, monkeypatch: pytest.MonkeyPatch, right: bool
) -> None:
    name, packed = bomb(200 * 1024 * 1024)
    name = name if right else digest(b"never")
    plant(state_dir, name, packed)
    unpacked, parts = 0, blob_files.parts

    def counting(*args: Any, **kwargs: Any) -> Iterator[bytes]:
        nonlocal unpacked
        for part in parts(*args, **kwargs):
            unpacked += len(part)
            yield part

    monkeypatch.setattr(blob_files, "parts", counting)
    tracemalloc.start()
    with pytest.raises(TraceError, match="unpacks to more than 67,108,864 bytes"):
        await blobs.get(name)
    with pytest.raises(TraceError, match="unpacks to more than 1,000 bytes"):
        await blobs.get(name, limit=1000)
    assert blobs.prove(name, 5_000_000).found == "too large"
    assert tracemalloc.get_traced_memory()[1] < 16 * 1024 * 1024
    tracemalloc.stop()
    assert unpacked < 80 * 1024 * 1024


async def test_a_large_blob_is_proven_without_being_held(blobs: FileBlobs, state_dir: Path) -> None:
    name, packed = bomb(200 * 1024 * 1024)
    plant(state_dir, name, packed)
    tracemalloc.start()
    proof = blobs.prove(name, 200 * 1024 * 1024)
    assert tracemalloc.get_traced_memory()[1] < 16 * 1024 * 1024
    tracemalloc.stop()
    assert (proof.found, proof.size) == ("right", 200 * 1024 * 1024)


async def test_putting_a_blob_where_a_bomb_lies_unpacks_no_more_than_the_blob(
    blobs: FileBlobs, state_dir: Path
) -> None:
    plant(state_dir, digest(TEXT), bomb(64 * 1024 * 1024)[1])
    assert await blobs.put(TEXT) == digest(TEXT)
    assert await blobs.get(digest(TEXT)) == TEXT


@pytest.mark.parametrize("size", [0, 1, 1000, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 7])
@pytest.mark.parametrize("noise", [True, False], ids=["noise", "zeros"])
def test_unpacking_in_parts_gives_what_gzip_gives_and_sees_every_cut(tmp_path: Path, size: int, noise: bool) -> None:
    data = (
        (os.urandom(size) if size < CHUNK else os.urandom(1000) * (size // 1000 + 1))[:size] if noise else bytes(size)
    )
    file = tmp_path / "x.gz"
    for level in (1, 3, 9):
        packed = gzip.compress(data, level)
        file.write_bytes(packed)
        with blob_files.open_plain(str(file)) as opened:
            found = list(blob_files.parts(opened, size, packed=True))
        assert b"".join(found) == data
        assert all(len(part) <= CHUNK for part in found)
        for other in (packed[:-1], packed[: len(packed) // 2], packed + b"x", packed + packed):
            file.write_bytes(other)
            with blob_files.open_plain(str(file)) as opened, pytest.raises((EOFError, zlib.error)):
                list(blob_files.parts(opened, 10 * CHUNK, packed=True))


async def test_a_pipe_or_a_folder_in_place_of_a_blob_is_no_blob(blobs: FileBlobs, state_dir: Path) -> None:
    name = await blobs.put(b"makes the folders")
    path = file_of(blobs, name)
    path.unlink()
    os.mkfifo(path)
    assert blobs.prove(name, 100).found == "gone"
    path.unlink()
    path.mkdir()
    assert blobs.prove(name, 100).found == "gone"


async def test_a_planted_link_is_not_followed(blobs: FileBlobs, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    name = await blobs.put(b"makes the folders")
    path = file_of(blobs, name)
    path.unlink()
    path.symlink_to(secret)
    with pytest.raises(TraceError, match="gone"):
        await blobs.get(name)


async def test_a_full_disk_is_said_so_and_leaves_nothing_half_written(state_dir: Path) -> None:
    class FullDisk(Disk):
        def write_some(self, handle: int, data: memoryview) -> int:
            raise OSError(28, "No space left on device")

    (state_dir / "blobs").mkdir(parents=True)
    (state_dir / ".gitignore").touch()
    with pytest.raises(TraceError, match="No space left"):
        await FileBlobs(state_dir, disk=FullDisk()).put(TEXT)
    assert [path for path in (state_dir / "blobs").rglob("*") if path.is_file()] == []
    assert await FileBlobs(state_dir).put(TEXT) == digest(TEXT)
