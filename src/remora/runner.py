"""One agent, turn by turn: render, decide, call, record, until it submits, reaches a limit, or fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from remora._version import __version__
from remora.analysis import BY_RULE, RungTally, fold_files
from remora.checking import AFTER as AFTER
from remora.checking import BEFORE, Checker, CheckResult, unknown_result
from remora.checking import judge as judge
from remora.config import EscalationConfig
from remora.context.recall import RECALL
from remora.errors import AgentError as AgentError
from remora.errors import CountingFailed, DecisionError, RemoraError, TraceError
from remora.escalation import Climber, Ladder, OneModel
from remora.events import (
    UNRECORDED,
    AgentEndEvent,
    AgentStartEvent,
    Call,
    Event,
    PacketDelta,
    PacketUpdateEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from remora.nodes import CodeNode
from remora.ports import AgentResult, Policy, ToolOutput, Tools, Workspace
from remora.rules import Ruling
from remora.subagent import ESCALATE_TOOL, NO_TOOL_FITS_TOOL, SUBMIT_RESULT_TOOL, SubagentDefinition
from remora.twotrack import ResumeState, Track, has_failed, resume_state

START_SEQ = 0
"""The seq of `agent_start`, which proves a count that another agent's check found."""
MAX_CALLS = 16
"""The runner makes at most this many calls of one reply and records a notice about the rest."""


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
class Advice:
    """A larger model's answer that an agent starts with."""

    source: str
    delta: PacketDelta
    parent: Mapping[str, Any]
    """The stream of the answer, as `agent_start` names it."""


