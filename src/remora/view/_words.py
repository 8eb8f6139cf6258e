"""Text of a stream as it is shown to people, on a page or in a terminal."""

from __future__ import annotations

from collections.abc import Callable

from remora.context.patterns import redact_patterns
from remora.context.text import visible

Redact = Callable[[str], str]
MAX_TEXT = 200_000
"""Characters of one text. Longer ones are outputs, which are shown by windows."""


def clean(text: str, redact: Redact = redact_patterns) -> str:
    """Text as it is shown: what looks like a secret is redacted, control characters are visible."""
    return visible(redact(text[:MAX_TEXT].replace("\r\n", "\n")))


def clean_after(lead: str, text: str, redact: Redact = redact_patterns) -> str:
    """`text` as it is shown after `lead`: a secret that begins in `lead` is redacted too."""
    before, whole = clean(lead, redact), clean(lead + text, redact)
    same = next((at for at, pair in enumerate(zip(before, whole, strict=False)) if pair[0] != pair[1]), len(before))
    return whole[min(same, len(whole)) :]


def bytes_text(size: int) -> str:
    """A size for people: `812 B`, `11.8 KB`, `50 MB`."""
    amount, unit = float(size), "B"
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:,.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:,.1f} {unit}"
