"""Print streams and events as lines that fit the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from remora.cli._console import out, say, tell, value_text
from remora.context.text import number, one_line, visible
from remora.events import short_id

if TYPE_CHECKING:
    from remora.events import Event
    from remora.trace import StreamInfo, TraceEntry

_WIDE = ("agent", "run", "started", "operation", "what", "events", "bytes", "outcome")
_NARROW = ("agent", "started", "operation", "what", "events", "outcome")
_NUMBERS = ("events", "bytes", "turns", "tokens")
WIDE = 110
LEAST = 12
"""Columns that the description of a stream always has."""
GAP = 2
RAW_LINES = 20
_BIG = ("messages", "tools", "definition", "delta", "raw", "parsed")
"""Fields that are printed last, because they are long."""


def streams(rows: Sequence[StreamInfo], *, older: int = 0) -> None:
    """Print one row for each stream. `older` is the number of older streams that are not shown."""
    if not rows:
        tell(["no stream was found"])
        return
    titles = _WIDE if out.width >= WIDE else _NARROW
    cells = [[visible(_cell(row, title)) for title in titles] for row in rows]
    lines = aligned([list(titles), *cells], titles, out.width if out.is_terminal else 0)
    out.out("\n".join(lines), highlight=False)
    if older:
        tell([f"{number(older, 'older stream')} not shown: `--all` shows every one, `--limit` changes the number"])


def _cell(row: StreamInfo, title: str) -> str:
    match title:
        case "agent":
            return short_id(row.agent_id or row.stream_id.rpartition("/")[2])
        case "run":
            return short_id(row.run_id)
        case "started":
            return row.started[5:16].replace("T", " ") if out.width < WIDE else row.started[:19].replace("T", " ")
        case "what":
            return row.node_id or one_line(" · ".join(filter(None, (row.name, row.goal))), 80)
        case "events" | "bytes":
            return f"{getattr(row, title):,}"
        case "outcome":
            return row.problem or (row.outcome if row.sealed else "unsealed")
        case _:
            return str(getattr(row, title))


def aligned(rows: Sequence[Sequence[str]], titles: Sequence[str], room: int) -> list[str]:
    """Rows as lines, with columns as wide as their widest cell. With `room`, `what` gets what the others leave."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    what = titles.index("what")
    others = sum(widths) - widths[what] + GAP * (len(titles) - 1)
    if room:
        widths[what] = min(widths[what], max(room - others, LEAST))
    return ["  ".join(_pad(*cell) for cell in zip(row, widths, titles, strict=True)).rstrip() for row in rows]


def _pad(cell: str, width: int, title: str) -> str:
    if cell_len(cell) > width:
        return set_cell_size(cell, width - 1) + "…"
    space = " " * (width - cell_len(cell))
    return space + cell if title in _NUMBERS else cell + space


def event_line(event: Event) -> None:
    """Print an event in one line that fits the terminal: time, turn, type, and its fields as JSON."""
    lead = f"{event.seq:>4}  {event.ts[11:23]}  turn {event.turn:<3} {event.type:<14} "
    say(lead + one_line(_fields(event), max(out.width - len(lead), 24)))


def _fields(event: Event) -> str:
    try:
        body = event.model_dump(mode="json", exclude_defaults=True, exclude=set(type(event).ENVELOPE))
    except ValueError as error:  # a foreign record may be nested deeper than pydantic writes
        return f"cannot be shown: {error}"
    ordered = sorted(body.items(), key=lambda item: item[0] in _BIG or item[0].endswith("_sha256"))
    return " ".join(f"{name}={value_text(value)}" for name, value in ordered if name != "messages")


def trace_entries(found: Sequence[TraceEntry] | Sequence[str]) -> None:
    """Print what a key of the trace store holds: trace keys, or tool calls with their results."""
    for each in found:
        if isinstance(each, str):
            say(each)
            continue
        say(f"turn {each.turn}  {each.timestamp[11:23]}  {each.tool} {one_line(value_text(each.args), 100)}", "bold")
        for line in value_text(each.raw_output).splitlines()[:RAW_LINES]:
            say(f"    {line[: max(out.width - 4, 40)]}")
    if not found:
        say("No turn in which a tool was called")
