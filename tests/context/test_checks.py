from __future__ import annotations

from pydantic import BaseModel

from remora.context.checks import MAX_DELTA_BYTES, checked
from remora.context.contracts import ToolSpec
from remora.events import CandidateAction, PacketDelta, canonical

TOOL = ToolSpec(
    name="apply_fix",
    parameters={"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
)
SCHEMA = {"phase": {"enum": ["read", "write"]}, "seen": {"type": "array", "items": {"type": "integer"}}}


def test_what_fits_is_left_as_it_is() -> None:
    delta = PacketDelta(
        candidate_actions=(CandidateAction(tool="apply_fix", args={"code": "F401"}),),
        extensions={"phase": "read", "seen": [1, 2]},
    )
    assert checked(delta, [TOOL], SCHEMA) == delta


def test_a_candidate_that_its_tool_would_refuse_is_dropped_and_told() -> None:
    proposed = (
        CandidateAction(tool="apply_fix"),
        CandidateAction(tool="rm"),
        CandidateAction(tool="apply_fix", args={"code": "X"}),
    )
    delta = checked(PacketDelta(candidate_actions=proposed), [TOOL], {})
    assert delta.candidate_actions == proposed[2:]
    assert delta.diagnostics == (
        "Candidate apply_fix was dropped: `code` is missing",
        "Candidate rm was dropped: no such tool",
    )


def test_an_extension_that_does_not_fit_is_refused_and_changes_nothing() -> None:
    delta = checked(PacketDelta(extensions={"phase": "sing", "seen": [1], "more": 1}), [], SCHEMA)
    assert delta.extensions == {"seen": [1]}
    assert delta.diagnostics == (
        "Extension phase was refused: `phase`: expected one of 'read', 'write', got 'sing'",
        "Extension more was refused: the agent has no such extension",
    )


def test_whatever_a_tool_gives_the_delta_keeps_its_size() -> None:
    huge = PacketDelta.model_validate(
        {
            "action": {"tool": "t", "summary": "s", "outcome": "success"},
            "excerpts": [{"label": str(n), "text": "é" * 300_000} for n in range(9)],
            "diagnostics": ["d" * 200] * 100_000,
            "extensions": {"seen": [1] * 100_000},
            "candidate_actions": [{"tool": "apply_fix", "args": {"code": "x" * 9_000}}] * 90,
            "knowledge": {str(n): {"value": "v" * 9_000} for n in range(90)},
        }
    )
    delta = checked(huge, [TOOL], SCHEMA, ["first"])
    assert len(canonical(delta)) <= MAX_DELTA_BYTES
    assert delta.action == huge.action
    assert delta.diagnostics


def test_an_extension_may_be_a_model_in_python() -> None:
    class Progress(BaseModel):
        done: int
        of: int

    good = PacketDelta(extensions={"progress": {"done": 1, "of": 2}})
    assert checked(good, [], {"progress": Progress}) == good
    bad = checked(PacketDelta(extensions={"progress": {"done": "many"}}), [], {"progress": Progress})
    assert bad.extensions == {}
    assert "Extension progress was refused: done: Input should be a valid integer" in bad.diagnostics[0]
