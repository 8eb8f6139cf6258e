"""Tokenizes rows exactly as llama.cpp tokenizes the same messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, models, pre_tokenizers

from remora_lab.trainer.tensors import Gguf

_QWEN_WORDS = (
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False)
_SPLITS: Mapping[str, Sequence[Any]] = {
    "smollm": (pre_tokenizers.Digits(individual_digits=True), _BYTE_LEVEL),
    "gpt-2": (_BYTE_LEVEL,),
    "qwen2": (
        pre_tokenizers.Split(Regex(_QWEN_WORDS), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ),
}
"""How text is split before byte-pair merges, by the name in the GGUF file."""
_FOUND_FIRST = (3, 4)
"""Kinds of tokens (control, defined by a user) that are found in a text before the rest is split."""
_NO_SYSTEM = {
    "qwen2": "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
    "smollm": "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
}
"""What the model's own template says where a chat has no system message, by tokenizer."""


@dataclass(frozen=True)
class Tokens:
    """One row: what is read, what is to be answered, and where in the answer the tool's name is said."""

    row: Mapping[str, Any]
    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    tool: int
    """Tokens at the beginning of the answer that say which tool it is."""

    def __len__(self) -> int:
        return len(self.prompt) + len(self.answer)


class RowTokenizer:
    """Makes tokens of rows, by the tokenizer inside a GGUF file and its ChatML template."""

    def __init__(self, gguf: Gguf) -> None:
        meta = gguf.meta
        kind, pre = meta["tokenizer.ggml.model"], meta.get("tokenizer.ggml.pre", "")
        if kind != "gpt2" or pre not in _SPLITS or "<|im_start|>" not in meta.get("tokenizer.chat_template", ""):
            raise ValueError(f"`{gguf.path}`: a tokenizer of the kind `{kind}, {pre}` with ChatML was expected")
        self._tokenizer = _byte_level(meta, _SPLITS[pre])
        self.no_system = _NO_SYSTEM.get(pre, _NO_SYSTEM["smollm"])
        self._end = self._tokenizer.token_to_id("<|im_end|>")

    def ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def text(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def rows(self, rows: Sequence[Mapping[str, Any]]) -> list[Tokens]:
        """All rows as tokens, encoded at once on all cores."""
        prompts = self._tokenizer.encode_batch(
            [chatml(row["messages"], self.no_system) for row in rows], add_special_tokens=False
        )
        answers = self._tokenizer.encode_batch([row["answer"] for row in rows], add_special_tokens=False)
        return [self._one(*each) for each in zip(rows, prompts, answers, strict=True)]

    def _one(self, row: Mapping[str, Any], prompt: Any, answer: Any) -> Tokens:
        named = row["answer"].find('"', len('{"tool":"'))
        tool = sum(1 for start, _ in answer.offsets if start <= named)
        return Tokens(row, tuple(prompt.ids), (*answer.ids, self._end), tool)


def chatml(messages: Sequence[Mapping[str, str]], no_system: str = _NO_SYSTEM["smollm"]) -> str:
    """The prompt as the model's template writes it, up to where the answer begins."""
    spoken = [*messages]
    if not spoken or spoken[0]["role"] != "system":
        spoken.insert(0, {"role": "system", "content": no_system})
    said = "".join(f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n" for message in spoken)
    return said + "<|im_start|>assistant\n"


def _byte_level(meta: Mapping[str, Any], splits: Sequence[Any]) -> tokenizers.Tokenizer:
    tokens = meta["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in meta["tokenizer.ggml.merges"]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token=tokens[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(list(splits))
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    special = [
        token for token, kind in zip(tokens, meta["tokenizer.ggml.token_type"], strict=True) if kind in _FOUND_FIRST
    ]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special if token])
    return tokenizer
