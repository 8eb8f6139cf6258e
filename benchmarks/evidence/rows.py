"""Memories to compare with: what is sent at a turn, within a number of tokens. All of them keep the task.

Each is a class with `take(step)`, which hears what happened, and `show(budget)`, the text that would be sent now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

import orjson

from benchmarks.evidence.data import UserMessage, output_text
from remora.analysis import AssistantTurn
from remora.events import Call

Count = Callable[[str], int]
Role = Literal["user", "assistant", "tool"]
MASK = "[Old output omitted]"
KEPT_OUTPUTS = 3
"""Outputs that observation masking keeps, where they fit."""
TASK_SHARE = 0.5
"""Of the budget, for a task that is too long."""


class Memory(Protocol):
    """What is remembered of one run."""

    def take(self, step: UserMessage | AssistantTurn) -> None:
        """Something happened."""
        ...

    def show(self, budget: int) -> str:
        """What would be sent now, beside system text and tools."""
        ...


@dataclass(frozen=True)
class Message:
    """One message of a chat."""

    role: Role
    text: str
    tokens: int


class Newest:
    """The task and the newest messages that fit, whole."""

    partial = False

    def __init__(self, goal: str, count: Count) -> None:
        self._goal = goal
        self._count = count
        self.messages: list[Message] = []

    def take(self, step: UserMessage | AssistantTurn) -> None:
        self.messages += messages_of(step, self._count)

    def show(self, budget: int) -> str:
        return self._newest(self.messages, budget)

    def _newest(self, messages: Iterable[Message], budget: int) -> str:
        goal = cut_middle(self._goal, budget, int(budget * TASK_SHARE), self._count)
        room, shown = budget - self._count(goal), []
        for message in reversed(list(messages)):
            if message.tokens > room:
                if self.partial and room > 0:
                    shown.append(message.text[-int(len(message.text) * room / message.tokens) :])
                break
            room -= message.tokens
            shown.append(message.text)
        return "\n".join([goal, *reversed(shown)])


class NewestCut(Newest):
    """As `Newest`, and the end of the first message that does not fit."""

    partial = True


class Masked(Newest):
    """Older outputs replaced by a short text; if that is still too much, the oldest messages go."""

    def show(self, budget: int) -> str:
        outputs = [index for index, message in enumerate(self.messages) if message.role == "tool"]
        mask = Message("tool", MASK, self._count(MASK))
        for kept in range(KEPT_OUTPUTS, 0, -1):
            visible = set(outputs[-kept:])
            shown = [
                message if message.role != "tool" or index in visible else mask
                for index, message in enumerate(self.messages)
            ]
            if sum(message.tokens for message in shown) + self._count(self._goal) <= budget:
                break
        return self._newest(shown, budget) if self.messages else self._newest([], budget)


class CallsFirst(Newest):
    """Task, people's words, all calls with arguments, then the newest outputs that fit."""

    def show(self, budget: int) -> str:
        said = [message for message in self.messages if message.role != "tool"]
        goal = self._newest(said, budget)
        room, shown = budget - self._count(goal), []
        for message in reversed(self.messages):
            if message.role == "tool":
                if message.tokens > room:
                    break
                room -= message.tokens
                shown.append(message.text)
        return "\n".join([goal, *reversed(shown)])

    def take(self, step: UserMessage | AssistantTurn) -> None:
        if isinstance(step, AssistantTurn):
            step = AssistantTurn("", step.calls, step.results, step.by_text)
        super().take(step)


class Everything(Newest):
    """The whole history, whatever it takes: what can be reached at most."""

    def show(self, budget: int) -> str:
        return "\n".join([self._goal, *(message.text for message in self.messages)])


class TaskOnly(Newest):
    """Nothing but the task."""

    def show(self, budget: int) -> str:
        return self._newest([], budget)


def messages_of(step: UserMessage | AssistantTurn, count: Count) -> list[Message]:
    """A step as the messages of a chat."""
    if isinstance(step, UserMessage):
        return [_message("user", step.text, count)]
    # A call that was written as text stands in the message already.
    calls = [
        call_text(call) for call in step.calls if not step.by_text or str(call.args.get("command")) not in step.text
    ]
    found = [_message("assistant", "\n".join([*([step.text] if step.text else []), *calls]), count)]
    results = (step.results[index] for index in range(len(step.calls)) if index in step.results)
    return found + [_message("tool", output_text(result), count) for result in results]


def call_text(call: Call) -> str:
    """A call as it stands in a chat."""
    return f"{call.tool}({orjson.dumps(call.args).decode()})"


def _message(role: Role, text: str, count: Count) -> Message:
    return Message(role, text, count(text))


def cut_middle(text: str, limit: int, share: int, count: Count) -> str:
    """The text, or as much of its head and tail as `share` tokens hold where it takes more than `limit`."""
    tokens = count(text)
    if tokens <= limit:
        return text
    kept = int(len(text) * share / tokens / 2)
    return text[:kept] + " … " + text[-kept:]


ROWS: dict[str, Callable[[str, Count], Memory]] = {
    "task only": TaskOnly,
    "newest messages": Newest,
    "newest, oldest one cut": NewestCut,
    "observation masking": Masked,
    "calls, then newest outputs": CallsFirst,
}
