"""Print a run: its command, a row for each of its agents, and the next commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from remora.cli._console import out, say
from remora.cli._render_streams import aligned
from remora.context.text import one_line, visible
from remora.events import AgentFinishedEvent, NoticeEvent, RunEndEvent, RunStartEvent, short_id

if TYPE_CHECKING:
    from remora.events import Event
    from remora.trace import StreamInfo

_TITLES = ("agent", "operation", "what", "verdict", "turns", "tokens", "worker")


def run_agents(run_id: str, events: Iterable[Event], rows: Sequence[StreamInfo]) -> None:
    """Print a run's agents as a table, with the worker of each if they ran on a cluster, and the run's notices."""
    start, end, last = RunStartEvent(), None, ""
    notices = []
    workers: dict[str, str] = {}
    for event in events:
        workers |= {event.agent_id: event.worker} if isinstance(event, AgentFinishedEvent) else {}
        notices += [event.message] if isinstance(event, NoticeEvent) and event.message else []
        start = event if isinstance(event, RunStartEvent) else start
        end = event if isinstance(event, RunEndEvent) else end
        last = event.ts
    say(_headline(run_id, start, end, last), "bold", hang=2)
    if rows:
        titles = _TITLES if any(workers.values()) else _TITLES[:-1]
        cells = [[visible(_cell(row, title, workers)) for title in titles] for row in rows]
        room = out.width if out.is_terminal else 0
        out.out("\n".join(aligned([list(titles), *cells], titles, room)), highlight=False)
    else:
        say("The run has no agent")
    for message in notices:
        say(visible(one_line(message, 2_000)))
    _next(run_id, rows)


def _headline(run_id: str, start: RunStartEvent, end: RunEndEvent | None, last: str) -> str:
    """The run in one line: its operations, who decided, when it began, and how it ended."""
    counts = ", ".join(f"{count} {word}" for word, count in (end.counts if end else {}).items() if count)
    ended = (
        " ".join(filter(None, (end.outcome, f"({counts})" if counts else ""))) if end else f"not ended at {last[:19]}"
    )
    parts = (", ".join(start.operations), start.policy, start.ts[:19].replace("T", " "), ended)
    return " · ".join([f"run {short_id(run_id)}", *filter(None, parts)])


def _cell(row: StreamInfo, title: str, workers: Mapping[str, str]) -> str:
    match title:
        case "worker":
            return workers.get(row.agent_id, "")
        case "agent":
            return short_id(row.agent_id)
        case "what":
            return row.node_id or one_line(" · ".join(filter(None, (row.name, row.goal))), 80)
        case "verdict":
            return row.problem or row.verdict or (row.outcome if row.sealed else "unsealed")
        case "turns" | "tokens":
            return f"{getattr(row, title):,}"
        case _:
            return str(getattr(row, title))


def _next(run_id: str, rows: Sequence[StreamInfo]) -> None:
    short = short_id(run_id)
    steps = [(f"trace show {short_id(rows[0].agent_id)}", "both tracks of an agent, turn by turn")] if rows else []
    if any(row.changes for row in rows):
        steps.append((f"diff {short}", "its open changes"))
    steps += [(f"trace report {short}", "verdicts, tokens, failures"), (f"trace show {short} --events", "every event")]
    wide = max(len(command) for command, _ in steps)
    say("Next:")
    for command, what in steps:
        say(f"  remora {command:<{wide}}  {what}")
