"""Decisions without a model: what an agent does when there is nothing to decide.

Pure functions of the agent's definition, its packet and its first check. The runner records each decision with the
rule that made it, so a stream shows which of its turns a model decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from remora.context.candidates import by_rules
from remora.context.models import DecisionPacket
from remora.events import (
    Call,
    CandidateAction,
    Event,
    KnowledgeDelta,
    ModelResponseEvent,
    PacketDelta,
    UserInputEvent,
    canonical,
)
from remora.subagent import FOLLOW_CANDIDATES, SUBMIT_RESULT_TOOL, SubagentDefinition


@dataclass(frozen=True)
class RuleDecision:
    """A call that needs no model, and the rule that made it, as a sentence."""

    call: Call
    rule: str
    delta: PacketDelta | None = None
    """What the packet learns with it: the count of the agent's check, which no prompt shows."""


@dataclass
class Ruling:
    """Decides the turns of one agent that need no model. Remembers the calls that it made."""

    definition: SubagentDefinition
    made: set[tuple[str, bytes]]
    """Tool and arguments of every call that a rule made. A rule makes the same call only once."""
    enabled: bool = True
    """False if a person or a larger model has spoken to the agent: then there is something to decide. False also if the
    user wants the model to decide everything."""

    @classmethod
    def after(cls, definition: SubagentDefinition, past: Iterable[Event], *, enabled: bool = True) -> Ruling:
        """The rulings of a run that continues after `past`."""
        ruling = cls(definition, set(), enabled)
        for event in past:
            if isinstance(event, UserInputEvent):
                ruling.enabled = False
            elif isinstance(event, ModelResponseEvent) and event.rule:
                ruling.made |= {_key(call) for call in event.calls}
        return ruling

    def nothing_to_do(self, found: int | None) -> bool:
        """Whether the agent can end without a turn of a model. `found` is the count of its first check."""
        check = self.definition.check
        return self.enabled and check is not None and not check.ask_when_clean and found == 0

    def decide(self, packet: DecisionPacket, found: int | None) -> RuleDecision | None:
        """The next call if there is nothing to decide; None if the policy must be asked."""
        if not self.enabled:
            return None
        for decision in (self._end(packet, found), *self._by_definition(packet)):
            if decision is not None and _key(decision.call) not in self.made:
                self.made.add(_key(decision.call))
                return decision
        return None

    def _end(self, packet: DecisionPacket, found: int | None) -> RuleDecision | None:
        """The end, if the agent's check, or its newest count in the packet, says that no problem is left."""
        check = self.definition.check
        if check is None or check.ask_when_clean:
            return None
        if found == 0 and not packet.recent_actions:
            known_now = PacketDelta(knowledge={check.count: KnowledgeDelta(value=0)})
            return _submit(packet, f"Nothing to do: {check.tool} found 0 {_words(check.count)}", known_now)
        known = packet.knowledge.get(check.count)
        if known is None or known.value != 0 or isinstance(known.value, bool):
            return None
        return _submit(packet, _offered_summary(packet) or f"Done: 0 {_words(check.count)}")

    def _by_definition(self, packet: DecisionPacket) -> Iterator[RuleDecision]:
        """The calls of all `decision_rules` that match the knowledge, in their order."""
        known = {name: entry.value for name, entry in packet.knowledge.items()}
        for rule in self.definition.decision_rules:
            for action in by_rules([rule], known):
                chosen = _first_candidate(packet) if action.tool == FOLLOW_CANDIDATES else action
                if chosen is not None:
                    yield RuleDecision(_call(packet, chosen), rule.reason or chosen.reason or f"`{rule.when}` is known")


def _first_candidate(packet: DecisionPacket) -> CandidateAction | None:
    return next(iter(packet.candidate_actions), None)


def _offered_summary(packet: DecisionPacket) -> str:
    """The summary of a `submit_result` that a tool offers."""
    offered = [action.args for action in packet.candidate_actions if action.tool == SUBMIT_RESULT_TOOL]
    return str(offered[0].get("summary", "")) if offered else ""


def _submit(packet: DecisionPacket, summary: str, delta: PacketDelta | None = None) -> RuleDecision:
    action = CandidateAction(tool=SUBMIT_RESULT_TOOL, args={"summary": summary})
    return RuleDecision(_call(packet, action), "no problem is left", delta)


def _call(packet: DecisionPacket, action: CandidateAction) -> Call:
    return Call(call_id=f"rule-{packet.turn + 1}", tool=action.tool, args=dict(action.args))


def _key(call: Call) -> tuple[str, bytes]:
    return call.tool, canonical(call.args)


def _words(key: str) -> str:
    return key.replace("_", " ")
