"""Episodes of synthetic agents: for each turn, the rendered packet and the right call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from remora.context.history import HISTORY
from remora.context.models import CandidateAction, DecisionPacket
from remora.context.projection import EMPTY, apply
from remora.context.render import RENDERERS, Rendered, Style, render
from remora.context.repeat import RepeatGuard
from remora.errors import BudgetError
from remora.events import (
    ActionDelta,
    AgentStartEvent,
    ErrorDelta,
    Excerpt,
    HubDelta,
    HubUpdateEvent,
    KnowledgeDelta,
    PacketDelta,
    ToolResultEvent,
    TurnStartEvent,
    readable,
)
from remora.ports import TokenCounter
from remora.subagent import SUBMIT_RESULT_TOOL
from remora_lab.train._rows import SYNTHETIC, TrainingRow, answer_text
from remora_lab.train.synthetic import _words as words
from remora_lab.train.synthetic._dice import Dice
from remora_lab.train.synthetic._filling import Filling, Stepping
from remora_lab.train.synthetic._judging import Judging
from remora_lab.train.synthetic._producing import Producing
from remora_lab.train.synthetic._seeking import Routing, Seeking
from remora_lab.train.synthetic._sorting import Sorting
from remora_lab.train.synthetic._sweeping import Sweeping
from remora_lab.train.synthetic._working import working
from remora_lab.train.synthetic._world import CallResult, Step, World
from remora_lab.train.synthetic._writing import Writing

Control = Literal["as offered", "shuffled", "planted", "withheld"]
CONTROLS: tuple[Control, ...] = ("as offered", "as offered", "shuffled", "planted", "withheld")
WORLDS: tuple[Callable[[Dice], World], ...] = (
    Sweeping,
    Sweeping,
    Sorting,
    Sorting,
    Sorting,
    Judging,
    Judging,
    Judging,
    Judging,
    Producing,
    Seeking,
    Routing,
    Filling,
    Stepping,
    Writing,
    *[working] * 15,
)
MAX_TURNS = 14
OFFERED = 0.8
"""Share of the results that offer what is right next."""
WANDERING = 0.25
"""Share of the turns in which a wrong call is made, so that what follows a mistake is seen too."""
AGAIN = 0.3
"""Share of the wrong calls that are made once more, so that what follows a stubborn agent is seen too."""
MENU = 0.3
"""Share of the results that offer every way on, where there are several."""
LIMITS = (900, 1100, 1300, 1600, 2000, 3000)
"""Tokens of a prompt by the estimate, which is about half as much again as the real count."""


def synthetic_rows(
    seed: int, rows: int, counter: TokenCounter, *, unseen: bool = False, chats: bool = False
) -> Iterator[TrainingRow]:
    """So many rows of made-up agents. With `unseen`, of words and scenarios that are kept for judging.

    With `chats`, the same episodes as chat history would have shown them.
    """
    made = number = 0
    while made < rows:
        name = f"{'unseen' if unseen else 'made'}-{seed}-{number}"
        number += 1
        for row in episode(name, counter, unseen=unseen, chats=chats):
            if made < rows:
                made += 1
                yield row


def episode(name: str, counter: TokenCounter, *, unseen: bool = False, chats: bool = False) -> Iterator[TrainingRow]:
    """The rows of one run of one made-up agent; the same for the same name."""
    dice = Dice(name, unseen=unseen)
    run = _Run(dice, dice.one(WORLDS)(dice), counter)
    for turn in range(1, MAX_TURNS + 1):
        row, step = run.turn(turn)
        if row is not None and chats:
            yield TrainingRow(f"{name}-chat/{turn}", SYNTHETIC, run.operation, HISTORY, row.chat, row.answer)
        elif row is not None:
            yield TrainingRow(f"{name}/{turn}", SYNTHETIC, run.operation, run.renderer, row.messages, row.answer)
        if step.tool == SUBMIT_RESULT_TOOL:
            return


@dataclass(frozen=True)
class _TurnRow:
    messages: tuple[dict[str, str], ...]
    chat: tuple[dict[str, str], ...]
    answer: str


class _Run:
    """One made-up agent at work."""

    def __init__(self, dice: Dice, world: World, counter: TokenCounter) -> None:
        self._dice, self._world, self._counter = dice, world, counter
        self._style: Style = "markdown" if dice.maybe(0.25) else "json"
        self._system, self._limit = world.system(), dice.one(LIMITS)
        self._repeats = RepeatGuard()
        self.operation = world.title or f"{dice.noun()}_{dice.noun()}"
        self.renderer = RENDERERS[self._style]
        self._packet = self._begun()
        about = "\n".join(filter(None, [self._packet.goal, self._packet.node_summary]))
        self._said = [{"role": "user", "content": about}]
        self._result: dict[str, Any] = {}
        """The latest result as its tool gave it, which the chat has not shown yet."""
        self._slip: Step | None = None
        """The call of the latest turn, where it was wrong."""
        if world.begun:
            self._make(Step(world.looks), 0)

    def turn(self, turn: int) -> tuple[_TurnRow | None, Step]:
        """The turn's prompt and right answer, where the prompt tells it; and the call that was made then."""
        self._packet = apply(self._packet, TurnStartEvent(turn=turn))
        control = self._dice.one(CONTROLS)
        shown = self._packet.model_copy(update={"candidate_actions": self._candidates(control)})
        self._tell(shown)
        right = self._right(shown)
        row = self._row(shown, right)
        step = self._wandered(right) if turn < MAX_TURNS - 4 else right
        if self._dice.maybe(0.05):
            step = self._aside() or step
        if step.tool == SUBMIT_RESULT_TOOL and step is not right:
            step = right
        if step.tool != SUBMIT_RESULT_TOOL:
            self._make(step, turn)
        self._slip = step if step is not right else None
        return row, step

    def _wandered(self, right: Step) -> Step:
        """The right call, or now and then a wrong one: another, or the one that was made just now."""
        wrong = self._world.wrong()
        if self._slip in wrong and self._dice.maybe(AGAIN):
            return self._slip
        return self._dice.one(wrong) if wrong and self._dice.maybe(WANDERING) else right

    def _row(self, shown: DecisionPacket, right: Step) -> _TurnRow | None:
        try:
            made = render(
                shown, system_prompt=self._system, tools=self._world.tools, limit=self._limit,
                counter=self._counter, style=self._style,
            )  # fmt: skip
        except BudgetError:
            return None
        answer = answer_text(right.tool, right.args, self._world.tools)
        chat = ({"role": "system", "content": made.system}, *self._said)
        return _TurnRow(made.messages, chat, answer) if answer and _tells(made, shown, right) else None

    def _tell(self, shown: DecisionPacket) -> None:
        """The chat hears of the latest result, with the candidates that are shown now."""
        if self._result:
            offered = [action.model_dump() for action in shown.candidate_actions]
            text = readable(self._result["value"] | {"candidate_actions": offered})
            self._said.append({"role": "user", "content": f"{self._result['tool']} returned:\n{text}"})
            self._result = {}

    def _right(self, shown: DecisionPacket) -> Step:
        """The first candidate that is right; where none is, what the packet says by itself."""
        fine = self._world.fine()
        for action in shown.candidate_actions:
            step = Step(action.tool, action.args)
            if any(step.like(each) for each in fine):
                return step
        best = fine[0]
        return self._world.submit() if best.tool == SUBMIT_RESULT_TOOL else best

    def _candidates(self, control: Control) -> list[CandidateAction]:
        offered = list(self._packet.candidate_actions)
        if control == "as offered" or (control == "planted" and not offered and self._dice.maybe(0.5)):
            return offered
        if control == "withheld":
            return []
        fine = self._world.fine()
        wrong = [step for step in self._world.wrong() if not any(step.like(each) for each in fine)]
        planted = [self._action(step) for step in self._dice.some(wrong, 1, 2)]
        if control == "planted":
            return [*planted, *(offered if self._dice.maybe(0.6) else [])]
        return self._dice.shuffled([*offered, *planted])

    def _make(self, step: Step, turn: int) -> None:
        told = self._world.do(step)
        self._world.said = told.summary
        failed = told.outcome == "error"
        written = answer_text(step.tool, step.args, self._world.tools) or ""
        self._said.append({"role": "assistant", "content": written})
        value = {"result": told.known, "summary": told.summary, "knowledge_delta": told.known, "outcome": told.outcome}
        self._result = {"tool": step.tool, "value": value | ({"error": told.summary} if failed else {})}
        raw = orjson.dumps([told.summary, told.known], option=orjson.OPT_NON_STR_KEYS)
        delta = PacketDelta(
            action=ActionDelta(tool=step.tool, summary=told.summary, outcome=told.outcome),
            knowledge={key: KnowledgeDelta(value=value) for key, value in self._known(told).items()},
            error=ErrorDelta(set=told.summary) if failed else ErrorDelta(clear=True),
            excerpts=told.excerpts,
            candidate_actions=self._offers() or None,
            state_summary=told.summary if self._dice.maybe(0.1) else None,
        )
        noted = self._repeats.note(step.tool, step.args, raw, delta)
        event = ToolResultEvent(call_id=f"call-{turn}", tool=step.tool, outcome=told.outcome, delta=noted, turn=turn)
        self._packet = apply(self._packet, event)

    def _known(self, told: CallResult) -> dict[str, Any]:
        beside = {self._dice.noun(): self._beside() for _ in range(self._dice.number(0, 2))} if told.known else {}
        taken = {*self._packet.knowledge, *told.known}
        return told.known | {key: value for key, value in beside.items() if key not in taken}

    def _beside(self) -> Any:
        dice = self._dice
        return dice.one((dice.number(0, 99), dice.noun(), dice.path(), [dice.noun(), dice.noun()], dice.maybe(0.5)))

    def _offers(self) -> tuple[CandidateAction, ...]:
        """What a tool with good manners offers: what is right, now and then with more; or every way on."""
        ways = self._world.menu()
        if len(ways) > 1 and self._dice.maybe(MENU):
            return tuple(self._action(step) for step in (ways if self._dice.maybe(0.5) else self._dice.shuffled(ways)))
        if not self._dice.maybe(OFFERED):
            return ()
        fine = self._world.fine()
        return tuple(self._action(step) for step in fine[: self._dice.one((1, 1, 2, 3))])

    def _action(self, step: Step) -> CandidateAction:
        noun = self._dice.noun()
        reasons = (
            f"1 {noun} left",
            f"The {noun} is known",
            f"See the {noun}",
            "Next",
            "1 safe way",
            "Not done yet",
            "See what there is",
            "This is the result",
            "It was told",
            "Open",
        )
        reason = self._world.reason(step) or self._dice.one((*reasons, ""))
        return CandidateAction(tool=step.tool, args=step.args, reason=reason)

    def _aside(self) -> Step | None:
        """A call of a tool that is never needed."""
        own = [tool for tool in self._world.tools if not tool.parameters.get("properties")]
        return Step(self._dice.one(own).name) if own else None

    def _begun(self) -> DecisionPacket:
        dice, world = self._dice, self._world
        first = world.fine()[:1] if dice.maybe(0.7) else []
        node = f"{world.place}:{dice.noun()}" if dice.maybe(0.6) else world.place
        safety = [f"Never touch the {dice.noun()}s.", f"Only this {world.thing} changes."]
        packet = apply(
            EMPTY,
            AgentStartEvent(
                agent_id="a", operation=self.operation, node_id=node, goal=world.goal(),
                node={"summary": f"{dice.one(('function', 'file', 'class', 'method'))} in {world.place}"},
                constraints={"max_turns": dice.number(6, 20), "safety": dice.some(safety, 0, 2)},
                delta=PacketDelta(
                    candidate_actions=tuple(self._action(step) for step in first) or None,
                    excerpts=(Excerpt(label="source", text=dice.lines(3, 9), start_line=dice.number(1, 90)),)
                    if dice.maybe(0.3) else (),
                    extensions={dice.noun(): dice.noun()} if dice.maybe(0.1) else {},
                ),
            ),
        )  # fmt: skip
        about = {"signature": dice.one(words.CODE_LINES), "doc": f"{dice.verb(words.OTHER).title()} a {dice.noun()}."}
        facts = {node: dict(dice.some(list({**about, "callers": dice.number(0, 9)}.items()), 1, 3))}
        return _pulled(packet, facts, dice)


def _pulled(packet: DecisionPacket, facts: dict[str, Any], dice: Dice) -> DecisionPacket:
    """The packet, now and then with facts about code beside it."""
    return apply(packet, HubUpdateEvent(delta=PacketDelta(hub=HubDelta(set=facts)))) if dice.maybe(0.3) else packet


def _tells(made: Rendered, shown: DecisionPacket, right: Step) -> bool:
    """Whether the prompt, shrunk as it is, still holds what decides."""
    gone = made.left_out
    seen = shown.candidate_actions[: len(shown.candidate_actions) - gone.get("candidate_actions", 0)]
    offered = any(Step(each.tool, each.args).like(right) for each in seen)
    if offered and (len(seen) == 1 or not gone.get("knowledge")):
        return True
    if gone.get("knowledge") or gone.get("diagnostics") or gone.get("candidate_actions"):
        return False
    text = made.system + made.user
    return all(_written(value) in text for value in _leaves(right.args)) or right.tool == SUBMIT_RESULT_TOOL


def _written(value: Any) -> str:
    return orjson.dumps(value).decode().strip('"')


def _leaves(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in _leaves(each)]
    return [leaf for each in value for leaf in _leaves(each)] if isinstance(value, list) else [value]
