"""Counting tokens when the served model's own tokenizer is not at hand."""

from __future__ import annotations

import re

_PIECES = re.compile(r"[A-Za-z]+|[^\x00-\x7f]+|\s+|[\x00-\x7f]")

LETTERS_PER_TOKEN = 4
SPACES_PER_TOKEN = 4


class EstimatedCounter:
    """An estimate that errs high: every digit and sign is a token, a word one for every four letters.

    Byte-pair tokenizers join signs and common words, so real counts are lower on code, JSON and prose: against
    SmolLM2's own tokenizer, on 330 such texts, the median was 1.45 times the real count, and 99 in 100 were above it.
    Text in other scripts counts a token a byte, the most that a byte-level tokenizer can need. Long runs of random
    letters are underestimated, which is why a budget kept by this counter is called estimated.
    """

    name = "estimate-1"
    exact = False
    digest = ""

    def count(self, text: str) -> int:
        """Tokens that `text` takes, by estimate."""
        return sum(map(_piece, _PIECES.findall(text)))


def _piece(piece: str) -> int:
    if piece.isascii() and piece.isalpha():
        return -(-len(piece) // LETTERS_PER_TOKEN)
    if piece.isspace() and piece.isascii():
        # A single space is part of the word after it.
        return 0 if piece == " " else -(-len(piece) // SPACES_PER_TOKEN)
    return len(piece.encode(errors="surrogatepass"))
