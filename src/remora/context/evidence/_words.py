"""Words of a text, which of them are identifiers, and roughly how many tokens a text takes."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z0-9_]{3,}|(?<![A-Za-z0-9_])[0-9]{2}(?![A-Za-z0-9_])")
_MIXED = re.compile(r"[A-Za-z_][A-Za-z_]*[0-9]|[0-9]+[A-Za-z_]|[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]|^[0-9]{3,}$")

COMMON = frozenset(
    """the and for are was were with that this from have has had not but you your can will would should all any one two
    its our out what when which who how then than them they there here into also more some such only just been being
    did does done use used using get let see now new yes may please like need want sure thank thanks help could
    about if so or is it to of in on at as be an a i my me we do no""".split()
)
"""Words that many texts share without having anything to do with each other."""

_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ\x80"
_APART = bytes.maketrans(
    bytes(byte for byte in range(256) if byte not in _LETTERS and byte < 128),
    b" " * sum(1 for byte in range(256) if byte not in _LETTERS and byte < 128),
)
_NO_SIGN = _LETTERS + b" "
_LETTERS_A_TOKEN = 5


def words_of(text: str) -> frozenset[str]:
    """Words by which texts can be compared, in lower case, names in code also by their parts."""
    found = set(_WORD.findall(text.lower()))
    if "_" in text:
        found.update([part for word in found if "_" in word for part in word.split("_") if len(part) > 2])
    return frozenset(found - COMMON)


def is_identifier(word: str) -> bool:
    """Whether a word looks like a name that something was given: an id, a number, a name in code."""
    return _MIXED.search(word) is not None


def weigh(text: str) -> int:
    """Roughly the tokens of a text: a sign or digit is one, a word one for every five letters."""
    data = text.encode(errors="replace")
    words = data.translate(_APART).split()
    return len(words) + sum([len(word) // (_LETTERS_A_TOKEN + 1) for word in words]) + len(data.translate(None, _NO_SIGN))
