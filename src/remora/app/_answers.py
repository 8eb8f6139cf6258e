"""Answers about recorded runs and the code, for other programs' assistants. Read-only, and each of bounded length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from remora.analysis import markdown
from remora.app._project import Project
from remora.context.patterns import redact_patterns, redact_values
from remora.context.text import one_line
from remora.errors import ConfigError, TraceError
from remora.events import AgentFinishedEvent, Event, RunEndEvent, RunStartEvent, short_id
from remora.trace import Filter, StreamInfo, read_events

MAX_CHARS = 20_000
"""Most characters of an answer."""
MAX_ROWS = 200
CELL = 300
"""Most characters of a text in a row."""


class Answers:
    """Questions about a project. What looks like a secret is redacted in every answer."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def runs(self, limit: int = 20) -> str:
        """The newest runs, one line of JSON each."""
        paths = self._project.library.runs()[::-1]
        return self._rows([self._run(read_events(path, torn_ok=True)) for path in paths[: _most(limit)]], len(paths))

    def agents(
        self, *, run: str = "", node: str = "", operation: str = "", outcome: str = "", since: str = "", limit: int = 50
    ) -> str:
        """The newest agents, one line of JSON each."""
        wanted = Filter(run or None, node or None, operation or None, None, outcome or None, since or None)
        rows, total = self._project.library.newest_agents(wanted, limit=_most(limit))
        newest = sorted(rows, key=lambda row: (row.started, row.stream_id), reverse=True)
        return self._rows([_agent(row) for row in newest], total)

    def show(self, agent: str) -> str:
        """What an agent saw, chose and got, turn by turn."""
        return self._json(self._project.streams.show(agent))

    def packet(self, agent: str, turn: int | None = None) -> str:
        """All that the model knew after a turn, or after the last."""
        return self._json(self._project.streams.packet(agent, turn).model_dump(mode="json", exclude_defaults=True))

    async def explain(self, agent: str, key: str, turn: int | None = None) -> str:
        """The events that set a value of the packet, and the raw result behind the last one."""
        found, raw = await self._project.streams.explain(key, agent, turn)
        return self._json({"explanation": found, "raw": raw[: MAX_CHARS // 2]})

    async def recall(self, agent: str, text: str = "", seq: int | None = None, lines: str = "") -> str:
        """Lines of an agent's raw results that contain a text, or one result by the seq of its event."""
        found = await self._project.streams.recall(agent, text, seq, lines)
        if found["outcome"] == "error":
            raise ConfigError(str(found["error"]))
        parts = [found["summary"], *(excerpt["text"] for excerpt in found["excerpts"])]
        rows = found["result"] if isinstance(found["result"], list) else []
        parts += [f"turn {row['turn']} #{row['seq']} {row['tool']}:{row['line']} {row['text']}" for row in rows]
        return self._text("\n".join(parts))

    def search(self, words: str, *, tool: str = "", outcome: str = "", since: str = "", limit: int = 20) -> str:
        """The newest events that contain every word, one line of JSON each."""
        wanted = Filter(tool=tool or None, outcome=outcome or None, since=since or None)
        hits = self._project.library.search(words, wanted, limit=_most(limit), clean=redact_patterns)
        rows = [
            {"agent": short_id(hit.stream_id.rpartition("/")[2]), "turn": hit.event.turn, "seq": hit.event.seq,
             "type": hit.event.type, "text": one_line(hit.excerpt, CELL)}
            for hit in hits
        ]  # fmt: skip
        return self._rows(rows, len(rows))

    async def report(self, ids: Sequence[str] = (), *, since: str = "") -> str:
        """A report on agents and runs, by default on the latest run, as Markdown."""
        found = await self._project.streams.report(ids, Filter(since=since or None), losses=len(ids) == 1)
        return self._text(markdown(found))

    async def node(self, node_id: str) -> str:
        """What the index knows about a file, class or function, verified against the current file."""
        return self._json((await self._project.hub.query(node_id)).plain())

    def _run(self, events: Iterable[Event]) -> dict[str, Any]:
        row: dict[str, Any] = {}
        outcomes: dict[str, int] = {}
        try:
            for event in events:
                match event:
                    case RunStartEvent():
                        row = {"run": short_id(event.run_id), "started": str(event.ts), "policy": event.policy}
                        row |= {"operations": list(event.operations), "paths": list(event.paths)[:5]}
                    case AgentFinishedEvent():
                        outcomes[event.verdict or event.outcome] = outcomes.get(event.verdict or event.outcome, 0) + 1
                    case RunEndEvent():
                        row["outcome"] = event.outcome
        except TraceError as error:
            row["damage"] = error.message
        return row | {"agents": outcomes}

    def _json(self, value: Any) -> str:
        return self._text(orjson.dumps(redact_values(value), default=_plain).decode())

    def _rows(self, rows: Sequence[dict[str, Any]], total: int) -> str:
        lines = [orjson.dumps(redact_values(row), default=_plain).decode() for row in rows]
        kept: list[str] = []
        room = MAX_CHARS - 100
        for line in lines:
            room -= len(line) + 1
            if room < 0:
                break
            kept.append(line)
        left = total - len(kept)
        if left > 0:
            kept.append(f"… {left:,} more: narrow the question")
        return self._text("\n".join(kept) or "nothing")

    def _text(self, text: str) -> str:
        text = self._project.secrets.clean(redact_values(text))
        if len(text) <= MAX_CHARS:
            return text
        return f"{text[:MAX_CHARS]}\n… {len(text) - MAX_CHARS:,} more characters: narrow the question"


def _most(limit: int) -> int:
    return min(max(1, limit), MAX_ROWS)


def _agent(row: StreamInfo) -> dict[str, Any]:
    found = {
        "agent": short_id(row.agent_id or row.stream_id.rpartition("/")[2]),
        "run": short_id(row.run_id) if row.run_id else "",
        "started": row.started,
        "operation": row.operation,
        "node": row.node_id,
        "name": row.name,
        "goal": one_line(row.goal, CELL),
        "events": row.events,
        "outcome": row.outcome or ("sealed" if row.sealed else "unsealed"),
        "problem": row.problem,
    }
    return {key: value for key, value in found.items() if value}


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", exclude_defaults=True) if callable(dump) else str(value)
