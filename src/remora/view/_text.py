"""Templates, and the one way in which text of a stream gets into a page."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from remora._version import __version__
from remora.analysis.reporting.words import milliseconds, seconds
from remora.context.text import one_line
from remora.events import readable, short_id
from remora.view._words import bytes_text, clean


def shown(value: Any) -> Any:
    """A value for a page: text without what looks like a secret and without control characters.

    Every expression of every template goes through this and is then escaped by the template engine.
    """
    if value is None:
        return ""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return clean(value)


def plural(count: int, word: str) -> str:
    """`1 turn`, `10,000 turns`."""
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def when(ts: str) -> str:
    """A time to the second, in UTC."""
    return ts[:19].replace("T", " ")


def by_run(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Rows that follow each other and belong to one run, together."""
    return [(run, list(group)) for run, group in groupby(rows, key=lambda row: str(row["info"].run_id))]


def environment() -> Environment:
    """The templates. Everything in them is escaped unless a template says otherwise; none does for a stream's text."""
    made = Environment(
        loader=PackageLoader("remora.view"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "args": lambda args: " ".join(value if isinstance(value, str) else readable(value) for value in args.values()),
        "bytes": bytes_text,
        "groupby_run": by_run,
        "json": lambda value: value if isinstance(value, str) else readable(value),
        "line": lambda value, limit=200: one_line(str(value), limit),
        "ms": milliseconds,
        "number": "{:,}".format,
        "plural": plural,
        "seconds": seconds,
        "short": short_id,
        "when": when,
    }
    made.globals |= {"version": __version__, "is_export": False}
    return made
