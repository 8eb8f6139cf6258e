"""Drafts are alternatives: their calls are made until one succeeds, also after a crash."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from remora.app import SystemClock
from remora.context.contracts import ToolSpec
from remora.errors import DefinitionError
from remora.events import Call, Event, ModelRequestEvent, ModelResponseEvent, ToolResultEvent
from remora.inference import EstimatedCounter, FirstCandidatePolicy
from remora.ports import Decision, Prompt, ToolOutput
from remora.scripts import load_scripts
from remora.subagent import DraftRule, SubagentDefinition
from remora.testing import ScriptedModel
from remora.twotrack import Identity, PromptSettings, Rules, Wiring, rederive, resume_state
from test_runner import CountingTools, Stage

TEXTS = ("Bad one.", "Good one.", "Good two.")
RULE = DraftRule(tool="write_note", argument="text", system_prompt="Write a sentence.")
AGENT = SubagentDefinition(
    name="notes",
    goal="Note {node}",
    system_prompt="Note it.",
    tools=[{"name": "write_note"}, {"name": "look"}],
    context=["look"],
    drafts=[RULE],
)


class Notes(CountingTools):
    """A tool that refuses bad texts."""

    specs = (ToolSpec(name="write_note", effects="workspace"), ToolSpec(name="look", effects="none"))

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        if name == "look":
            code = {"label": "code", "text": "def f():\n    pass", "start_line": 1}
            return ToolOutput({"summary": "seen", "excerpts": [code]})
        if args["text"].startswith("Bad"):
            return ToolOutput({"summary": "refused", "outcome": "error", "error": "It is bad"})
        self.written.append(args["text"])
        return ToolOutput({"summary": "written"})


def drafted(*texts: str) -> Decision:
    calls = [
        Call(call_id=f"call-1-{place}", tool="write_note", args={"text": text}) for place, text in enumerate(texts)
    ]
    return Decision(tuple(calls), text=texts[0], drafts=tuple({"text": text} for text in texts), finish="stop")


def stage_of(policy: Any, **more: Any) -> Stage:
    return Stage(policy, tools=Notes(), definition=AGENT, **more)


async def test_the_first_draft_that_the_tool_takes_is_the_last_that_is_made() -> None:
    stage = stage_of(ScriptedModel(drafted(*TEXTS), ("submit_result", {"summary": "done"})))
    await stage.run()
    events = await stage.events()
    assert stage.tools.written == ["Good one."]
    results = [event.outcome for event in events if isinstance(event, ToolResultEvent) and event.tool == "write_note"]
    assert results == ["error", "success"]
    (reply,) = [event for event in events if isinstance(event, ModelResponseEvent) and event.drafts]
    assert [draft["text"] for draft in reply.drafts] == list(TEXTS)


async def test_refused_drafts_of_one_turn_are_one_failure_in_the_run_and_after_a_crash() -> None:
    bad = drafted("Bad one.", "Bad two.", "Bad three.")
    stage = stage_of(ScriptedModel(bad, drafted("Bad four.", "Bad five."), ("submit_result", {"summary": "done"})))
    ending = await stage.run()
    assert ending.reason == "submitted"  # and not `error_limit`
    events = await stage.events()
    counts = [resume_state(events[: place + 1]).failures for place, event in enumerate(events) if is_note(event)]
    assert counts == [0, 0, 1, 1, 2]


def is_note(event: Event) -> bool:
    return isinstance(event, ToolResultEvent) and event.tool == "write_note"


async def test_calls_that_are_no_drafts_are_all_made() -> None:
    decision = drafted("Good one.", "Good two.")
    plain = Decision(decision.calls, text=decision.text)
    stage = stage_of(ScriptedModel(plain, ("submit_result", {"summary": "done"})))
    await stage.run()
    assert stage.tools.written == ["Good one.", "Good two."]


@pytest.mark.parametrize("last", ["model_response", "tool_call", "tool_result"])
async def test_a_run_that_was_killed_among_its_drafts_makes_one_of_them(last: str) -> None:
    whole = stage_of(ScriptedModel(drafted(*TEXTS), ("submit_result", {"summary": "done"})))
    await whole.run()
    events = await whole.events()
    asked = next(place for place, event in enumerate(events) if event.type == "model_response")
    places = [place for place, event in enumerate(events) if event.type == last and place >= asked]
    for place in places[: 1 if last == "model_response" else None]:
        stage = stage_of(ScriptedModel(("submit_result", {"summary": "done"})), past=events[: place + 1])
        await stage.run()
        done = ["Good one."] if last == "tool_result" and place == places[-1] else []
        assert [*done, *stage.tools.written] == ["Good one."], (last, place)


async def test_the_state_of_a_run_knows_that_its_open_calls_are_alternatives() -> None:
    stage = stage_of(ScriptedModel(drafted(*TEXTS), ("submit_result", {"summary": "done"})))
    await stage.run()
    events = await stage.events()
    place = next(place for place, event in enumerate(events) if isinstance(event, ModelResponseEvent))
    state = resume_state(events[: place + 1])
    assert state.are_drafts
    assert [call.args["text"] for call in state.calls] == list(TEXTS)


async def test_a_prompt_for_a_draft_offers_its_tool_alone_and_the_receipt_names_its_renderer() -> None:
    asked: list[Prompt] = []

    class Asked(FirstCandidatePolicy):
        async def decide(self, prompt: Prompt) -> Decision:
            asked.append(prompt)
            return await super().decide(prompt)

    stage = stage_of(Asked(), drafts=(RULE,))
    await stage.run()
    (receipt, *_) = [event for event in await stage.events() if isinstance(event, ModelRequestEvent)]
    assert (receipt.renderer, receipt.offered) == ("draft-1", ("write_note",))
    assert receipt.tokens["total"] <= receipt.limit
    assert asked[0].drafting is not None
    assert asked[0].drafting.argument == "text"
    assert asked[0].messages[0] == {"role": "system", "content": "Write a sentence."}
    assert "def f():" in asked[0].text


async def test_other_rules_for_packets_leave_the_prompt_of_a_draft_as_it_was() -> None:
    stage = stage_of(FirstCandidatePolicy(), drafts=(RULE,))
    await stage.run()
    wiring = Wiring(
        identity=Identity("01M7AGENT"),
        goal="Fix a.py:f",
        prompts=PromptSettings(0),
        writer=stage.writer,
        blobs=stage.blobs,
        counter=EstimatedCounter(),
        clock=SystemClock(),
    )
    steps = [step async for step in rederive(await stage.events(), wiring, Rules(style="markdown"))]
    asked = [(step.recorded, step.event) for step in steps if isinstance(step.recorded, ModelRequestEvent)]
    assert "draft-1" in [recorded.renderer for recorded, _ in asked]
    assert all(recorded == event for recorded, event in asked if recorded.renderer == "draft-1")


def test_a_draft_for_an_argument_that_its_tool_does_not_have_is_refused_when_the_agent_is_loaded(
    tmp_path: Path,
) -> None:
    (tmp_path / "write_note.pym").write_text(
        'from remora.scripts import Input\n\nnote: str = Input("note")\n{"summary": note}\n'
    )
    definition = AGENT.model_copy(update={"tools": AGENT.tools[:1], "context": ()})
    with pytest.raises(
        DefinitionError, match=r"drafts\[0\].argument: `write_note` has no input `text`: expected one of `note`"
    ):
        load_scripts(tmp_path, definition)
