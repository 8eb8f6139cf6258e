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
from remora.events import AgentEndEvent, AgentStartEvent, Call, Event, ToolCallEvent, ToolResultEvent
from remora.nodes import CodeNode
from remora.ports import AgentResult, Policy, ToolOutput, Tools, Workspace
from remora.resuming import Standing, standing
from remora.subagent import SUBMIT_RESULT_TOOL, CheckRule, SubagentDefinition
from remora.twotrack import TwoTrack

_UNKNOWN = "It was interrupted, and nobody knows whether it took effect. It is not run again by itself"
MAX_CALLS = 16
"""Calls of one reply that are made; more are told to the model, not made."""


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
class Look:
    """What an agent's check says."""

    count: int | None = None
    """How many things are wrong; None where that is not known."""
    problem: str = ""
    """What it calls an error."""
    notes: tuple[str, ...] = ()
    """What else a person should know."""


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
        told: Mapping[str, Any] | None = None,
        past: Sequence[Event] = (),
        problem: RemoraError | None = None,
    ) -> None:
        """`problem`: why the work cannot go on, where that is known already. It is what the stream ends with."""
        self._track = track
        self._definition = definition
        self._node = node
        self._policy = policy
        self._tools = tools
        self._workspace = workspace
        self._limits = limits
        self._told = told or {}
        self._past = past
        """What an earlier process recorded of this run."""
        self._problem = problem
        self._standing = standing(past)
        self._failures = self._standing.failures
        self._undecided = self._standing.undecided
        self._files = [change for event in past if isinstance(event, ToolResultEvent) for change in event.files]

    async def run(self) -> AgentResult:
        """The agent's result. The stream is sealed, whatever happened, unless the disk itself failed."""
        try:
            before = await (self._take_up() if self._past else self._start())
            ended = self._standing.ended
            ending = Ending(ended.outcome, ended.reason, ended.summary) if ended else await self._turns()
            after = await self.look()
            check = judge(self._definition.check, before, after.count) | self._why(after)
        except asyncio.CancelledError:
            await asyncio.shield(self._finish(Ending("cancelled", "cancelled"), {}))
            raise
        except TraceError as error:
            return self._result(Ending("degraded", "trace", error.message), {})
        return await self._finish(ending, check)

    async def step(self, taken_up: Standing | None = None) -> Ending | None:
        """One turn. None while the work goes on."""
        prompt = await self._track.request(taken_up=taken_up)
        try:
            decision = await self._policy.decide(prompt)
        except DecisionError as error:
            return await self._without_decision(error)
        calls = await self._track.response(decision)
        if not calls and not decision.bad:
            return Ending("success", "answered", decision.text)
        self._undecided = 0 if calls else self._undecided + 1
        return await self._act(calls) or self._too_many()

    async def _act(self, calls: Sequence[Call]) -> Ending | None:
        for call in calls[:MAX_CALLS]:
            if call.tool == SUBMIT_RESULT_TOOL:
                await self._track.submit(call)
                return Ending("success", "submitted", str(call.args.get("summary", "")))
            self._note(await self._track.call(call, self._use(call), changes=self._workspace.take_changes))
        if len(calls) > MAX_CALLS:
            await self._track.notice("too_many_calls", f"{len(calls)} calls in one reply: {MAX_CALLS} were made")
        return None

    async def _turns(self) -> Ending:
        try:
            if self._problem is not None:
                raise self._problem
            async with asyncio.timeout(self._limits.deadline_s):
                ending = await self._rest_of_turn()
                while ending is None and self._track.packet.turn < self._limits.max_turns:
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
        left = self._standing
        if left.failed:
            return Ending("error", left.failed.code, left.failed.message)
        if left.submitted:
            return Ending("success", "submitted", str(left.submitted.result.get("summary", "")))
        if left.answer:
            return Ending("success", "answered", left.answer.text)
        if left.open_call:
            await self._close(left.open_call)
        if self._track.packet.turn == 0:
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
                self._note_files(await self._track.call(call, self._use(call), changes=self._workspace.take_changes))

    async def _close(self, intent: ToolCallEvent) -> None:
        """End a call that was interrupted: what can only have touched the workspace is run again, on its old files."""
        call = Call(call_id=intent.call_id, tool=intent.tool, args=intent.args)
        if intent.effects == "outside":
            self._note(await self._track.ended(call, lambda **_: make_error_result(_UNKNOWN), unknown=True))
            return
        await self._track.notice("run_again", f"{call.tool} was interrupted and is run again")
        self._note(await self._track.ended(call, self._use(call), changes=self._workspace.take_changes))

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
        if self._track.repeats >= limits.max_repeats:
            return self._stopped("repeat_limit", f"{self._track.repeats} equal calls with equal results in a row")
        if self._undecided > limits.retries:
            return self._stopped("undecided", f"{self._undecided} replies in a row without a call")
        return None

    async def _without_decision(self, error: DecisionError) -> Ending | None:
        await self._track.undecided(error)
        self._undecided += 1
        if error.ask_again and self._undecided <= self._limits.retries:
            return None
        return await self._failed(error.code, error.message)

    def _stopped(self, reason: str, after: str) -> Ending:
        return Ending("partial", reason, f"Stopped after {after} without `{SUBMIT_RESULT_TOOL}`")

    async def _failed(self, code: str, message: str) -> Ending:
        await self._track.fail(code, message)
        return Ending("error", code, message)

    def _use(self, call: Call) -> Callable[..., Awaitable[Any]]:
        if call.tool == RECALL.name:
            return self._track.recall

        async def use(**args: Any) -> ToolOutput:
            return await self._tools.call(call.tool, args)

        return use

    async def _start(self) -> int | None:
        before = (await self.look()).count
        await self._track.start(
            version=__version__,
            node=self._node.record(),
            definition=self._definition.model_dump(mode="json", exclude_defaults=True),
            constraints={"max_turns": self._limits.max_turns, "safety": list(self._definition.safety)},
            model={"policy": self._policy.name, **self._told},
            candidates=self._definition.candidate_actions,
            check={} if before is None else {"before": before},
        )
        return before

    async def _take_up(self) -> int | None:
        await self._track.resume(self._past, "the process that ran it ended")
        first = self._past[0]
        return first.check.get("before") if isinstance(first, AgentStartEvent) else None

    async def _finish(self, ending: Ending, check: Mapping[str, Any]) -> AgentResult:
        if not self._track.begun:
            return self._result(ending, check)  # cancelled before the start: there is no stream to seal
        end = AgentEndEvent(outcome=ending.outcome, reason=ending.reason, summary=ending.summary)
        try:
            head = await (self._track.head() if self._standing.ended else self._track.end(end))
        except TraceError as error:
            return self._result(Ending("degraded", "trace", error.message), check)
        return self._result(ending, check, head)

    def _result(self, ending: Ending, check: Mapping[str, Any], head: str = "") -> AgentResult:
        identity = self._track.identity
        return AgentResult(
            agent_id=identity.agent_id,
            node_id=identity.node_id,
            operation=identity.operation,
            outcome=ending.outcome,
            reason=ending.reason,
            summary=ending.summary,
            turns=self._track.packet.turn,
            largest_prompt=self._track.largest_prompt,
            verdict=str(check.get("verdict", "")),
            check=check,
            head=head,
            last_seq=self._track.last_seq,
            files=fold_files(self._files),
        )

    async def look(self) -> Look:
        """What the agent's own check says about its files. Nothing is recorded."""
        rule = self._definition.check
        if rule is None:
            return Look()
        try:
            output = await self._tools.call(rule.tool, {})
        except ToolError as error:
            return Look(problem=error.message)
        delta = (await self._track.distill(rule.tool, output.value)).delta
        found = delta.knowledge.get(rule.count)
        count = found.value if found and isinstance(found.value, int) else None
        return Look(count, (delta.error and delta.error.set) or "", delta.diagnostics)

    def _why(self, after: Look) -> dict[str, Any]:
        """What tools say is left wrong, for a person: of the files, or why there are none. Never the model's word."""
        if self._definition.check is None:
            return {}
        notes = {"notes": list(after.notes)} if after.notes else {}
        packet = self._track.packet
        latest = packet.last_error or (packet.recent_actions[-1].summary if packet.recent_actions else "")
        why = after.problem if fold_files(self._files) else latest or after.problem
        return notes | ({"why": one_line(why)} if why and after.count != 0 else {})


def judge(rule: CheckRule | None, before: int | None, after: int | None) -> dict[str, Any]:
    """What the files say: the numbers before and after, and a word for them."""
    if rule is None:
        return {}
    if before is None or after is None or after > before:
        verdict = rule.words.get("failed", "failed")
    elif after == 0:
        verdict = rule.words.get("clean" if before else "was_clean", "clean")
    elif after < before:
        verdict = rule.words.get("partial", "partial")
    else:
        verdict = rule.words.get("unchanged", "unchanged")
    return {"tool": rule.tool, "key": rule.count, "before": before, "after": after, "verdict": verdict}


def __getattr__(name: str) -> Any:
    """The specification's names that need concrete parts, wired where they are asked for."""
    if name in ("FunctionGemmaRunner", "GrailExecutor"):
        from remora import app

        return getattr(app, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
