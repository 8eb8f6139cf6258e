"""A stuck run as a document, for a person or a larger model, within a number of tokens.

It says the goal, where the run stands, what was tried and what came back, and as much evidence of the Long Track as
fits, each with its seq.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remora.analysis._rungs import RungRow
from remora.analysis._turns import StreamSummary, summarize
from remora.context.evidence import call_line, write_account
from remora.context.handover import LongTrack
from remora.context.models import DecisionPacket
from remora.context.projection import project
from remora.context.schema import problems
from remora.context.text import one_line, visible
from remora.errors import BudgetError
from remora.events import CandidateAction, Event, KnowledgeDelta, PacketDelta, ToolResultEvent, canonical
from remora.ports import TokenCounter

MIN_TOKENS = 300
"""Fewest tokens of a document."""
GOAL_SHARE, STATE_SHARE, TRIED_SHARE = 0.25, 0.45, 0.7
"""The document may be this full, as shares of its tokens, after the goal, the state, and what was tried."""
LEAST_EVIDENCE = 40
MAX_VALUE = 300
"""Most characters of a value."""
MAX_CALL = 160
QUESTION = "What should be done next, and why? Name the evidence by its number, such as #12."


@dataclass(frozen=True)
class EscalationDocument:
    """A run as a document within its limit."""

    agent_id: str
    text: str
    tokens: int
    limit: int
    counter: str
    exact: bool
    """Whether the tokens are counted by a model's own tokenizer."""
    last_seq: int = -1
    """The last event that it covers."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What did not fit, by kind."""


def escalation_document(
    events: Sequence[Event], raw: Callable[[ToolResultEvent], Any], tokens: int, counter: TokenCounter
) -> EscalationDocument:
    """Write the document of a stream, at most `tokens` by `counter`. `raw` returns the raw result of an event.

    Raises `BudgetError` for fewer than `MIN_TOKENS`, and `ProjectionStopped`.
    """
    if tokens < MIN_TOKENS:
        raise BudgetError(f"A document of {tokens} tokens is too small: expected at least {MIN_TOKENS}")
    writer = _Writer(summarize(events), project(events), events, raw, tokens, counter.count)
    text, left_out = writer.write()
    return EscalationDocument(
        agent_id=writer.summary.agent_id,
        text=text,
        tokens=counter.count(text),
        limit=tokens,
        counter=counter.name,
        exact=counter.exact,
        last_seq=events[-1].seq if events else -1,
        left_out={name: count for name, count in left_out.items() if count},
    )


class _Writer:
    """Fills the document part by part, each up to its share."""

    def __init__(
        self,
        summary: StreamSummary,
        packet: DecisionPacket,
        events: Sequence[Event],
        raw: Callable[[ToolResultEvent], Any],
        tokens: int,
        count: Callable[[str], int],
    ) -> None:
        self.summary = summary
        self._tokens = tokens
        self._count = count
        target = " on ".join(part for part in (one_line(summary.operation, 40), one_line(summary.node_id, 120)) if part)
        self._title = f"# Stuck: {target or 'a run'} (agent {one_line(summary.agent_id, 40)})"
        self._goal = _clip(visible(summary.goal.strip()) or "Not recorded", int(tokens * GOAL_SHARE), count)
        self._state = list(_state_lines(summary, packet))
        self._tried = list(_tried_lines(summary))
        track = LongTrack(summary.goal)
        for event in events:
            track.take(event, raw(event) if isinstance(event, ToolResultEvent) else None)
        self._evidence = track.evidence

    def write(self) -> tuple[str, dict[str, int]]:
        """The document, and what was left out of it."""
        state = self._most(len(self._state), STATE_SHARE, lambda number: self._text(number, 0, ""))
        tried = self._most(len(self._tried), TRIED_SHARE, lambda number: self._text(state, number, ""))
        left_out = {"state lines": len(self._state) - state, "calls": len(self._tried) - tried}
        room = self._tokens - self._count(self._text(state, tried, "-"))
        while room >= LEAST_EVIDENCE and self._evidence.entries:
            account = write_account("", self._evidence, room, self._count, recalls=False)
            text = self._text(state, tried, account.text)
            if self._count(text) <= self._tokens:
                return text, left_out | {f"evidence {name}": number for name, number in account.left_out.items()}
            room = room * 9 // 10
        text = self._text(state, tried, "")
        hidden = {"evidence items": len(self._evidence.entries) + self._evidence.dropped}
        return _clip(text, self._tokens, self._count), left_out | hidden

    def _most(self, number: int, share: float, text: Callable[[int], str]) -> int:
        """The most lines with which the text takes at most this share of the tokens."""
        low, high = 0, number
        while low < high:
            middle = (low + high + 1) // 2
            if self._count(text(middle)) <= self._tokens * share:
                low = middle
            else:
                high = middle - 1
        return low

    def _text(self, state: int, tried: int, evidence: str) -> str:
        parts = [self._title, "", "## Goal", self._goal, "", "## Where it stands", *self._state[:state]]
        if self._tried:
            gone = len(self._tried) - tried
            parts += [
                "",
                "## What was tried, oldest first",
                *([f"- {gone} earlier calls are left out"] if gone else []),
            ]
            parts += self._tried[gone:]
        if evidence:
            parts += ["", "## What came back. Indented lines are outputs of tools, `#n` is an event", evidence]
        return "\n".join([*parts, "", "## Question", QUESTION, ""])


