"""Counting tokens when the served model's own tokenizer is not at hand."""

from __future__ import annotations

import re
import string

LETTERS_PER_TOKEN = 4
SPACES_PER_TOKEN = 4

_BYTES = bytes(range(256))
_LETTERS = string.ascii_letters.encode()
_BLANKS = b" \t\n\v\f\r\x1c\x1d\x1e\x1f"
_WORDS_APART = bytes(byte if byte in _LETTERS else 32 for byte in _BYTES)
_NOT_ONE_EACH = _LETTERS + _BLANKS
"""All but signs, digits and the bytes of other scripts."""
_NO_BREAKS = _BYTES.translate(None, _BLANKS[1:])
# A single space is part of the word after it.
_SPACES = re.compile(rb"[ \t-\r\x1c-\x1f]{2,}|[\t-\r\x1c-\x1f]")


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
        # Over the whole text at once: every prompt is counted many times, so a call for each piece would show.
        data = text.encode(errors="surrogatepass")
        words = data.translate(_WORDS_APART).split()
        letters = sum([-(-len(word) // LETTERS_PER_TOKEN) for word in words])
        return letters + len(data.translate(None, _NOT_ONE_EACH)) + _spaces(data)


def _spaces(data: bytes) -> int:
    if b"  " not in data and not data.translate(None, _NO_BREAKS):
        return 0
    return sum([-(-len(run) // SPACES_PER_TOKEN) for run in _SPACES.findall(data)])
