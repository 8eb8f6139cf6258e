"""Moves one agent up and down its ladder, and records every move."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from remora.config import EscalationConfig
from remora.context.text import one_line
from remora.errors import AgentError, RemoraError, TraceError
from remora.escalation._ladder import Ladder, Rung, tokens_used
from remora.escalation._rules import LadderState, Move, advance, needs_check, next_move
from remora.events import Call, ErrorDelta, EscalationEvent, Event, ModelRequestEvent, PacketDelta
from remora.ports import Decision, Policy, Prompt
from remora.twotrack import TwoTrack

MAX_SEQS = 200
"""Most seqs that an escalation names of what it handed over."""
NOBODY_LARGER = "No larger model can be asked: continue, or submit what is done"


class OneModel:
    """Decides with one policy. It has no ladder and never moves."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    async def resume(self) -> None:
        """There is no rung to open."""

    async def before_turn(self) -> None:
        """There is no limit to test."""

    async def decide(self, prompt: Prompt) -> Decision:
        """The policy's decision."""
        return await self._policy.decide(prompt)

    async def after_turn(self) -> bool:
        """It never moves."""
        return False

    async def after_failure(self, message: str) -> bool:
        """It never moves."""
        return False

    async def ask(self, call: Call) -> bool:
        """It never moves."""
        return False

    async def before_submit(self, call: Call) -> bool:
        """It never moves."""
        return False


