"""A count is the tokenizer's own, or a sentence says why there is none."""

from __future__ import annotations

import json
import os
import struct
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.tiny import ALPHABET, gguf, string, tokenizer_pairs, trained
from remora.errors import ConfigError
from remora.gguf import MAX_PAIRS
from remora.inference import GgufCounter, JsonCounter, file_counter
from remora.inference._counters import _ENDS_PIECE, _PIECES, split_lines

GOOD = gguf(tokenizer_pairs())


def saved(folder: Path, data: bytes = GOOD, name: str = "tiny.gguf") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_a_gguf_counts_by_its_own_vocabulary_and_merges(tmp_path: Path) -> None:
    counter = GgufCounter(saved(tmp_path))
    assert (counter.count(""), counter.count("hel"), counter.count("help"), counter.count("lleh")) == (0, 1, 2, 4)
    assert counter.count("12 3") == 4
    assert counter.count("<|end|>hel") == 2
    assert (counter.name, counter.exact) == ("gguf:tiny.gguf", True)


def test_a_trained_tokenizer_counts_the_same_from_a_gguf_and_from_a_json(tmp_path: Path) -> None:
    tokenizer = trained(600)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    model = json.loads((tmp_path / "tokenizer.json").read_text())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    pairs = tokenizer_pairs(tokens=tokens, merges=merges, token_type=[1] * len(tokens))
    by_gguf, by_json = file_counter(saved(tmp_path, gguf(pairs))), file_counter(tmp_path / "tokenizer.json")
    assert isinstance(by_json, JsonCounter)
    for text in ("The packet is small.", "x = {'a': 1234}", "漢字 and 𐀀", "\r\n\t  ", "don't"):
        assert by_gguf.count(text) == by_json.count(text) == len(tokenizer.encode(text).ids)


@pytest.mark.parametrize("splits_digits", [True, False])
@given(st.data())
def test_a_count_by_pieces_is_the_tokenizers_own(
    tmp_path_factory: pytest.TempPathFactory, splits_digits: bool, data: st.DataObject
) -> None:
    counter = _trained_counter(tmp_path_factory.getbasetemp(), "smollm" if splits_digits else "gpt-2")
    signs = st.sampled_from("ab Zz's't 019_-.,:\t\n\r\v\f\x1c\x00…–’•→é²漢<|end|>")
    text = data.draw(
        st.text(signs) | st.lists(st.sampled_from([" ", "  ", "\n ", "12", "the", "'ll", " x"])).map("".join)
    )
    assert counter.count(text) == len(counter._tokenizer.encode(text, add_special_tokens=False))


@pytest.mark.parametrize("pre", _PIECES)
@given(st.text(st.sampled_from("ab Z's't01_.,:\t\n\n\n\r\v\x1c…→")))
def test_no_piece_is_split_between_lines(pre: str, text: str) -> None:
    pieces, lines = _PIECES[pre], split_lines(text, _ENDS_PIECE[pre])
    assert "".join(lines) == text
    assert [piece for line in lines for piece in pieces.findall(line)] == pieces.findall(text)


@cache
def _trained_counter(folder: Path, pre: str) -> GgufCounter:
    """A counter with the vocabulary of a trained tokenizer, from a GGUF file."""
    tokenizer = trained(600)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = ["<|end|>", *sorted(model["vocab"], key=model["vocab"].__getitem__)]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    pairs = tokenizer_pairs(tokens=tokens, merges=merges, token_type=[3] + [1] * (len(tokens) - 1), pre=pre)
    return GgufCounter(saved(folder, gguf(pairs), f"{pre}.gguf"))


def test_a_byte_that_the_vocabulary_lacks_still_counts(tmp_path: Path) -> None:
    tokens = ["<|end|>", *(letter for letter in ALPHABET if letter != "z"), "he", "hel"]
    counter = GgufCounter(saved(tmp_path, gguf(tokenizer_pairs(tokens=tokens))))
    assert counter.count("zzz") == 3


