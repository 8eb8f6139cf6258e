"""Counts tokens with a model's own tokenizer, from a file on this machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from remora.errors import ConfigError, MissingExtra
from remora.gguf import GgufTokenizer, read_tokenizer
from remora.ports import TokenCounter

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SPECIAL_TYPES = (3, 4)
"""Token types (control, user-defined) that a server finds in a text before it splits the rest."""
_BYTE_LEVEL = "gpt2"
_SPLITS_DIGITS = {"smollm": True, "gpt-2": False}
_SPLIT_BY = {
    "qwen2": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
}
"""Pre-tokenizers that are known to give the server's own count: GPT-2's, with or without single digits, or a regex."""

MAX_PIECES = 50_000
"""Most pieces, and most lines, whose token counts are kept in memory."""

_SIGNS = dict.fromkeys(map(ord, "…–—‘’“”•→"))
"""Common signs that are neither letters nor digits. Text that has no others beyond ASCII can be split by `_PIECES`."""
_CONTRACTIONS = "'(?:s|t|re|ve|m|ll|d)"
_PIECES = {
    "smollm": re.compile(
        rf"{_CONTRACTIONS}|[0-9]| ?[A-Za-z]+| ?[^A-Za-z0-9 \t-\r]+|[ \t-\r]+(?![^ \t-\r0-9])|[ \t-\r]+"
    ),
    "gpt-2": re.compile(
        rf"{_CONTRACTIONS}| ?[A-Za-z]+| ?[0-9]+| ?[^A-Za-z0-9 \t-\r]+|[ \t-\r]+(?![^ \t-\r])|[ \t-\r]+"
    ),
    "qwen2": re.compile(
        rf"(?i:{_CONTRACTIONS})|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]| ?[^A-Za-z0-9 \t-\r]+[\r\n]*|[ \t-\r]*[\r\n]+"
        r"|[ \t-\r]+(?![^ \t-\r])|[ \t-\r]+"
    ),
}
"""How each pre-tokenizer splits such text."""
_ENDS_PIECE: dict[str, Callable[[str], bool]] = {
    "smollm": lambda sign: not sign.isspace(),
    "gpt-2": lambda sign: not sign.isspace(),
    "qwen2": str.isalnum,
}
"""After which signs a piece ends if a line break follows. In other cases both can be in one piece."""

# UTF-8 cannot encode a lone surrogate. The server's replacement has as many bytes.
_SURROGATES = re.compile("[\ud800-\udfff]")


class _FileCounter:
    """Counts with a tokenizer loaded from a file."""

    exact = True

    def __init__(self, tokenizer: Tokenizer, name: str, digest: str) -> None:
        self.name = name
        self.digest = digest
        """Identifies the tokenizer, wherever its file is."""
        self._tokenizer = tokenizer

    def count(self, text: str) -> int:
        """Tokens of `text`, without those that a chat template adds."""
        return len(self._tokenizer.encode(_SURROGATES.sub("\ufffd", text), add_special_tokens=False))


class _Counts(dict[str, int]):
    """Token counts of single texts, at most `MAX_PIECES`, filled as they are asked for."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count

    def __missing__(self, text: str) -> int:
        if len(self) >= MAX_PIECES:
            self.clear()
        tokens = self[text] = self._count(text)
        return tokens


class GgufCounter(_FileCounter):
    """Counts like a server of this GGUF file. Raises `ConfigError` for a tokenizer type that it cannot rebuild.

    A byte that the vocabulary lacks counts as a token, while llama.cpp drops it: the count is never too low.
    """

    def __init__(self, path: Path | str) -> None:
        path = Path(path)
        found = read_tokenizer(path)
        _check_kind(path, found)
        super().__init__(_byte_level(path, found), f"gguf:{path.name}", _digest_of(found))
        self._pieces = _PIECES[found.pre]
        self._ends_piece = _ENDS_PIECE[found.pre]
        self._special = _special_tokens(found)
        self._special_signs = {token[0] for token in self._special}
        self._counts = _Counts(super().count)
        self._line_counts = _Counts(self._count_pieces)

    def count(self, text: str) -> int:
        """Tokens of `text`, without those that a chat template adds."""
        # No token spans two pieces, so the counts of pieces add up. Most lines were in the prompt before.
        is_plain = text.isascii() or text.translate(_SIGNS).isascii()
        if not is_plain or self._has_special(text):
            return super().count(text)
        return sum(map(self._line_counts.__getitem__, split_lines(text, self._ends_piece)))

    def _count_pieces(self, text: str) -> int:
        return sum(map(self._counts.__getitem__, self._pieces.findall(text)))

    def _has_special(self, text: str) -> bool:
        return any(sign in text for sign in self._special_signs) and any(token in text for token in self._special)


