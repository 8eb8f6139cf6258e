"""The default weights encoded anew: the same numbers but for rounding, the same file everywhere, or none at all."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from inference.real import smollm2
from inference.tiny import string, value
from remora.app import served_weights
from remora.config import ServerConfig
from remora.errors import ConfigError
from remora.gguf import read_layout
from remora.inference import (
    DEFAULT_MODEL,
    bundled_catalogue,
    encode,
    look,
    sha256_of,
)
from remora.inference._encoding import write_q4_0

ENTRY = bundled_catalogue()[DEFAULT_MODEL]
assert ENTRY.served is not None
SERVED = ENTRY.served
F32, Q4_0, Q4_1 = 0, 2, 3
HALF = st.floats(-4, 4, width=16)


def model(path: Path, tensors: dict[str, tuple[tuple[int, ...], int, bytes]], *, alignment: int = 32) -> Path:
    """A GGUF file with these tensors."""
    pairs = string("general.name") + value("tiny") + string("general.alignment") + struct.pack("<II", 4, alignment)
    body, data = b"", b""
    for name, (sizes, kind, held) in tensors.items():
        data += bytes(-len(data) % alignment)
        body += string(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, len(data))
        data += held
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 2) + pairs + body
    path.write_bytes(head + bytes(-len(head) % alignment) + data)
    return path


def held(path: Path, place: int) -> tuple[int, bytes]:
    """The kind of a tensor, and the bytes from its first one on."""
    layout = read_layout(path)
    tensor = layout.tensors[place]
    return tensor.kind, path.read_bytes()[layout.data_start + tensor.offset :]


def encoded(folder: Path, scale: float, least: float, halves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of one block, as they are and as they come out."""
    block = np.array([scale, least], np.float16).tobytes() + halves.tobytes()
    source = model(folder / "fetched.gguf", {"w": ((32, 1), Q4_1, block)})
    write_q4_0(source, folder / "faster.gguf")
    kind, data = held(folder / "faster.gguf", 0)
    assert kind == Q4_0
    step = np.frombuffer(data[:2], np.float16).astype(np.float64)[0]
    wanted = nibbles(halves) * np.float64(np.float16(scale)) + np.float64(np.float16(least))
    return wanted, (nibbles(np.frombuffer(data[2:18], np.uint8)) - 8) * step


def nibbles(halves: np.ndarray) -> np.ndarray:
    return np.concatenate([halves & 15, halves >> 4]).astype(np.float64)


@given(scale=HALF, least=HALF, halves=arrays.arrays(np.uint8, (16,)))
def test_a_block_loses_no_more_than_with_the_usual_scale(
    tmp_path_factory: pytest.TempPathFactory, scale: float, least: float, halves: np.ndarray
) -> None:
    wanted, found = encoded(tmp_path_factory.mktemp("encoding"), scale, least, halves)
    widest = wanted[np.abs(wanted).argmax()]
    step = np.float64(np.float16(widest / -8)) or 1.0
    usual = np.rint(wanted / step).clip(-8, 7) * step
    # Sums of 32-bit numbers may differ in their last bits.
    assert np.square(found - wanted).sum() <= np.square(usual - wanted).sum() * (1 + 1e-4) + 1e-9


@given(scale=st.floats(2**-10, 4, width=16), halves=arrays.arrays(np.uint8, (16,)))
def test_a_block_that_lies_around_zero_already_stays_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, scale: float, halves: np.ndarray
) -> None:
    halves[0] = 0  # the widest number, eight steps below zero, tells the scale
    wanted, found = encoded(tmp_path_factory.mktemp("encoding"), scale, -8 * scale, halves)
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("alignment", [32, 64])
def test_other_tensors_and_what_the_file_says_of_itself_are_copied(tmp_path: Path, alignment: int) -> None:
    norm = np.arange(5, dtype=np.float32).tobytes()
    four = np.array([1, 0], np.float16).tobytes() + bytes(16)
    tensors = {"norm": ((5,), F32, norm), "w": ((32, 2), Q4_1, four * 2), "last": ((5,), F32, norm)}
    source = model(tmp_path / "fetched.gguf", tensors, alignment=alignment)
    write_q4_0(source, tmp_path / "faster.gguf")
    layout = read_layout(tmp_path / "faster.gguf")
    assert [(each.name, each.sizes, each.kind) for each in layout.tensors] == [
        ("norm", (5,), F32), ("w", (32, 2), Q4_0), ("last", (5,), F32)
    ]  # fmt: skip
    assert all(each.offset % alignment == 0 for each in layout.tensors)
    assert held(tmp_path / "faster.gguf", 0)[1][:20] == held(tmp_path / "faster.gguf", 2)[1][:20] == norm
    end = read_layout(source).pairs_end
    assert layout.pairs_end == end
    assert (tmp_path / "faster.gguf").read_bytes()[:end] == source.read_bytes()[:end]


@pytest.mark.faults
def test_the_default_weights_become_the_same_file_everywhere_once_and_again_where_it_was_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = smollm2()
    path = encode(tmp_path, source, SERVED)
    assert look(tmp_path, SERVED).state == "ready"
    before = path.stat().st_mtime_ns
    assert encode(tmp_path, source, SERVED) == path
    assert path.stat().st_mtime_ns == before
    with path.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"damage")
    assert look(tmp_path, SERVED).state == "damaged"
    (path.parent / str(ENTRY.file)).symlink_to(source)
    monkeypatch.setenv("REMORA_CACHE_DIR", str(tmp_path))
    assert served_weights(ServerConfig()) == path
    assert sha256_of(path) == SERVED.sha256


def test_what_is_not_as_it_should_be_is_told_and_not_kept(tmp_path: Path) -> None:
    source = model(tmp_path / "other.gguf", {"w": ((32,), Q4_1, bytes(20))})
    with pytest.raises(ConfigError, match=r"re-encoded from .* has SHA-256") as caught:
        encode(tmp_path / "cache", source, SERVED)
    assert "server.gguf" in (caught.value.hint or "")
    strange = model(tmp_path / "strange.gguf", {"w": ((256,), 14, bytes(210))})
    with pytest.raises(ConfigError, match="type 14, which cannot be re-encoded"):
        encode(tmp_path / "cache", strange, replace(SERVED, file="strange.gguf"))
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(source.read_bytes()[:70])
    with pytest.raises(ConfigError, match="is not a GGUF file that can be read"):
        encode(tmp_path / "cache", cut, replace(SERVED, file="cut.gguf"))
    assert [path.name for path in (tmp_path / "cache" / "models").iterdir() if not path.name.startswith(".")] == []
