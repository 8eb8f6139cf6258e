"""Steps of a conversation: what people said, and the agent's turns with the results of their calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remora.events import Call

WINDOW = 64
"""Steps that wait for the results of an earlier turn. A result that comes later than that finds no call."""
MAX_CALLS = 1024
"""Calls of one turn."""


@dataclass(frozen=True)
class UserMessage:
    """A message that is not the assistant's."""

    text: str
    fixed: bool = False
    """Whether every prompt begins with it: a system message or a demonstration."""
    meta: bool = False
    """Whether a program wrote it, so that it is not the task."""


@dataclass(frozen=True)
class AssistantTurn:
    """An assistant's message: one turn, with the results of its calls."""

    text: str
    calls: tuple[Call, ...] = ()
    results: dict[int, Any] = field(default_factory=dict)
    """Results by the position of the call. The log has none for other calls."""
    by_text: bool = False
    """Whether the call is part of the text, so that its result is a user message."""
    failed: frozenset[int] = frozenset()
    """Positions of the calls whose result is an error."""
    thinking: str = ""
    model: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)

    def open_call(self, call_id: str | None) -> int | None:
        """The first call without a result: with that id, or any if the log gives none."""
        return _open_call(self.calls, self.results, call_id)


Step = UserMessage | AssistantTurn


@dataclass
class Turn:
    """A turn that may still get blocks and results."""

    key: str
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    results: dict[int, Any] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    by_text: bool = False
    model: str = ""
    usage: dict[str, Any] = field(default_factory=dict)

    def finished(self) -> AssistantTurn:
        return AssistantTurn(
            "\n".join(self.texts),
            tuple(self.calls),
            self.results,
            self.by_text,
            frozenset(self.failed),
            "\n".join(self.thoughts),
            self.model,
            self.usage,
        )


def _open_call(calls: Sequence[Call], results: Mapping[int, Any], call_id: str | None, tool: str = "") -> int | None:
    waiting = (index for index in range(len(calls)) if index not in results)
    named = (index for index in waiting if tool in ("", calls[index].tool))
    return next((index for index in named if call_id in (None, calls[index].call_id)), None)


class Assembler:
    """Puts the blocks of a log together into steps, in the order in which they began."""

    def __init__(self) -> None:
        self._steps: deque[UserMessage | Turn] = deque()
        self._numbers = 0
        self.answered = ""
        """The id of the call that got a result last."""

    @property
    def last(self) -> UserMessage | Turn | None:
        return self._steps[-1] if self._steps else None

    def user(self, text: str, *, fixed: bool = False, meta: bool = False) -> None:
        self._steps.append(UserMessage(text, fixed, meta))

    def turn(self, key: str = "") -> Turn:
        """The turn with this key, which is the last one, or a new one."""
        if key:
            for step in reversed(self._steps):
                if isinstance(step, UserMessage):
                    break
                if step.key == key:
                    return step
        made = Turn(key)
        self._steps.append(made)
        return made

    def call(self, turn: Turn, call_id: str, tool: str, args: dict[str, Any]) -> None:
        """Add a call to a turn, unless the turn already has it."""
        self._numbers += 1
        if call_id and any(call.call_id == call_id for call in turn.calls):
            return
        if len(turn.calls) < MAX_CALLS:
            turn.calls.append(Call(call_id=call_id or f"call-{self._numbers}", tool=tool, args=args))

    def result(self, call_id: str | None, value: Any, *, failed: bool = False, tool: str = "") -> bool:
        """Give the newest open call with this id, or of this tool, its result. False if there is none."""
        for step in reversed(self._steps):
            if isinstance(step, UserMessage):
                continue
            at = _open_call(step.calls, step.results, call_id, tool)
            if at is not None:
                step.results[at] = value
                self.answered = step.calls[at].call_id
                if failed:
                    step.failed.add(at)
                return True
        return False

    def ready(self) -> Iterator[Step]:
        """The steps that cannot change any more. The newest turn waits: it may get more blocks."""
        while len(self._steps) > 1 and (self._is_done(self._steps[0]) or len(self._steps) > WINDOW):
            yield _step(self._steps.popleft())

    def rest(self) -> Iterator[Step]:
        """All remaining steps, at the end of the log."""
        while self._steps:
            yield _step(self._steps.popleft())

    @staticmethod
    def _is_done(step: UserMessage | Turn) -> bool:
        return isinstance(step, UserMessage) or len(step.results) == len(step.calls)


def _step(step: UserMessage | Turn) -> Step:
    return step if isinstance(step, UserMessage) else step.finished()
