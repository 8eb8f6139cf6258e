"""What holds for every counter, whoever counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.tiny import gguf, server, tokenizer_pairs, trained
from remora.inference import EstimatedCounter, ServerCounter, file_counter
from remora.ports import TokenCounter

TEXTS = ["", "word", "two words", '{"a": [1, 2]}', "漢字 𐀀", "line\nline\r\n", "a\ud800b", "\x00", "9" * 5000]


@pytest.fixture(params=["estimate", "gguf", "json", "server"])
def counter(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TokenCounter]:
    (tmp_path / "tiny.gguf").write_bytes(gguf(tokenizer_pairs()))
    trained(300).save(str(tmp_path / "tokenizer.json"))
    with server() as (url, _):
        made: dict[str, TokenCounter] = {
            "estimate": EstimatedCounter(),
            "gguf": file_counter(tmp_path / "tiny.gguf"),
            "json": file_counter(tmp_path / "tokenizer.json"),
            "server": ServerCounter(url),
        }
        yield made[request.param]


def test_nothing_takes_no_token_and_anything_else_takes_some(counter: TokenCounter) -> None:
    assert [counter.count(text) > 0 for text in TEXTS] == [bool(text) for text in TEXTS]


def test_the_same_text_takes_the_same_tokens(counter: TokenCounter) -> None:
    assert [counter.count(text) for text in TEXTS] == [counter.count(text) for text in TEXTS]


def test_a_text_takes_no_more_tokens_than_bytes(counter: TokenCounter) -> None:
    for text in TEXTS:
        assert counter.count(text) <= len(text.encode(errors="surrogatepass"))


def test_receipts_can_tell_who_counted(counter: TokenCounter) -> None:
    assert counter.name
    assert counter.exact != counter.name.startswith("estimate")
    assert counter.digest.startswith("sha256:") or counter.digest == ""
