"""All built-in summarizers by name, and the one that chooses among them by a result's shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from remora.context._summaries._base import BuiltIn, Read
from remora.context._summaries._checks import read_mypy, read_ruff
from remora.context._summaries._files import is_listing, read_diff, read_file, read_listing
from remora.context._summaries._generic import read_json, read_text
from remora.context._summaries._tests import read_junit, read_pytest
from remora.context._summaries._traceback import read_traceback
from remora.context.summary import Summarized


def _read_ruff_errors(raw: Any) -> Summarized | None:
    """An empty list could be anything, so ruff must have found something."""
    found = read_ruff(raw)
    return found if found and found.knowledge["lint_errors_remaining"] else None


SHAPES: tuple[Read, ...] = (
    _read_ruff_errors,
    read_junit,
    read_pytest,
    read_diff,
    read_mypy,
    read_traceback,
    lambda raw: read_listing(raw) if is_listing(raw) else None,
    read_json,
)
"""From the most certain shape to the least."""


def read_auto(raw: Any) -> Summarized:
    """By the first shape that fits; any other result is text."""
    return next((found for read in SHAPES if (found := read(raw)) is not None), None) or read_text(raw)


def _read_fallback(raw: Any) -> Summarized:
    """What `auto` says, without its excerpt: to show raw text is for a tool's author to decide."""
    return replace(read_auto(raw), excerpts=())


BUILT_IN: dict[str, BuiltIn] = {
    "auto": BuiltIn("auto", read_auto, read_text),
    **{
        name: BuiltIn(name, read, read_auto)
        for name, read in (
            ("diff", read_diff),
            ("file", read_file),
            ("json", read_json),
            ("junit", read_junit),
            ("listing", read_listing),
            ("mypy", read_mypy),
            ("pytest", read_pytest),
            ("ruff", read_ruff),
            ("text", read_text),
            ("traceback", read_traceback),
        )
    },
}
AUTO = BUILT_IN["auto"]
FALLBACK = BuiltIn("fallback", _read_fallback, read_text)
"""For a result that nobody was registered for."""
