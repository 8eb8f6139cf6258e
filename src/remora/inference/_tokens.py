"""Estimates token counts without the model's tokenizer."""

from __future__ import annotations

import string

_LETTERS = string.ascii_letters.encode()
_BLANKS = b" \t\n\v\f\r\x1c\x1d\x1e\x1f"
_LETTERS_AND_BLANKS = _LETTERS + _BLANKS
"""Everything except punctuation, digits and bytes of other scripts."""
_LETTERS_OR_SPACE = bytes(ord("a") if byte in _LETTERS else 32 for byte in range(256))
_BLANKS_OR_SIGN = bytes(32 if byte == 32 else ord("a") if byte in _BLANKS else ord(".") for byte in range(256))
"""Maps a space to itself, other blanks to `a`, and the rest to a full stop."""
_BLANKS_AS_LETTERS = bytes(ord("a") if byte in _BLANKS else 32 for byte in range(256))


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
        signs = len(data.translate(None, _LETTERS_AND_BLANKS))
        return signs + _quarters(data.translate(_LETTERS_OR_SPACE)) + _spaces(data)


def _quarters(data: bytes) -> int:
    """One for every four letters, or fewer at the end of a run. `data` holds only `a` and spaces."""
    # A run of n letters becomes one `b` for every four, and ends with an `a` if some are left.
    fours = b"%b " % data.replace(b"aaaa", b"b")
    return fours.count(b"b") + fours.count(b"a ")


def _spaces(data: bytes) -> int:
    """One for every four blanks of a run. A single space is part of the following word, and counts nothing."""
    shape = b".%b." % data.translate(_BLANKS_OR_SIGN)
    if b"  " not in shape and b"a" not in shape:
        return 0
    single = shape.count(b" .") - shape.count(b"  .") - shape.count(b"a .")
    return _quarters(data.translate(_BLANKS_AS_LETTERS)) - single
