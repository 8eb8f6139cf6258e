"""Pictures as SVG, made on the server: tokens over the turns, and the budget of one prompt.

Only numbers and escaped text get into them. Sizes are attributes, not styles, which the content policy would refuse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from markupsafe import Markup, escape

from remora.analysis import PromptPart
from remora.trace import Outline
from remora.view._words import clean

BROADEST = 90
"""A bar is never broader, so that a run of two turns does not become two blocks."""
COLUMNS = 320
"""Columns of the time line. A longer run has several turns in a column."""
WIDTH, HEIGHT = 1000, 100
LOG_FROM = 12
"""If the history has this many times the tokens of the largest prompt, the scale is logarithmic."""
BYTES_PER_TOKEN = 4.0
FAILED, CHANGED, SPOKEN, MOVED = 1, 2, 4, 8
_MARKS = ((FAILED, "failed", "a call failed"), (SPOKEN, "spoken", "a person spoke"), (MOVED, "moved", "another model"))


@dataclass(frozen=True)
class Column:
    """One column of the time line."""

    first: int
    last: int
    tokens: int
    limit: int
    history: int
    flags: int
    tool: str


@dataclass(frozen=True)
class TimeLine:
    """The time line as a picture, with what is said around it."""

    svg: Markup
    top: int
    is_log: bool
    sentence: str
    history: int
    """Tokens that the last turn would have had as chat history, estimated."""
    largest: int
    limit: int
    places: str
    """The first turn of each column, for the script."""


def time_line(outline: Outline, link: Callable[[int], str]) -> TimeLine:
    """Draw the tokens of packet and history over the turns."""
    ratio = outline.prompt_bytes / outline.prompt_tokens if outline.prompt_tokens else BYTES_PER_TOKEN
    columns = _columns(outline, max(ratio, 0.5))
    largest = max((column.tokens for column in columns), default=0)
    history = max((column.history for column in columns), default=0)
    limit = max((column.limit for column in columns), default=0)
    top = max(largest, history, limit, 1)
    is_log = top > LOG_FROM * max(largest, 1)
    scale = _log(top) if is_log else lambda value: HEIGHT * value / top
    of_prompts = f"The largest prompt has {largest:,} tokens{f' of {limit:,}' if limit else ''}. "
    reached = "would have reached" if largest else "reached"
    sentence = f"{of_prompts if largest else ''}Chat history {reached} about {history:,}{'' if largest else ' tokens'}."
    svg = Markup("").join(_draw(columns, scale, link))
    places = " ".join(str(column.first) for column in columns)
    return TimeLine(svg, top, is_log, sentence, history, largest, limit, places)


def _columns(outline: Outline, ratio: float) -> list[Column]:
    begin = int(len(outline) > 0 and not outline.column("turn")[0])  # turn 0 has no prompt
    size = max(1, math.ceil((len(outline) - begin) / COLUMNS))
    return [_column(outline, at, min(at + size, len(outline)), ratio) for at in range(begin, len(outline), size)]


def _column(outline: Outline, first: int, end: int, ratio: float) -> Column:
    turns, tokens, limit, history, flags = (
        outline.column(name)[first:end] for name in ("turn", "tokens", "limit", "history", "flags")
    )
    marks = reduce(or_, flags, 0)
    return Column(turns[0], turns[-1], max(tokens), max(limit), round(max(history) / ratio), marks, outline[first].tool)


def _log(top: int) -> Callable[[int], float]:
    return lambda value: HEIGHT * math.log1p(value) / math.log1p(top)


def _draw(columns: Sequence[Column], scale: Callable[[int], float], link: Callable[[int], str]) -> list[Markup]:
    width = WIDTH / max(len(columns), 1)
    gap = max(min(width * 0.18, 3.0), width - BROADEST)
    parts = [_area(columns, scale, width)]
    for at, column in enumerate(columns):
        x, tall = at * width, scale(column.tokens)
        shapes = Markup('<rect class="hit" x="{:.2f}" y="0" width="{:.2f}" height="{}"/>').format(x, width, HEIGHT)
        shapes += Markup('<rect class="bar" x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}"/>').format(
            x + gap / 2, HEIGHT - tall, max(width - gap, 0.6), tall
        )
        for place, (flag, name, _) in enumerate(_MARKS):
            if column.flags & flag:
                shapes += Markup('<rect class="{}" x="{:.2f}" y="{}" width="{:.2f}" height="3"/>').format(
                    name, x + gap / 2, HEIGHT + 3 + 4 * place, max(width - gap, 1.2)
                )
        parts.append(
            Markup('<a href="{}" tabindex="-1" data-turn="{}"><title>{}</title>{}</a>').format(
                link(column.last), column.last, _title(column), shapes
            )
        )
    if limits := [column.limit for column in columns if column.limit]:
        y = HEIGHT - scale(max(limits))
        parts.append(Markup('<line class="limit" x1="0" x2="{}" y1="{:.2f}" y2="{:.2f}"/>').format(WIDTH, y, y))
    return parts


def _area(columns: Sequence[Column], scale: Callable[[int], float], width: float) -> Markup:
    """The history as an area behind the bars."""
    points = [f"{at * width:.2f},{HEIGHT - scale(column.history):.2f}" for at, column in enumerate(columns)]
    points += [f"{WIDTH},{HEIGHT - scale(columns[-1].history):.2f}"] if columns else []
    return Markup('<polygon class="history" points="0,{} {} {},{}"/>').format(HEIGHT, " ".join(points), WIDTH, HEIGHT)


def _title(column: Column) -> str:
    turns = f"Turn {column.first}" if column.first == column.last else f"Turns {column.first} to {column.last}"
    told = [f"{turns}: {column.tokens:,} tokens{f' of {column.limit:,}' if column.limit else ''}"]
    told += [f"history about {column.history:,}"]
    told += [clean(column.tool)] if column.tool else []
    told += [words for flag, _, words in _MARKS if column.flags & flag]
    return ", ".join(told)


def budget_bar(parts: Sequence[PromptPart], total: int, limit: int) -> Markup:
    """The tokens of a prompt as one bar, part by part, up to its limit."""
    whole, x, shapes = max(limit, total, 1), 0.0, []
    for part in parts:
        if not part.tokens:
            continue
        width = WIDTH * min(part.tokens, whole) / whole
        title = f"{clean(part.name)}: {part.tokens:,} tokens"
        rect = Markup('<rect class="part p-{}" x="{:.2f}" y="0" width="{:.2f}" height="20"><title>{}</title></rect>')
        shapes.append(rect.format(tint(part.name), x, max(width - 1.5, 0.5), title))
        x += width
    return Markup("").join(shapes)


TINTS = (
    *("system", "goal", "task", "account", "evidence", "knowledge", "recent_actions", "candidate_actions"),
    *("excerpts", "hub_context", "last_error", "state_summary", "diagnostics"),
)


def tint(name: str) -> str:
    """The class of a part's colour. Only our own names become one."""
    return str(escape(name)) if name in TINTS else "other"
