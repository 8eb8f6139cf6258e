"""Hypothesis strategies for events and packets."""

from __future__ import annotations

from hypothesis import strategies as st

from remora.events import (
    ActionDelta,
    AgentStartEvent,
    CandidateAction,
    ErrorDelta,
    Event,
    Excerpt,
    HubDelta,
    KnowledgeDelta,
    NoticeEvent,
    PacketDelta,
    PacketUpdateEvent,
    ToolResultEvent,
    TurnStartEvent,
    UnknownEvent,
)

# What JSON text can hold exactly: no lone surrogates.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
keys = st.sampled_from(["errors", "fixed", "files", "style", "a", "b"])
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)

knowledge = st.dictionaries(
    keys, st.builds(KnowledgeDelta, value=json_values, supersedes=st.none() | keys, pinned=st.booleans()), max_size=4
)
deltas = st.builds(
    PacketDelta,
    action=st.none()
    | st.builds(ActionDelta, tool=texts, summary=texts, outcome=st.sampled_from(["success", "error", "partial"])),
    knowledge=knowledge,
    error=st.none() | st.builds(ErrorDelta, set=st.none() | texts, clear=st.booleans()),
    diagnostics=st.lists(texts, max_size=4).map(tuple),
    candidate_actions=st.none() | st.lists(st.builds(CandidateAction, tool=texts), max_size=3).map(tuple),
    state_summary=st.none() | texts,
    excerpts=st.lists(st.builds(Excerpt, label=keys, text=texts), max_size=4).map(tuple),
    hub=st.none()
    | st.builds(HubDelta, set=st.dictionaries(keys, json_values, max_size=2), remove=st.lists(keys).map(tuple)),
    extensions=st.dictionaries(keys, json_values, max_size=2),
)

_turns = st.integers(0, 50)
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(AgentStartEvent, agent_id=texts, goal=texts, operation=texts, node_id=texts, delta=st.none() | deltas),
    st.builds(TurnStartEvent, turn=_turns),
    st.builds(
        ToolResultEvent,
        call_id=texts,
        tool=texts,
        outcome=st.just("success"),
        raw=json_values,
        turn=_turns,
        delta=deltas,
    ),
    st.builds(PacketUpdateEvent, turn=_turns, delta=deltas),
    st.builds(NoticeEvent, turn=_turns, code=texts, message=texts),
    st.builds(UnknownEvent, type=st.just("from_the_future"), data=st.dictionaries(texts, json_values, max_size=2)),
)
streams = st.lists(events, max_size=12).map(
    lambda drawn: [event.model_copy(update={"seq": seq}) for seq, event in enumerate(drawn)]
)
