"""Words: the identifiers and numbers by which a memory is judged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from remora.events import Call

_WORD = re.compile(r"[A-Za-z0-9_]{3,}|(?<![A-Za-z0-9_])[0-9]{2}(?![A-Za-z0-9_])")
_ESCAPE = re.compile(r'\\[nrt"]')
COMMON = frozenset(
    [
        "the",
        "and",
        "for",
        "are",
        "was",
        "were",
        "with",
        "that",
        "this",
        "from",
        "have",
        "has",
        "had",
        "not",
        "but",
        "you",
        "your",
        "can",
        "will",
        "would",
        "should",
        "all",
        "any",
        "one",
        "two",
        "its",
        "our",
        "out",
        "what",
        "when",
        "which",
        "who",
        "how",
        "then",
        "than",
        "them",
        "they",
        "there",
        "here",
        "into",
        "also",
        "more",
        "some",
        "such",
        "only",
        "just",
        "been",
        "being",
        "did",
        "does",
        "done",
        "use",
        "used",
        "using",
        "get",
        "let",
        "see",
        "now",
        "new",
        "yes",
        "may",
    ]
)
"""Words that say nothing about what a call needs."""


def words_of(text: str) -> set[str]:
    """The words of a text. An escaped line break, tab or quote separates words, as the character itself does."""
    return {word for word in _WORD.findall(_ESCAPE.sub(" ", text)) if word.lower() not in COMMON}


def call_words(calls: Sequence[Call], *, names: bool) -> set[str]:
    """The words of the values in some calls; with `names`, also of tools and arguments, which tool schemas hold too."""
    texts = (text for call in calls for text in (*([call.tool] if names else []), *_texts(call.args, names)))
    return words_of("\n".join(texts))


def _texts(value: Any, names: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if names:
                yield str(key)
            yield from _texts(item, names)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, names)
    else:
        yield str(value)
