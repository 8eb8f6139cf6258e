"""Estimates token counts without the model's tokenizer."""

from __future__ import annotations

import re
import string

LETTERS_PER_TOKEN = 4
SPACES_PER_TOKEN = 4

_BYTES = bytes(range(256))
_LETTERS = string.ascii_letters.encode()
_BLANKS = b" \t\n\v\f\r\x1c\x1d\x1e\x1f"
_LETTERS_OR_SPACE = bytes(byte if byte in _LETTERS else 32 for byte in _BYTES)
_LETTERS_AND_BLANKS = _LETTERS + _BLANKS
"""Everything except punctuation, digits and bytes of other scripts."""
_NO_BREAKS = _BYTES.translate(None, _BLANKS[1:])
# A single space is part of the following word.
_SPACES = re.compile(rb"[ \t-\r\x1c-\x1f]{2,}|[\t-\r\x1c-\x1f]")


class EstimatedCounter:
    """A conservative estimate: every digit and punctuation mark is a token, a word is one for every four letters.

    Byte-pair tokenizers merge punctuation and common words, so real counts are lower on code, JSON and prose: against
    SmolLM2's own tokenizer, on 330 such texts, the median was 1.45 times the real count, and 99 in 100 were above it.
    Text in other scripts counts one token per byte, the most that a byte-level tokenizer can need. Long runs of random
    letters are underestimated, which is why a budget with this counter is called estimated.
    """

    name = "estimate-1"
    exact = False
    digest = ""

    def count(self, text: str) -> int:
        """Estimated tokens of `text`."""
        # On the whole text at once: every prompt is counted many times, so a call per piece would be slow.
        data = text.encode(errors="surrogatepass")
        words = data.translate(_LETTERS_OR_SPACE).split()
        letters = sum([-(-len(word) // LETTERS_PER_TOKEN) for word in words])
        return letters + len(data.translate(None, _LETTERS_AND_BLANKS)) + _spaces(data)


def _spaces(data: bytes) -> int:
    if b"  " not in data and not data.translate(None, _NO_BREAKS):
        return 0
    return sum([-(-len(run) // SPACES_PER_TOKEN) for run in _SPACES.findall(data)])