class Runner:
    """Runs one agent on one node."""

    def __init__(
        self,
        track: Track,
        definition: SubagentDefinition,
        node: CodeNode,
        *,
        policy: Policy,
        tools: Tools,
        workspace: Workspace,
        limits: RunLimits,
        ladder: Ladder | None = None,
        rules: EscalationConfig | None = None,
        model: Mapping[str, Any] | None = None,
        past: Sequence[Event] = (),
        problem: RemoraError | None = None,
        resumed: str = "the process that ran it ended",
        advice: Advice | None = None,
        by_rule: bool = True,
        clean_by: str = "",
        abandoned: Callable[[], bool] = lambda: False,
    ) -> None:
        """Prepare a run.

        `policy` decides, until a rule of `rules` moves the agent to another model of `ladder`. `model` describes the
        model in the stream. `past` holds the events of an interrupted run, to resume it; `resumed` says why.
        `problem` is why the agent cannot start; the stream records it and ends. Without `by_rule`, every turn is asked.
        `clean_by` is the agent whose check found no problem in the whole file: then this agent's check need not run.
        If `abandoned` is true when the run is cancelled, the stream stays unsealed, as in a crash, for a resume.
        """
        self.track = track
        self._definition, self._node = definition, node
        self._policy, self._tools = policy, tools
        self._workspace, self._limits = workspace, limits
        self._model, self._past = model or {}, past
        self._problem, self._resumed, self._advice, self._clean_by = problem, resumed, advice, clean_by
        self._state = resume_state(past)
        self._failures, self._undecided = self._state.failures, self._state.undecided
        self._files = [change for event in past if isinstance(event, ToolResultEvent) for change in event.files]
        self._checker = Checker(
            track, definition.check, tools, workspace.take_changes, past, self._state.open_check, self._collect_files
        )
        self._tally = RungTally()
        track.observers.append(self._tally.take)
        self._deciding = self._choose_deciding(ladder, rules or EscalationConfig())
        self._abandoned = abandoned
        self._ruling = Ruling.after(definition, past, enabled=by_rule and advice is None)
        self._found: int | None = None
        """The count of the first check."""

    def _choose_deciding(self, ladder: Ladder | None, rules: EscalationConfig) -> Climber | OneModel:
        if ladder is None or len(ladder.names) < 2:
            return OneModel(self._policy)
        rules = within_limits(rules, self._limits)
        return Climber(self.track, self._policy, ladder, rules, self._checker.run if self._checker.rule else None)

    async def run(self) -> AgentResult:
        """Run the agent and return its result. Seals the stream, unless that fails or the run is abandoned."""
        try:
            before = await (self._resume() if self._past else self._start())
            if self._state.ended:
                return await self._recorded_result(self._state.ended)
            self._found = before.count
            ending = await self._run_turns()
            ruled = [row.rung for row in self._tally.rows] == [BY_RULE]
            check = await self._checker.judge_files(before, changed=bool(fold_files(self._files)), by_rule=ruled)
        except asyncio.CancelledError:
            if not self._abandoned():
                await asyncio.shield(self._finish(Ending("cancelled", "cancelled"), {}))
            raise
        except TraceError as error:
            return self._result(Ending("degraded", "trace", error.message), {})
        return await self._finish(ending, check)

    async def step(self, resumed: ResumeState | None = None) -> Ending | None:
        """Run one turn. Returns None unless the run ends with it."""
        if ruled := self._ruling.decide(self.track.packet, self._found):
            calls = await self.track.rule(ruled.call, ruled.rule, ruled.delta, resumed=resumed)
            return await self._make_calls(calls) or await self._end_turn()
        await self._deciding.before_turn()
        try:
            prompt = await self.track.request(resumed=resumed)
            decision = await self._deciding.decide(prompt)
        except DecisionError as error:
            return await self._record_undecided(error)
        except CountingFailed as error:
            if await self._move_after(self._deciding.after_failure(error.message)):
                return None
            raise
        calls = await self.track.response(decision)
        if not calls and not decision.bad:
            return Ending("success", "answered", decision.text)
        self._undecided = 0 if calls else self._undecided + 1
        return await self._make_calls(calls, are_drafts=bool(decision.drafts)) or await self._end_turn()

    async def _end_turn(self, resumed: ResumeState | None = None) -> Ending | None:
        """Move to another model if a rule demands it. The ending if the agent reached a limit."""
        is_over = resumed is None or not resumed.turn_begun
        if is_over and await self._move_after(self._deciding.after_turn()):
            return None
        return self._limit_reached()

    async def _move_after(self, moving: Awaitable[bool]) -> bool:
        """Await a move. Another model starts with no failures."""
        moved = await moving
        if moved:
            self._failures = self._undecided = 0
        return moved

    async def _make_calls(self, calls: Sequence[Call], *, are_drafts: bool = False) -> Ending | None:
        """Make the calls in turn. Drafts are alternatives: they are made until one succeeds."""
        for call in calls[:MAX_CALLS]:
            if call.tool == SUBMIT_RESULT_TOOL:
                if await self._move_after(self._deciding.before_submit(call)):
                    return None
                await self.track.submit(call)
                return Ending("success", "submitted", str(call.args.get("summary", "")))
            if call.tool == NO_TOOL_FITS_TOOL:
                summary = f"No tool fits: {call.args.get('reason', '')}"
                await self.track.submit(call.model_copy(update={"args": {"summary": summary, "declined": True}}))
                return Ending("partial", NO_TOOL_FITS_TOOL, summary)
            if call.tool == ESCALATE_TOOL:
                await self._move_after(self._deciding.ask(call))
                return None
            result = await self._call(call)
            self._count_result(result, is_last=not are_drafts or call is calls[-1])
            if are_drafts and not has_failed(result):
                break
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
            said, declined = str(left.submitted.result.get("summary", "")), left.submitted.result.get("declined")
            return Ending("partial", NO_TOOL_FITS_TOOL, said) if declined else Ending("success", "submitted", said)
        if left.answer:
            return Ending("success", "answered", left.answer.text)
        if left.open_call:
            await self._finish_interrupted_call(left.open_call)
            left = replace(left, calls=()) if left.are_drafts and not self._failures else left
        if self.track.packet.turn == 0 and not self._ruling.nothing_to_do(self._found):
            await self._run_context_tools()
            await self._take_advice()
        if ending := await self._make_calls(left.calls, are_drafts=left.are_drafts) or await self._end_turn(left):
            return ending
        return await self.step(left) if left.turn_begun else None

    async def _run_context_tools(self) -> None:
        """Run the definition's `context` tools before the first prompt, so that the model sees their results."""
        begun = {event.call_id for event in self._past if isinstance(event, ToolCallEvent)}
        calls = [Call(call_id=f"context-{place}", tool=tool) for place, tool in enumerate(self._definition.context)]
        for call in calls:
            if call.call_id not in begun:
                self._collect_files(await self._call(call))

    async def _take_advice(self) -> None:
        """Record a larger model's answer before the first prompt, once."""
        advice = self._advice
        taken = {event.source for event in self._past if isinstance(event, PacketUpdateEvent)}
        if advice is not None and advice.source not in taken:
            await self.track.update(advice.source, advice.delta)

    async def _finish_interrupted_call(self, intent: ToolCallEvent) -> None:
        """Finish an interrupted call: run it again on its old files if it can only have changed the workspace."""
        call = Call(call_id=intent.call_id, tool=intent.tool, args=intent.args)
        if intent.effects == "outside":
            self._count_result(await self.track.finish_call(call, unknown_result, unknown=True))
            return
        await self.track.notice("run_again", f"{call.tool} was interrupted and is run again")
        self._count_result(
            await self.track.finish_call(call, self._tool_function(call), changes=self._workspace.take_changes)
        )

    def _count_result(self, result: ToolResultEvent, *, is_last: bool = True) -> None:
        self._collect_files(result)
        self._failures = self._failures + is_last if has_failed(result) else 0

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
        moving = self._deciding.after_turn() if error.ask_again else self._deciding.after_failure(error.message)
        if await self._move_after(moving):
            return None
        if error.ask_again and self._undecided <= self._limits.retries:
            return None
        return await self._fail(error.code, error.message)

    def _limit_ending(self, reason: str, after: str) -> Ending:
        return Ending("partial", reason, f"Stopped after {after} without `{SUBMIT_RESULT_TOOL}`")

    async def _fail(self, code: str, message: str) -> Ending:
        await self.track.fail(code, message)
        return Ending("error", code, message)

    async def _call(self, call: Call) -> ToolResultEvent:
        return await self.track.perform(call, self._tool_function(call), changes=self._workspace.take_changes)

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
            definition=self._definition.model_dump(mode="json", by_alias=True, exclude_defaults=True),
            constraints={"max_turns": self._limits.max_turns, "safety": list(self._definition.safety)},
            model={"policy": self._policy.name, **self._model},
            candidates=self._definition.candidate_actions,
            parent=self._advice.parent if self._advice else None,
            check={"before": 0, "by": self._clean_by} if self._clean_by else None,
        )
        return CheckResult(0, seq=START_SEQ) if self._clean_by else await self._checker.run(BEFORE)

    async def _resume(self) -> CheckResult:
        """Continue the stream. Runs the first check if the stream has no result of it."""
        await self.track.resume(self._past, self._resumed)
        await self._deciding.resume()
        first = self._past[0]
        if isinstance(first, AgentStartEvent) and first.check:  # also in streams of older versions, without `by`
            return CheckResult(first.check.get("before"), seq=START_SEQ if first.check.get("by") else UNRECORDED)
        return CheckResult() if self._state.ended else await self._checker.run(BEFORE)

    async def _finish(self, ending: Ending, check: Mapping[str, Any]) -> AgentResult:
        if not self.track.begun:
            return self._result(ending, check)  # cancelled before `agent_start`: there is no stream to seal
        end = AgentEndEvent(**vars(ending), verdict=str(check.get("verdict", "")), check=dict(check))
        try:
            head = await self.track.end(end)
        except TraceError as error:
            return self._result(Ending("degraded", "trace", error.message), check)
        return self._result(ending, check, head)

    async def _recorded_result(self, end: AgentEndEvent) -> AgentResult:
        """The result of a run whose stream is already sealed."""
        # Older versions recorded no check. A cancelled agent was not judged.
        if not (check := end.check) and self._definition.check is not None and end.outcome != "cancelled":
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
            decisions=self._tally.rows,
        )

    async def count_problems(self) -> int | None:
        """Run the agent's check on the current files and return its count, without recording anything."""
        return await self._checker.count_problems()


def within_limits(rules: EscalationConfig, limits: RunLimits) -> EscalationConfig:
    """The rules, so that each moves the agent up before the limit of the same count ends it."""
    most = {"undecided": limits.retries + 1, "repeats": limits.max_repeats, "errors": limits.max_errors}
    given = {name: getattr(rules, name) for name in most}
    return rules.model_copy(update={name: min(given[name], limit) for name, limit in most.items()})


def __getattr__(name: str) -> Any:
    """Import the specification's names from `remora.app` on first use: importing `app` here would be a cycle."""
    if name in ("FunctionGemmaRunner", "GrailExecutor"):
        from remora import app

        return getattr(app, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
