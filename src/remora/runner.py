"""One agent, turn by turn: render, decide, call, record, until it submits, reaches a limit, or fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from remora._version import __version__
from remora.analysis import fold_files
from remora.context.contracts import make_error_result
from remora.context.recall import RECALL
from remora.context.text import one_line
from remora.errors import AgentError as AgentError
from remora.errors import DecisionError, RemoraError, ToolError, TraceError
from remora.events import (
    UNRECORDED,
    AgentEndEvent,
    AgentStartEvent,
    Call,
    Event,
    ToolCallEvent,
    ToolResultEvent,
    is_check,
)
from remora.nodes import CodeNode
from remora.ports import AgentResult, Policy, ToolOutput, Tools, Workspace
from remora.subagent import SUBMIT_RESULT_TOOL, CheckRule, SubagentDefinition
from remora.twotrack import ResumeState, TwoTrack, resume_state

_UNKNOWN = "It was interrupted, and nobody knows whether it took effect. It is not run again by itself"
MAX_CALLS = 16
"""Calls of one reply that are made; a notice records the others."""
BEFORE, AFTER = "check-before", "check-after"
"""The ids of the two calls of an agent's check."""


@dataclass(frozen=True)
class Ending:
    """Why a run is over."""

    outcome: Literal["success", "partial", "error", "cancelled", "degraded"]
    reason: str
    summary: str = ""


@dataclass(frozen=True)
class RunLimits:
    """When an agent is stopped, though it has not submitted."""

    max_turns: int
    max_errors: int = 5
    """Failed calls in a row."""
    max_repeats: int = 5
    """Equal calls with equal results in a row."""
    retries: int = 2
    """Turns in a row without a decision, beyond the first."""
    deadline_s: float | None = None


@dataclass(frozen=True)
class CheckResult:
    """What an agent's check says about its files."""

    count: int | None = None
    """How many things are wrong; None where that is not known."""
    problem: str = ""
    """What it calls an error."""
    notes: tuple[str, ...] = ()
    """What else a person should know."""
    seq: int = UNRECORDED
    """The record that this was read from."""

    @classmethod
    def of(cls, event: ToolResultEvent) -> CheckResult:
        found = event.check
        return cls(found.get("count"), found.get("problem", ""), tuple(found.get("notes", ())), event.seq)