def _state_lines(summary: StreamSummary, packet: DecisionPacket) -> Iterable[str]:
    """Where the run stands, most important first."""
    ended = f"{summary.outcome} ({summary.reason})" if summary.reason else summary.outcome
    yield f"- Turn {packet.turn}, {one_line(ended, 80)}{_said(summary.summary)}"
    if summary.check:
        check = summary.check
        yield f"- Check: {check.get('before')} → {check.get('after')} {one_line(str(check.get('key')), 60)}"
        if check.get("why"):
            yield f"- The check says: {one_line(str(check['why']), MAX_VALUE)}"
    if packet.last_error:
        yield f"- Last error: {one_line(packet.last_error, MAX_VALUE)}"
    for move in summary.moves:
        yield f"- Ladder {one_line(move, MAX_VALUE)}"
    if summary.files:
        yield f"- Files changed: {one_line(', '.join(change.path for change in summary.files), MAX_VALUE)}"
    if len(summary.decisions) > 1:
        yield f"- Decided by: {', '.join(map(_decided, summary.decisions))}"
    for key, entry in reversed(packet.knowledge.items()):
        value = entry.value if isinstance(entry.value, str) else _json(entry.value)
        source = "" if entry.seq is None else f" (#{entry.seq})"
        yield f"- Known: {one_line(key, 80)} = {one_line(value, MAX_VALUE)}{source}"
    for line in reversed(packet.diagnostics):
        yield f"- Note: {one_line(line, MAX_VALUE)}"


def _clip(text: str, cap: int, count: Callable[[str], int]) -> str:
    """The longest beginning of `text` that takes at most `cap` tokens."""
    if count(text) <= cap:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(f"{text[:middle]}…") <= cap else (low, middle - 1)
    return f"{text[:low].rstrip()}…" if low else ""


def _said(summary: str) -> str:
    return f": {one_line(summary, MAX_VALUE)}" if summary else ""


def _decided(row: RungRow) -> str:
    return f"{one_line(row.rung, 60)} {row.decisions}"


def _tried_lines(summary: StreamSummary) -> Iterable[str]:
    for turn in summary.turns:
        who = f" {one_line(turn.rung, 40)}" if turn.rung else ""
        for call in turn.calls:
            line = one_line(call_line(call.tool, call.args)[0], MAX_CALL)
            yield f"- Turn {turn.turn}{who}, #{call.seq}: {line} → {call.outcome}: {one_line(call.summary, MAX_VALUE)}"
        if turn.submitted is not None:
            yield f"- Turn {turn.turn}{who}, #{turn.last_seq}: submitted: {one_line(turn.submitted, MAX_VALUE)}"


def _json(value: Any) -> str:
    try:
        return canonical(value).decode()
    except (TypeError, ValueError):
        return repr(value)


def answer_delta(result: Mapping[str, Any], tools: Mapping[str, Mapping[str, Any]]) -> PacketDelta:
    """What a larger model's recorded answer changes in a packet: advice, and the next call if one of `tools` fits.

    `tools` are the parameters of the agent's tools by name.
    """
    who, advice = one_line(str(result.get("by", "")), 80), one_line(str(result.get("advice", "")), 2 * MAX_VALUE)
    known = {"advice": KnowledgeDelta(value=advice, pinned=True)} if advice else {}
    tool, args = str(result.get("tool", "")), result.get("args")
    if tool not in tools or not isinstance(args, dict) or problems(tools[tool], args):
        return PacketDelta(knowledge=known)
    action = CandidateAction(tool=tool, args=args, reason=one_line(f"advised by {who}", 120))
    return PacketDelta(knowledge=known, candidate_actions=(action,))