def split_lines(text: str, ends_piece: Callable[[str], bool]) -> list[str]:
    """Split the text before line breaks, except within a piece."""
    first, *rest = text.split("\n")
    found = [first]
    for line in rest:
        if ends_piece(found[-1][-1:]):
            found.append(f"\n{line}")
        else:
            found[-1] += f"\n{line}"
    return found


class JsonCounter(_FileCounter):
    """Counts with a `tokenizer.json`. Raises `ConfigError` if the file is not one."""

    def __init__(self, path: Path | str) -> None:
        path = Path(path)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ConfigError(f"`{path}` cannot be read: {error.strerror or error}") from error
        try:
            tokenizer = _library().Tokenizer.from_buffer(data)
        except Exception as error:  # the library raises `Exception` itself
            raise ConfigError(f"`{path}` is not a `tokenizer.json`: {error}") from error
        # Either would distort the count.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        super().__init__(tokenizer, f"json:{path.name}", _sha256(data))


def file_counter(path: Path | str) -> TokenCounter:
    """The counter for a GGUF file or a `tokenizer.json`, depending on the first bytes."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise ConfigError(f"`{path}` cannot be read: {error.strerror or error}") from error
    return GgufCounter(path) if start == b"GGUF" or path.suffix == ".gguf" else JsonCounter(path)


def _check_kind(path: Path, found: GgufTokenizer) -> None:
    kind = found.model if found.model != _BYTE_LEVEL else f"{found.model}, {found.pre or 'default'}"
    if found.model != _BYTE_LEVEL or found.pre not in (*_SPLITS_DIGITS, *_SPLIT_BY):
        raise ConfigError(
            f"`{path}`: counting with a tokenizer of the kind `{kind}` is not supported yet",
            hint="Name the model's `tokenizer.json` instead, ask its server, or leave it out to count by estimate",
        )


def _byte_level(path: Path, found: GgufTokenizer) -> Tokenizer:
    library = _library()
    vocabulary = {token: number for number, token in enumerate(found.tokens)}
    merges = [tuple(merge.split(" ", 1)) for merge in found.merges]
    try:
        model = library.models.BPE(vocab=vocabulary, merges=merges, unk_token=found.tokens[0])
    except Exception as error:  # as above
        raise ConfigError(f"`{path}`: its vocabulary and merges do not fit together: {error}") from error
    tokenizer: Tokenizer = library.Tokenizer(model)
    tokenizer.pre_tokenizer = _pre_tokenizer(library, found.pre)
    tokenizer.add_special_tokens([library.AddedToken(token, normalized=False) for token in _special_tokens(found)])
    return tokenizer


def _pre_tokenizer(library: Any, kind: str) -> Any:
    split = library.pre_tokenizers
    if kind in _SPLIT_BY:
        pieces = split.Split(library.Regex(_SPLIT_BY[kind]), behavior="isolated")
        return split.Sequence([pieces, split.ByteLevel(add_prefix_space=False, use_regex=False)])
    parts = [split.Digits(individual_digits=True)] if _SPLITS_DIGITS[kind] else []
    return split.Sequence([*parts, split.ByteLevel(add_prefix_space=False)])


def _special_tokens(found: GgufTokenizer) -> list[str]:
    special = (token for token, kind in zip(found.tokens, found.types, strict=False) if kind in _SPECIAL_TYPES)
    return [token for token in special if token]


def _digest_of(found: GgufTokenizer) -> str:
    return _sha256(orjson.dumps([found.model, found.pre, found.tokens, found.merges, found.types]))


def _sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _library() -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise MissingExtra("Counting with a tokenizer file", extra="agents") from error
    return tokenizers
