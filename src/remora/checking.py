"""An agent's check: judges its work by the files, never by the model's claims."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remora.context.contracts import make_error_result
from remora.context.models import DecisionPacket
from remora.context.text import one_line
from remora.errors import ToolError
from remora.events import UNRECORDED, Call, Event, ToolCallEvent, ToolResultEvent, is_check
from remora.ports import ToolOutput, Tools, Written
from remora.subagent import CheckRule
from remora.twotrack import Track

UNKNOWN_OUTCOME = "It was interrupted, and nobody knows whether it took effect. It is not run again by itself"
NOTHING_FOUND, DECIDED_BY_RULE = "nothing to do", "decided by rule"
UNSAFE = "unsafe"
"""The verdict of work that may change behaviour."""
BEFORE, AFTER = "check-before", "check-after"
"""The ids of the first and the last call of an agent's check."""


@dataclass(frozen=True)
class CheckResult:
    """The result of an agent's check."""

    count: int | None = None
    """Number of problems; None if unknown."""
    problem: str = ""
    """The check's error message."""
    notes: tuple[str, ...] = ()
    """Diagnostics of the check, for people."""
    seq: int = UNRECORDED
    """The event that recorded it."""
    said: str = ""
    """The summary of a check without problems."""

    @classmethod
    def of(cls, event: ToolResultEvent) -> CheckResult:
        """The result that a recorded check holds."""
        check = event.check
        return cls(
            check.get("count"),
            check.get("problem", ""),
            tuple(check.get("notes", ())),
            event.seq,
            check.get("said", ""),
        )


@dataclass(frozen=True)
class Checker:
    """Runs the check of one agent and records it."""

    track: Track
    rule: CheckRule | None
    tools: Tools
    take_changes: Callable[[], Sequence[Written]]
    past: Sequence[Event] = ()
    """Events of an interrupted run. A check that they hold is not run again."""
    interrupted: ToolCallEvent | None = None
    """A check with a recorded intent and no result."""
    collect: Callable[[ToolResultEvent], None] = lambda event: None
    """Called with the event of each new check."""

    async def run(self, call_id: str) -> CheckResult:
        """Run the check and record it, or return the recorded result. A tool's exception becomes its `problem`."""
        if self.rule is None:
            return CheckResult()
        for event in self.past:
            if isinstance(event, ToolResultEvent) and is_check(event) and event.call_id == call_id:
                return CheckResult.of(event)
        event = await self._run(self.rule, Call(call_id=call_id, tool=self.rule.tool))
        self.collect(event)
        return CheckResult.of(event)

    async def _run(self, rule: CheckRule, call: Call) -> ToolResultEvent:
        intent, use = self.interrupted, self._tool_function(call.tool)
        if intent is None or intent.call_id != call.call_id:
            return await self.track.check(call, use, rule.count, changes=self.take_changes)
        if intent.effects == "outside":
            return await self.track.finish_check(call, unknown_result, rule.count, unknown=True)
        await self.track.notice("run_again", f"{call.tool} was interrupted and is run again")
        return await self.track.finish_check(call, use, rule.count, changes=self.take_changes)

    def _tool_function(self, tool: str) -> Callable[..., Awaitable[ToolOutput]]:
        async def use(**args: Any) -> ToolOutput:
            return await self.tools.call(tool, args)

        return use

    async def count_problems(self) -> int | None:
        """Run the check on the current files and return its count, without recording anything."""
        if self.rule is None:
            return None
        try:
            output = await self.tools.call(self.rule.tool, {})
        except ToolError:
            return None
        known = (await self.track.distill(self.rule.tool, output.value)).delta.knowledge.get(self.rule.count)
        return known.value if known and isinstance(known.value, int) else None

    async def judge_files(self, before: CheckResult, *, changed: bool, by_rule: bool = False) -> dict[str, Any]:
        """Judge the run by its files. If no file changed, the first check also counts as the last.

        `by_rule` says that no model was asked.
        """
        if self.rule is None:
            return {}
        after = await self.run(AFTER) if changed or before.seq == UNRECORDED else before
        known = self.track.packet.knowledge.get(self.rule.unsafe) if changed else None
        unsafe = known.value if known and isinstance(known.value, int) else 0
        verdict = judge(self.rule, before, after, changed=changed, unsafe=unsafe)
        return verdict | explain(after, self.track.packet, changed=changed, by_rule=by_rule)


def unknown_result(**_args: Any) -> dict[str, Any]:
    """The result of an interrupted call that may have had effects outside the workspace."""
    return make_error_result(UNKNOWN_OUTCOME)


def explain(after: CheckResult, packet: DecisionPacket, *, changed: bool, by_rule: bool = False) -> dict[str, Any]:
    """Explain a verdict to a person, in the words of tools, never of the model.

    If files changed and problems are left, the check explains; also if it found none and no tool was called.
    Otherwise the last tool error or result does.
    `by_rule` says that no model was asked.
    """
    notes: Mapping[str, Any] = {"notes": list(after.notes)} if after.notes else {}
    last = packet.recent_actions[-1].summary if packet.recent_actions else ""
    why = after.problem or last if changed else packet.last_error or last or after.problem
    if after.count == 0:
        why = last or after.said or NOTHING_FOUND
    return {**notes, "why": ", ".join(filter(None, (one_line(why), DECIDED_BY_RULE if by_rule else "")))}


def judge(
    rule: CheckRule, before: CheckResult, after: CheckResult, *, changed: bool = False, unsafe: int = 0
) -> dict[str, Any]:
    """Compare both checks: their counts, the verdict, and the seqs of the events that prove it.

    `changed` says whether files changed: code without a problem can be changed too. `unsafe` counts fixes that may
    change behaviour.
    """
    if before.count is None or after.count is None or after.count > before.count:
        verdict = rule.words.get("failed", "failed")
    elif unsafe:
        verdict = UNSAFE
    elif after.count == before.count == 0 and changed and "changed" in rule.words:
        verdict = rule.words["changed"]
    elif after.count == 0:
        verdict = rule.words.get("clean" if before.count else "was_clean", "clean")
    elif after.count < before.count:
        verdict = rule.words.get("partial", "partial")
    else:
        verdict = rule.words.get("unchanged", "unchanged")
    result = {"tool": rule.tool, "key": rule.count, "before": before.count, "after": after.count, "verdict": verdict}
    result |= {"unsafe": unsafe} if unsafe else {}
    evidence = sorted({check.seq for check in (before, after)} - {UNRECORDED})
    return result | ({"evidence": evidence} if evidence else {})