class Runner:
    """Runs one agent on one node."""

    def __init__(
        self,
        track: TwoTrack,
        definition: SubagentDefinition,
        node: CodeNode,
        *,
        policy: Policy,
        tools: Tools,
        workspace: Workspace,
        limits: RunLimits,
        model: Mapping[str, Any] | None = None,
        past: Sequence[Event] = (),
        problem: RemoraError | None = None,
    ) -> None:
        """`model`: what the stream says about it. `problem`: why the agent cannot start; the stream ends with it."""
        self.track = track
        self._definition = definition
        self._node = node
        self._policy = policy
        self._tools = tools
        self._workspace = workspace
        self._limits = limits
        self._model = model or {}
        self._past = past
        """What an earlier process recorded of this run."""
        self._problem = problem
        self._state = resume_state(past)
        self._failures = self._state.failures
        self._undecided = self._state.undecided
        self._files = [change for event in past if isinstance(event, ToolResultEvent) for change in event.files]

    async def run(self) -> AgentResult:
        """Run the agent and give its result. The stream is sealed, whatever happened, unless the disk itself failed."""
        try:
            before = await (self._resume() if self._past else self._start())
            if self._state.ended:
                return await self._recorded_result(self._state.ended)
            ending = await self._turns()
            check = await self._verdict(before)
        except asyncio.CancelledError:
            await asyncio.shield(self._finish(Ending("cancelled", "cancelled"), {}))
            raise
        except TraceError as error:
            return self._result(Ending("degraded", "trace", error.message), {})
        return await self._finish(ending, check)

    async def step(self, resumed: ResumeState | None = None) -> Ending | None:
        """One turn. None while the work goes on."""
        prompt = await self.track.request(resumed=resumed)
        try:
            decision = await self._policy.decide(prompt)
        except DecisionError as error:
            return await self._without_decision(error)
        calls = await self.track.response(decision)
        if not calls and not decision.bad:
            return Ending("success", "answered", decision.text)
        self._undecided = 0 if calls else self._undecided + 1
        return await self._act(calls) or self._too_many()

    async def _act(self, calls: Sequence[Call]) -> Ending | None:
        for call in calls[:MAX_CALLS]:
            if call.tool == SUBMIT_RESULT_TOOL:
                await self.track.submit(call)
                return Ending("success", "submitted", str(call.args.get("summary", "")))
            self._note(await self.track.call(call, self._use(call), changes=self._workspace.take_changes))
        if len(calls) > MAX_CALLS:
            await self.track.notice("too_many_calls", f"{len(calls)} calls in one reply: {MAX_CALLS} were made")
        return None

    async def _turns(self) -> Ending:
        try:
            if self._problem is not None:
                raise self._problem
            async with asyncio.timeout(self._limits.deadline_s):
                ending = await self._rest_of_turn()
                while ending is None and self.track.packet.turn < self._limits.max_turns:
                    ending = await self.step()
                return ending or self._stopped("max_turns", f"{self._limits.max_turns} turns")
        except TraceError:
            raise
        except TimeoutError:
            return self._stopped("deadline", f"{self._limits.deadline_s:g} s")
        except RemoraError as error:
            return await self._failed(type(error).__name__, error.message)
        except Exception as error:  # noqa: BLE001 - whatever a policy or a defect of ours raises, the stream is sealed
            return await self._failed("internal_error", f"{type(error).__name__}: {error}")

    async def _rest_of_turn(self) -> Ending | None:
        """What an interrupted run had still to do of its last turn."""
        left = self._state
        if left.failed:
            return Ending("error", left.failed.code, left.failed.message)
        if left.submitted:
            return Ending("success", "submitted", str(left.submitted.result.get("summary", "")))
        if left.answer:
            return Ending("success", "answered", left.answer.text)
        if left.open_call:
            await self._close(left.open_call)
        if self.track.packet.turn == 0:
            await self._context()
        if ending := await self._act(left.calls) or self._too_many():
            return ending
        return await self.step(left) if left.turn_begun else None

    async def _context(self) -> None:
        """Run what tells the model where it stands, before it is asked for the first time."""
        begun = {event.call_id for event in self._past if isinstance(event, ToolCallEvent)}
        calls = [Call(call_id=f"context-{place}", tool=tool) for place, tool in enumerate(self._definition.context)]
        for call in calls:
            if call.call_id not in begun:
                self._note_files(await self.track.call(call, self._use(call), changes=self._workspace.take_changes))

    async def _close(self, intent: ToolCallEvent) -> None:
        """End a call that was interrupted: what can only have touched the workspace is run again, on its old files."""
        call = Call(call_id=intent.call_id, tool=intent.tool, args=intent.args)
        if intent.effects == "outside":
            self._note(await self.track.finish_call(call, _unknown, unknown=True))
            return
        await self.track.notice("run_again", f"{call.tool} was interrupted and is run again")
        self._note(await self.track.finish_call(call, self._use(call), changes=self._workspace.take_changes))

    def _note(self, result: ToolResultEvent) -> None:
        self._note_files(result)
        self._failures = self._failures + 1 if result.outcome in ("error", "unknown") else 0

    def _note_files(self, result: ToolResultEvent) -> None:
        self._files.extend(result.files)

    def _too_many(self) -> Ending | None:
        """An ending, where the agent has gone wrong too often in a row."""
        limits = self._limits
        if self._failures >= limits.max_errors:
            return self._stopped("error_limit", f"{self._failures} failed calls in a row")
        if self.track.repeats >= limits.max_repeats:
            return self._stopped("repeat_limit", f"{self.track.repeats} equal calls with equal results in a row")
        if self._undecided > limits.retries:
            return self._stopped("undecided", f"{self._undecided} replies in a row without a call")
        return None

    async def _without_decision(self, error: DecisionError) -> Ending | None:
        await self.track.undecided(error)
        self._undecided += 1
        if error.ask_again and self._undecided <= self._limits.retries:
            return None
        return await self._failed(error.code, error.message)

    def _stopped(self, reason: str, after: str) -> Ending:
        return Ending("partial", reason, f"Stopped after {after} without `{SUBMIT_RESULT_TOOL}`")

    async def _failed(self, code: str, message: str) -> Ending:
        await self.track.fail(code, message)
        return Ending("error", code, message)

    def _use(self, call: Call) -> Callable[..., Awaitable[Any]]:
        if call.tool == RECALL.name:
            return self.track.recall

        async def use(**args: Any) -> ToolOutput:
            return await self._tools.call(call.tool, args)

        return use

    async def _start(self) -> CheckResult:
        await self.track.start(
            version=__version__,
            node=self._node.record(),
            definition=self._definition.model_dump(mode="json", exclude_defaults=True),
            constraints={"max_turns": self._limits.max_turns, "safety": list(self._definition.safety)},
            model={"policy": self._policy.name, **self._model},
            candidates=self._definition.candidate_actions,
        )
        return await self._check(BEFORE)

    async def _resume(self) -> CheckResult:
        """Continue the stream; the first check is made now if the process ended before its result was recorded."""
        await self.track.resume(self._past, "the process that ran it ended")
        first = self._past[0]
        if isinstance(first, AgentStartEvent) and first.check:  # recorded by a version that had no event for it
            return CheckResult(first.check.get("before"))
        return CheckResult() if self._state.ended else await self._check(BEFORE)

    async def _finish(self, ending: Ending, check: Mapping[str, Any]) -> AgentResult:
        if not self.track.begun:
            return self._result(ending, check)  # cancelled before the start: there is no stream to seal
        end = AgentEndEvent(
            outcome=ending.outcome,
            reason=ending.reason,
            summary=ending.summary,
            verdict=str(check.get("verdict", "")),
            check=dict(check),
        )
        try:
            head = await self.track.end(end)
        except TraceError as error:
            return self._result(Ending("degraded", "trace", error.message), check)
        return self._result(ending, check, head)

    async def _recorded_result(self, end: AgentEndEvent) -> AgentResult:
        """The result of a stream that is sealed already."""
        check = end.check
        if not check and self._definition.check is not None:  # sealed by a version that recorded no check
            first = self._past[0]
            before = first.check.get("before") if isinstance(first, AgentStartEvent) else None
            check = judge(self._definition.check, CheckResult(before), CheckResult(await self.count_problems()))
        return self._result(Ending(end.outcome, end.reason, end.summary), check, await self.track.head())

    def _result(self, ending: Ending, check: Mapping[str, Any], head: str = "") -> AgentResult:
        identity = self.track.identity
        return AgentResult(
            agent_id=identity.agent_id,
            node_id=identity.node_id,
            operation=identity.operation,
            outcome=ending.outcome,
            reason=ending.reason,
            summary=ending.summary,
            turns=self.track.packet.turn,
            largest_prompt=self.track.largest_prompt,
            verdict=str(check.get("verdict", "")),
            check=check,
            head=head,
            last_seq=self.track.last_seq,
            files=fold_files(self._files),
        )

    async def count_problems(self) -> int | None:
        """What the agent's check counts in its files now. Nothing is recorded."""
        rule = self._definition.check
        if rule is None:
            return None
        try:
            output = await self._tools.call(rule.tool, {})
        except ToolError:
            return None
        known = (await self.track.distill(rule.tool, output.value)).delta.knowledge.get(rule.count)
        return known.value if known and isinstance(known.value, int) else None

    async def _check(self, call_id: str) -> CheckResult:
        """Run the agent's check, recorded as evidence, unless its result is recorded already.

        Whatever the tool raises is the check's problem.
        """
        rule = self._definition.check
        if rule is None:
            return CheckResult()
        for event in self._past:
            if isinstance(event, ToolResultEvent) and is_check(event) and event.call_id == call_id:
                return CheckResult.of(event)
        call, intent = Call(call_id=call_id, tool=rule.tool), self._state.open_check
        use, changes = self._use(call), self._workspace.take_changes
        if intent is None or intent.call_id != call_id:
            event = await self.track.check(call, use, rule.count, changes=changes)
        elif intent.effects == "outside":
            event = await self.track.finish_check(call, _unknown, rule.count, unknown=True)
        else:
            await self.track.notice("run_again", f"{call.tool} was interrupted and is run again")
            event = await self.track.finish_check(call, use, rule.count, changes=changes)
        self._note_files(event)
        return CheckResult.of(event)

    async def _verdict(self, before: CheckResult) -> dict[str, Any]:
        """What the files say about the run. Where nothing was changed, the first check still counts."""
        rule = self._definition.check
        if rule is None:
            return {}
        changed = bool(fold_files(self._files))
        after = await self._check(AFTER) if changed or before.seq == UNRECORDED else before
        return judge(rule, before, after) | self._why(after, changed=changed)

    def _why(self, after: CheckResult, *, changed: bool) -> dict[str, Any]:
        """What tools say is left wrong, for a person: of the files, or why there are none. Never the model's word."""
        notes = {"notes": list(after.notes)} if after.notes else {}
        packet = self.track.packet
        latest = packet.last_error or (packet.recent_actions[-1].summary if packet.recent_actions else "")
        why = after.problem if changed else latest or after.problem
        return notes | ({"why": one_line(why)} if why and after.count != 0 else {})


def _unknown(**_args: Any) -> dict[str, Any]:
    return make_error_result(_UNKNOWN)


def judge(rule: CheckRule, before: CheckResult, after: CheckResult) -> dict[str, Any]:
    """What the files say: the counts before and after, a word for them, and the records that prove them."""
    if before.count is None or after.count is None or after.count > before.count:
        verdict = rule.words.get("failed", "failed")
    elif after.count == 0:
        verdict = rule.words.get("clean" if before.count else "was_clean", "clean")
    elif after.count < before.count:
        verdict = rule.words.get("partial", "partial")
    else:
        verdict = rule.words.get("unchanged", "unchanged")
    judged = {"tool": rule.tool, "key": rule.count, "before": before.count, "after": after.count, "verdict": verdict}
    evidence = sorted({check.seq for check in (before, after)} - {UNRECORDED})
    return judged | ({"evidence": evidence} if evidence else {})


def __getattr__(name: str) -> Any:
    """The specification's names that need concrete parts, wired where they are asked for."""
    if name in ("FunctionGemmaRunner", "GrailExecutor"):
        from remora import app

        return getattr(app, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
