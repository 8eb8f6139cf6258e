from __future__ import annotations

import asyncio
import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remora.errors import TraceError
from remora.trace import BlobWindows, FileBlobs


def put(state_dir: Path, data: bytes) -> tuple[BlobWindows, str]:
    blobs = FileBlobs(state_dir)
    return BlobWindows(blobs), asyncio.run(blobs.put(data))


@given(st.binary(max_size=3000), st.integers(0, 3500), st.integers(0, 3500))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_window_is_that_part_of_the_blob(state_dir: Path, data: bytes, start: int, length: int) -> None:
    windows, digest = put(state_dir, data)
    window = windows.read(digest, start, length)
    assert window.data == data[start : start + length]
    assert window.size == len(data)


@given(st.text("abC", max_size=200), st.text("aBc", min_size=1, max_size=3), st.integers(0, 210))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_words_are_found_where_they_are_whatever_their_case(state_dir: Path, text: str, words: str, start: int) -> None:
    windows, digest = put(state_dir, text.encode())
    place = text.lower().find(words.lower(), start)
    assert windows.find(digest, words.encode(), start) == (place if place >= 0 else None)


def test_words_across_two_chunks_are_found(state_dir: Path) -> None:
    data = b"." * (1024 * 1024 - 3) + b"needle" + b"." * 100
    windows, digest = put(state_dir, data)
    assert windows.find(digest, b"NEEDLE") == 1024 * 1024 - 3


def test_a_blob_that_changed_is_refused_also_after_it_was_read(state_dir: Path) -> None:
    windows, digest = put(state_dir, random.Random(1).randbytes(5000))
    assert len(windows.read(digest, 0, 10).data) == 10
    path = FileBlobs(state_dir).path(digest)
    assert path is not None
    path.write_bytes(b"x" * 5000)
    with pytest.raises(TraceError, match="damaged"):
        windows.read(digest, 0, 10)
    path.unlink()
    with pytest.raises(TraceError, match="gone"):
        windows.read(digest, 0, 10)


def test_a_window_of_a_large_blob_takes_little_memory(state_dir: Path) -> None:
    data = b"".join(b"line %d of a large output\n" % n for n in range(1_000_000))
    windows, digest = put(state_dir, data)
    end = data[-100:]
    size = len(data)
    assert size > 25_000_000
    del data
    tracemalloc.start()
    window = windows.read(digest, size - 100, 64 * 1024)
    assert windows.find(digest, b"line 999999 of") is not None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert window.data == end and window.size == size
    assert peak < 8_000_000
