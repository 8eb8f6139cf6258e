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

_UNKNOWN_OUTCOME = "It was interrupted, and nobody knows whether it took effect. It is not run again by itself"
MAX_CALLS = 16
"""The runner makes at most this many calls of one reply and records a notice about the rest."""
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
    """Limits that stop an agent before it submits."""

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
    """The result of an agent's check."""

    count: int | None = None
    """Number of problems; None if unknown."""
    problem: str = ""
    """The check's error message."""
    notes: tuple[str, ...] = ()
    """Diagnostics of the check, for people."""
    seq: int = UNRECORDED
    """The event that recorded it."""

    @classmethod
    def of(cls, event: ToolResultEvent) -> CheckResult:
        """The result that a recorded check holds."""
        check = event.check
        return cls(check.get("count"), check.get("problem", ""), tuple(check.get("notes", ())), event.seq)


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
        resumed: str = "the process that ran it ended",
    ) -> None:
        """Prepare a run.

        `model` describes the model in the stream. `past` holds the events of an interrupted run, to resume it, and
        `resumed` says why. `problem` is why the agent cannot start; the stream records it and ends.
        """
        self.track = track
        self._definition = definition
        self._node = node
        self._policy = policy
        self._tools = tools
        self._workspace = workspace
        self._limits = limits
        self._model = model or {}
        self._past = past
        self._problem, self._resumed = problem, resumed
        self._state = resume_state(past)
        self._failures = self._state.failures
        self._undecided = self._state.undecided
        self._files = [change for event in past if isinstance(event, ToolResultEvent) for change in event.files]

    async def run(self) -> AgentResult:
        """Run the agent and return its result. Every outcome seals the stream, except a failure to write it."""
        try:
            before = await (self._resume() if self._past else self._start())
            if self._state.ended:
                return await self._recorded_result(self._state.ended)
            ending = await self._run_turns()
            check = await self._judge_files(before)
        except asyncio.CancelledError:
            await asyncio.shield(self._finish(Ending("cancelled", "cancelled"), {}))
            raise
        except TraceError as error:
            return self._result(Ending("degraded", "trace", error.message), {})
        return await self._finish(ending, check)

    async def step(self, resumed: ResumeState | None = None) -> Ending | None:
        """Run one turn. Returns None unless the run ends with it."""
        prompt = await self.track.request(resumed=resumed)
        try:
            decision = await self._policy.decide(prompt)
        except DecisionError as error:
            return await self._record_undecided(error)
        calls = await self.track.response(decision)
        if not calls and not decision.bad:
            return Ending("success", "answered", decision.text)
        self._undecided = 0 if calls else self._undecided + 1
        return await self._make_calls(calls) or self._limit_reached()

    async def _make_calls(self, calls: Sequence[Call]) -> Ending | None:
        for call in calls[:MAX_CALLS]:
            if call.tool == SUBMIT_RESULT_TOOL:
                await self.track.submit(call)
                return Ending("success", "submitted", str(call.args.get("summary", "")))
            self._count_result(await self._call(call))
        if len(calls) > MAX_CALLS:
            await self.track.notice("too_many_calls", f"{len(calls)} calls in one reply: {MAX_CALLS} were made")
        return None

    async def _run_turns(self) -> Ending:
        try:
            if self._problem is not None:
                raise self._problem
            async with asyncio.timeout(self._limits.deadline_s):
                ending = await self._finish_last_turn()
                while ending is None and self.track.packet.turn < self._limits.max_turns:
                    ending = await self.step()
                return ending or self._limit_ending("max_turns", f"{self._limits.max_turns} turns")
        except TraceError:
            raise
        except TimeoutError:
            return self._limit_ending("deadline", f"{self._limits.deadline_s:g} s")
        except RemoraError as error:
            return await self._fail(type(error).__name__, error.message)
        except Exception as error:  # noqa: BLE001 - a policy may raise anything, and the stream must still be sealed
            return await self._fail("internal_error", f"{type(error).__name__}: {error}")

    async def _finish_last_turn(self) -> Ending | None:
        """Finish the last turn of an interrupted run."""
        left = self._state
        if left.failed:
            return Ending("error", left.failed.code, left.failed.message)
        if left.submitted:
            return Ending("success", "submitted", str(left.submitted.result.get("summary", "")))
        if left.answer:
            return Ending("success", "answered", left.answer.text)
        if left.open_call:
            await self._finish_interrupted_call(left.open_call)
        if self.track.packet.turn == 0:
            await self._run_context_tools()
        if ending := await self._make_calls(left.calls) or self._limit_reached():
            return ending
        return await self.step(left) if left.turn_begun else None

    async def _run_context_tools(self) -> None:
        """Run the definition's `context` tools before the first prompt, so that the model sees their results."""
        begun = {event.call_id for event in self._past if isinstance(event, ToolCallEvent)}
        calls = [Call(call_id=f"context-{place}", tool=tool) for place, tool in enumerate(self._definition.context)]
        for call in calls:
            if call.call_id not in begun:
                self._collect_files(await self._call(call))

    async def _finish_interrupted_call(self, intent: ToolCallEvent) -> None:
        """Finish an interrupted call: run it again on its old files if it can only have changed the workspace."""
        call = Call(call_id=intent.call_id, tool=intent.tool, args=intent.args)
        if intent.effects == "outside":
            self._count_result(await self.track.finish_call(call, _unknown_result, unknown=True))
            return
        await self.track.notice("run_again", f"{call.tool} was interrupted and is run again")
        self._count_result(
            await self.track.finish_call(call, self._tool_function(call), changes=self._workspace.take_changes)
        )

    def _count_result(self, result: ToolResultEvent) -> None:
        self._collect_files(result)
        self._failures = self._failures + 1 if result.outcome in ("error", "unknown") else 0

    def _collect_files(self, result: ToolResultEvent) -> None:
        self._files.extend(result.files)

    def _limit_reached(self) -> Ending | None:
        """The ending if the agent reached a limit on consecutive failures, repeats or replies without a call."""
        limits = self._limits
        if self._failures >= limits.max_errors:
            return self._limit_ending("error_limit", f"{self._failures} failed calls in a row")
        if self.track.repeats >= limits.max_repeats:
            return self._limit_ending("repeat_limit", f"{self.track.repeats} equal calls with equal results in a row")
        if self._undecided > limits.retries:
            return self._limit_ending("undecided", f"{self._undecided} replies in a row without a call")
        return None

    async def _record_undecided(self, error: DecisionError) -> Ending | None:
        await self.track.undecided(error)
        self._undecided += 1
        if error.ask_again and self._undecided <= self._limits.retries:
            return None
        return await self._fail(error.code, error.message)

    def _limit_ending(self, reason: str, after: str) -> Ending:
        return Ending("partial", reason, f"Stopped after {after} without `{SUBMIT_RESULT_TOOL}`")

    async def _fail(self, code: str, message: str) -> Ending:
        await self.track.fail(code, message)
        return Ending("error", code, message)

    async def _call(self, call: Call) -> ToolResultEvent:
        return await self.track.call(call, self._tool_function(call), changes=self._workspace.take_changes)

    def _tool_function(self, call: Call) -> Callable[..., Awaitable[Any]]:
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
        """Continue the stream. Runs the first check if the stream has no result of it."""
        await self.track.resume(self._past, self._resumed)
        first = self._past[0]
        if isinstance(first, AgentStartEvent) and first.check:  # older versions recorded no event for it
            return CheckResult(first.check.get("before"))
        return CheckResult() if self._state.ended else await self._check(BEFORE)

    async def _finish(self, ending: Ending, check: Mapping[str, Any]) -> AgentResult:
        if not self.track.begun:
            return self._result(ending, check)  # cancelled before `agent_start`: there is no stream to seal
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
        """The result of a run whose stream is already sealed."""
        check = end.check
        if not check and self._definition.check is not None:  # older versions recorded no check
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
        """Run the agent's check on the current files and return its count, without recording anything."""
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
        """Run the agent's check and record it as evidence, or return the result that is already recorded.

        An exception of the tool becomes the check's `problem`.
        """
        rule = self._definition.check
        if rule is None:
            return CheckResult()
        for event in self._past:
            if isinstance(event, ToolResultEvent) and is_check(event) and event.call_id == call_id:
                return CheckResult.of(event)
        call, intent = Call(call_id=call_id, tool=rule.tool), self._state.open_check
        use, changes = self._tool_function(call), self._workspace.take_changes
        if intent is None or intent.call_id != call_id:
            event = await self.track.check(call, use, rule.count, changes=changes)
        elif intent.effects == "outside":
            event = await self.track.finish_check(call, _unknown_result, rule.count, unknown=True)
        else:
            await self.track.notice("run_again", f"{call.tool} was interrupted and is run again")
            event = await self.track.finish_check(call, use, rule.count, changes=changes)
        self._collect_files(event)
        return CheckResult.of(event)

    async def _judge_files(self, before: CheckResult) -> dict[str, Any]:
        """Judge the run by its files. If no file changed, the first check also counts as the last."""
        rule = self._definition.check
        if rule is None:
            return {}
        changed = bool(fold_files(self._files))
        after = await self._check(AFTER) if changed or before.seq == UNRECORDED else before
        return judge(rule, before, after) | self._explain(after, changed=changed)

    def _explain(self, after: CheckResult, *, changed: bool) -> dict[str, Any]:
        """Explain remaining problems to a person, in the words of tools, never of the model.

        If files changed, the check explains. Otherwise the last tool error or result says why nothing changed.
        """
        notes = {"notes": list(after.notes)} if after.notes else {}
        packet = self.track.packet
        latest = packet.last_error or (packet.recent_actions[-1].summary if packet.recent_actions else "")
        why = after.problem if changed else latest or after.problem
        return notes | ({"why": one_line(why)} if why and after.count != 0 else {})


def _unknown_result(**_args: Any) -> dict[str, Any]:
    return make_error_result(_UNKNOWN_OUTCOME)


def judge(rule: CheckRule, before: CheckResult, after: CheckResult) -> dict[str, Any]:
    """Compare both checks: their counts, the verdict, and the seqs of the events that prove it."""
    if before.count is None or after.count is None or after.count > before.count:
        verdict = rule.words.get("failed", "failed")
    elif after.count == 0:
        verdict = rule.words.get("clean" if before.count else "was_clean", "clean")
    elif after.count < before.count:
        verdict = rule.words.get("partial", "partial")
    else:
        verdict = rule.words.get("unchanged", "unchanged")
    result = {"tool": rule.tool, "key": rule.count, "before": before.count, "after": after.count, "verdict": verdict}
    evidence = sorted({check.seq for check in (before, after)} - {UNRECORDED})
    return result | ({"evidence": evidence} if evidence else {})


def __getattr__(name: str) -> Any:
    """Import the specification's names from `remora.app` on first use: importing `app` here would be a cycle."""
    if name in ("FunctionGemmaRunner", "GrailExecutor"):
        from remora import app

        return getattr(app, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
