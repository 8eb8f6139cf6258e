"""All built-in summarizers by name, and `auto`, which chooses one by the shape of the result."""

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
    """Like `read_ruff`, but requires an error: an empty list could come from any tool."""
    summarized = read_ruff(raw)
    return summarized if summarized and summarized.knowledge["lint_errors_remaining"] else None


SHAPES: tuple[Read, ...] = (
    _read_ruff_errors,
    read_junit,
    read_pytest,
    read_diff,
    read_mypy,
    read_traceback,
    lambda raw: read_listing(raw) if is_listing(raw) else None,
)
"""From the most specific shape to the least specific. What has none of them is JSON or text."""


def read_auto(raw: Any, *, excerpts: bool = True) -> Summarized:
    """Summarize by the first shape that matches, else as JSON or text."""
    for read in SHAPES:
        if (summarized := read(raw)) is not None:
            return summarized
    return read_json(raw, excerpts=excerpts) or read_text(raw, excerpts=excerpts)


def _read_fallback(raw: Any) -> Summarized:
    """Like `read_auto`, without excerpts: only a tool's author may decide to show raw text."""
    return replace(read_auto(raw, excerpts=False), excerpts=())


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
"""Summarizes results of tools without a registered summarizer."""
