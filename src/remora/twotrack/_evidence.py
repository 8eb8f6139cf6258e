"""Builds the evidence in deltas: a person's or the agent's words, or a call with its bounded output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remora.context.evidence import Entry, Reading, agent_said, called, person_said, read_output, words_of
from remora.context.render import CHRONOLOGICAL, Style
from remora.context.summarizers import Distilled, raw_result_of, states_outcome
from remora.context.text import one_line
from remora.events import EVIDENCE_VERSION, Call, EvidenceDelta, KnowledgeDelta, PacketDelta

MAX_USER_TEXT = 500
"""Characters of a person's message in packets of styles `json` and `markdown`. The stream has the whole message."""


def user_delta(text: str, style: Style) -> PacketDelta:
    """A delta with a person's words: evidence for styles `account` and `chat`, else the knowledge `user`."""
    if style in CHRONOLOGICAL:
        return with_evidence(PacketDelta(), person_said(0, text))
    return PacketDelta(knowledge={"user": KnowledgeDelta(value=one_line(text, MAX_USER_TEXT), pinned=True)})


def agent_evidence(text: str, delta: PacketDelta | None) -> PacketDelta | None:
    """Add the agent's words to `delta`, the other changes of its reply."""
    return with_evidence(delta or PacketDelta(), agent_said(0, text)) if text.strip() else delta


def call_evidence(call: Call, args: Mapping[str, Any], value: Any, distilled: Distilled, goal: str) -> Entry:
    """The entry of a call and its result: the tool's own summary if it has one, else as much of the output as fits."""
    delta = distilled.delta
    if states_outcome(value) and delta.action is not None:
        failed = distilled.outcome == "error"
        text = (delta.error.set if failed and delta.error else None) or delta.action.summary
        return called(0, call.tool, args, Reading("text", (text,), failed))
    return called(0, call.tool, args, read_output(raw_result_of(value), words_of(goal), args))


def with_evidence(delta: PacketDelta, entry: Entry) -> PacketDelta:
    """Add an entry to the delta."""
    evidence = EvidenceDelta(
        speaker=entry.speaker,
        text=_storable(entry.text),
        call=_storable(entry.call),
        given=tuple(map(_storable, entry.given)),
        lines=tuple(map(_storable, entry.lines)),
        kind=entry.kind,
        failed=entry.failed,
        omitted=entry.omitted,
        identifiers=tuple((_storable(key), _storable(value)) for key, value in entry.identifiers),
    )
    return delta.model_copy(update={"v": EVIDENCE_VERSION, "evidence": evidence})


def _storable(text: str) -> str:
    """The text as JSON can hold it: without lone surrogates."""
    return text if text.isascii() else text.encode(errors="replace").decode()