class Climber:
    """Chooses the rung that decides."""

    def __init__(
        self,
        track: TwoTrack,
        policy: Policy,
        ladder: Ladder,
        rules: EscalationConfig,
        check: Callable[[str], Awaitable[object]] | None = None,
    ) -> None:
        """`policy` is the first rung's. `check` runs the agent's check under a call id; None if it has none."""
        self._track = track
        self._policy = policy
        self._ladder = ladder
        self._rules = rules
        self._check = check
        self._rung: Rung | None = None
        """The rung that decides; None for the first."""
        self._lost: set[str] = set()
        self._told: set[str] = set()
        self._asked = ModelRequestEvent()
        self._recorded = ""
        self.state = LadderState()
        track.observers.append(self._observe)

    def _observe(self, event: Event) -> None:
        self.state = advance(self.state, event, self._ladder.names)
        if isinstance(event, ModelRequestEvent):
            self._asked = event
        elif isinstance(event, EscalationEvent):
            self._recorded = event.target

    @property
    def _name(self) -> str:
        """The rung that decides now."""
        return self._ladder.names[self.state.place]

    async def resume(self) -> None:
        """Open the rung that the recorded run stood on. If it cannot be opened, go on with the first one."""
        if self._recorded and self._recorded not in self._ladder.names:
            first = self._ladder.names[0]
            await self._tell(
                "ladder", f"`{self._recorded}` is not a rung of this ladder: the run goes on with `{first}`"
            )
        if self.state.place:
            try:
                await self._use(await self._ladder.open(self._name))
            except TraceError:
                raise
            except RemoraError as error:
                await self.after_failure(error.message)

    async def before_turn(self) -> None:
        """Move down if a limit forbids another decision. Raises `AgentError` if no other rung is left."""
        if self._rung is None or (limit := self._limit(self._rung)) is None:
            return
        if not await self._move_down(*limit):
            raise AgentError(f"No model is left to ask: {limit[1]}", code=limit[0])

    async def decide(self, prompt: Prompt) -> Decision:
        """The decision of the current rung. The meter counts it if the rung is not the first."""
        rung, meter = self._rung, self._ladder.meter
        if rung is None:
            return await self._policy.decide(prompt)
        reserved = rung.highest_price
        meter.reserve(reserved)
        decision = await rung.policy.decide(prompt)  # if it fails, the reserved price stays counted
        if decision.usage:
            meter.settle(reserved, rung.price.of(*tokens_used(self._asked, decision.usage)))
        return decision

    async def after_turn(self) -> bool:
        """Move if a rule demands it. Returns whether the agent moved."""
        if self._check is not None and needs_check(self.state, self._rules):
            await self._check(f"check-{self._track.packet.turn}")
        move = next_move(self.state, self._rules, self._track.repeats, has_check=self._check is not None)
        if move is None:
            return False
        return await (self._move_up(move) if move.direction == "up" else self._move_down(move.rule, move.reason))

    async def after_failure(self, message: str) -> bool:
        """Leave a model that cannot be used: downwards, or upwards from the first. Returns whether the agent moved."""
        self._lost.add(self._name)
        reason = f"`{self._name}` cannot be used: {one_line(message)}"
        return await self._move_down("unreachable", reason) or await self._move_up(Move("up", "unreachable", reason))

    async def ask(self, call: Call) -> bool:
        """Follow the model's own call of `escalate`. Returns whether the agent moved."""
        reason = one_line(str(call.args.get("reason", ""))) or "no reason given"
        if await self._move_up(Move("up", "ask", reason), call.call_id):
            return True
        delta = PacketDelta(error=ErrorDelta(set=NOBODY_LARGER), diagnostics=(NOBODY_LARGER,))
        await self._track.update("escalate", delta)
        return False

    async def before_submit(self, call: Call) -> bool:
        """Move up instead of ending if problems are left and the check never got better. Returns whether it moved."""
        if self._check is None or not self._rules.no_progress:
            return False
        if self.state.unchecked:
            await self._check(f"check-{self._track.packet.turn}")
        if self.state.ever_better or not self.state.best:
            return False
        reason = f"it submitted, and the check is no better than at the start ({self.state.best})"
        return await self._move_up(Move("up", "no_progress", reason), call.call_id)

    def _limit(self, rung: Rung) -> tuple[str, str] | None:
        """The limit that forbids another decision of `rung`, and a sentence about it."""
        if self.state.decisions >= self._rules.max_decisions:
            return "max_decisions", f"the agent has used its {self._rules.max_decisions} decisions of larger models"
        return self._ladder.meter.problem(rung.highest_price)

    async def _move_up(self, move: Move, call_id: str = "") -> bool:
        """Move to the next rung that can be used."""
        above = [name for name in self._ladder.names[self.state.place + 1 :] if name not in self._lost]
        if above and self.state.moves >= self._rules.max_moves:
            await self._tell("max_moves", f"Stuck again ({move.reason}), after {self.state.moves} moves up: no more")
            return False
        for name in above:
            handed = await self._open(name, check_limit=True)
            if handed is not None:
                await self._record("up", name, move, call_id, handed)
                return True
        return False

    async def _move_down(self, rule: str, reason: str) -> bool:
        """Move to the first rung that can be used, below the current one."""
        for name in self._ladder.names[: self.state.place]:
            if name in self._lost:
                continue
            handed: dict[str, Any] | None = {}
            if name == self._ladder.names[0]:
                self._track.use_first_rung()
                self._rung = None
            else:
                handed = await self._open(name, check_limit=False)
            if handed is not None:
                await self._record("down", name, Move("down", rule, reason), "", handed)
                return True
        return False

    async def _open(self, name: str, *, check_limit: bool) -> dict[str, Any] | None:
        """Open a rung and use it. Returns what it is handed; None if it cannot be used, which is recorded."""
        try:
            rung = await self._ladder.open(name)
            if check_limit and (limit := self._limit(rung)):
                await self._tell(limit[0], f"`{name}` was not asked: {limit[1]}")
                return None
            return await self._use(rung)
        except TraceError:
            raise
        except RemoraError as error:
            self._lost.add(name)
            message = f"`{name}` cannot be used, the run goes on without it: {error.message}"
            await self._tell(f"unreachable {name}", message)
            return None

    async def _use(self, rung: Rung) -> dict[str, Any]:
        """Build the next prompts for `rung`. Returns what it is handed."""
        handover = await self._track.use_rung(rung.prompts, rung.counter, rung.tools)
        self._rung = rung
        seqs = [entry.seq for entry in handover.evidence.entries]
        return {
            "limit": rung.prompts.limit,
            "results": len(seqs),
            "seqs": seqs[-MAX_SEQS:],
            "dropped": handover.evidence.dropped,
        }

    async def _record(self, direction: Any, target: str, move: Move, call_id: str, handed: dict[str, Any]) -> None:
        line = f"Taken over from {self._name}: {move.reason}"
        await self._track.escalation(
            EscalationEvent(
                direction=direction,
                source=self._name,
                target=target,
                rule=move.rule,
                reason=move.reason,
                call_id=call_id,
                handed=handed,
                model=dict(self._rung.model) if self._rung else {},
                delta=PacketDelta(diagnostics=(line,)) if direction == "up" else None,
            )
        )

    async def _tell(self, code: str, message: str) -> None:
        """Record a notice, once for each code."""
        if code not in self._told:
            self._told.add(code)
            await self._track.notice("escalation", message)