def test_text_with_a_lone_surrogate_counts_by_its_bytes(tmp_path: Path) -> None:
    assert GgufCounter(saved(tmp_path)).count("a\ud800b") == 5


def test_a_file_that_would_cut_long_texts_is_not_allowed_to(tmp_path: Path) -> None:
    tokenizer = trained(256)
    tokenizer.enable_truncation(max_length=5)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert JsonCounter(tmp_path / "tokenizer.json").count("abcdefghij") == 10


def test_the_digest_names_the_tokenizer_and_not_where_it_lies(tmp_path: Path) -> None:
    one = GgufCounter(saved(tmp_path))
    other = GgufCounter(saved(tmp_path, gguf(tokenizer_pairs(merges=["h e"])), "other.gguf"))
    assert one.digest == GgufCounter(saved(tmp_path, GOOD, "copy.gguf")).digest
    assert one.digest.startswith("sha256:")
    assert one.digest != other.digest


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "llama"}, "`llama` is not supported yet"),
        ({"pre": "falcon"}, "`gpt2, falcon` is not supported yet"),
        ({"merges": ["h xyz"]}, "do not fit together"),
        ({"tokens": [1, 2]}, "`tokenizer.ggml.tokens` is missing or not what it should be"),
        ({"tokens": []}, "`tokenizer.ggml.tokens` is missing or not what it should be"),
        ({"model": 5}, "`tokenizer.ggml.model` is missing or no text"),
    ],
)
def test_a_tokenizer_that_cannot_be_rebuilt_is_refused_by_its_kind(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        GgufCounter(saved(tmp_path, gguf(tokenizer_pairs(**changes))))
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "are left"),
        (b"PK\x03\x04" + bytes(100), "does not begin with `GGUF`"),
        (gguf({}, version=1), "version is 1"),
        (gguf({}), "`tokenizer.ggml.model` is missing"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, MAX_PAIRS + 1), "pairs of metadata"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63), "where 0 are left"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + string("k") + struct.pack("<IIQ", 9, 8, 2**61), "where 0 are left"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + string("k") + struct.pack("<IIQ", 9, 12, 2**62), "where 0 are left"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + string("k") + struct.pack("<IIQ", 9, 9, 1), "unknown type 9"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + string("k") + struct.pack("<I", 77), "unknown type 77"),
    ],
)
def test_a_file_that_is_not_gguf_or_lies_about_its_sizes_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(ConfigError, match="holds no tokenizer") as refused:
        GgufCounter(saved(tmp_path, data))
    assert words in refused.value.message


@given(st.integers(0, len(GOOD) - 1), st.binary(max_size=12))
def test_a_cut_or_damaged_file_gives_a_counter_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, at: int, noise: bytes
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    with pytest.raises(ConfigError):
        GgufCounter(saved(folder, GOOD[:at]))
    try:
        GgufCounter(saved(folder, GOOD[:at] + noise + GOOD[at + len(noise) :])).count("hello")
    except ConfigError as error:
        assert "tiny.gguf" in error.message


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\xff\xfe"])
def test_a_file_that_is_no_tokenizer_json_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ConfigError, match=r"is not a `tokenizer.json`"):
        file_counter(saved(tmp_path, data, "tokenizer.json"))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    for make in (GgufCounter, JsonCounter, file_counter):
        with pytest.raises(ConfigError, match="cannot be read: No such file"):
            make(tmp_path / "nothing.gguf")


@pytest.mark.skipif("REMORA_GGUF" not in os.environ, reason="REMORA_GGUF names no GGUF file of SmolLM2")
def test_the_real_file_of_smollm2_gives_the_counts_that_are_known() -> None:
    counter = GgufCounter(os.environ["REMORA_GGUF"])
    assert [counter.count(text) for text in ("Hello world", "1234", "<|im_start|>user")] == [2, 4, 2]
