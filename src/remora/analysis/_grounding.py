"""Grounding: of the words that a turn's calls take from the past, how many the prompt still showed.

Words are identifiers and numbers. A word counts if a call of the turn uses it and it stood before in the task, a
person's words, an earlier call or an output, but not in the system text. A turn is grounded if none is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remora.context.text import message_text
from remora.events import (
    AgentStartEvent,
    Call,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    ToolCallEvent,
    ToolResultEvent,
    UserInputEvent,
    canonical,
    is_check,
)

_WORD = re.compile(r"[A-Za-z0-9_]{3,}|(?<![A-Za-z0-9_])[0-9]{2}(?![A-Za-z0-9_])")
_ESCAPE = re.compile(r'\\[nrt"]')
_COMMON = (
    "the and for are was were with that this from have has had not but you your can will would should all any one two",
    "its our out what when which who how then than them they there here into also more some such only just been being",
    "did does done use used using get let see now new yes may",
)
COMMON = frozenset(word for line in _COMMON for word in line.split())
"""Words that say nothing about what a call needs."""


@dataclass(frozen=True)
class Grounding:
    """One turn: the words that its calls took from the past."""

    needed: int
    missing: tuple[str, ...] = ()
    """Those that the prompt did not show."""

    @property
    def shown(self) -> int:
        return self.needed - len(self.missing)


class NeededWords:
    """Collects the words of a stream, event by event, and tells which of them a turn's calls use."""

    def __init__(self, system: str) -> None:
        self._before = set[str]()
        self._fixed = words_in(system)

    def take(self, event: Event, raw_text: Callable[[ToolResultEvent], str]) -> set[str]:
        """The words from the past that the calls of a reply use; empty for every other event."""
        match event:
            case ToolCallEvent() | ToolResultEvent() if is_check(event):
                pass
            case AgentStartEvent(goal=goal):
                self._before |= words_in(goal)
            case UserInputEvent(text=text):
                self._before |= words_in(text)
            case ModelResponseEvent(calls=calls, rule=""):
                return (call_words(calls) & self._before) - self._fixed
            case ToolCallEvent(tool=tool, args=args):
                self._before |= words_in(f"{tool} {canonical(args).decode()}")
            case ToolResultEvent():
                self._before |= words_in(raw_text(event))
            case _:
                pass
        return set()


def grounding(events: Iterable[Event], system: str, raw_text: Callable[[ToolResultEvent], str]) -> dict[int, Grounding]:
    """By turn, what the calls needed and the prompt showed. Turns whose calls need nothing are left out."""
    words, prompt = NeededWords(system), set[str]()
    found: dict[int, Grounding] = {}
    for event in events:
        if isinstance(event, ModelRequestEvent):
            prompt = words_in("\n".join(map(message_text, event.messages)))
        if needed := words.take(event, raw_text):
            found[event.turn] = Grounding(len(needed), tuple(sorted(needed - prompt)))
    return found


def words_in(text: str) -> set[str]:
    """The words of a text. An escaped line break, tab or quote separates words, as the character itself does."""
    return {word for word in _WORD.findall(_ESCAPE.sub(" ", text)) if word.lower() not in COMMON}


def call_words(calls: Sequence[Call], *, names: bool = False) -> set[str]:
    """The words of the values in some calls; with `names`, also of tools and arguments, which tool schemas hold too."""
    texts = (text for call in calls for text in (*([call.tool] if names else []), *_texts(call.args, names=names)))
    return words_in("\n".join(texts))


def _texts(value: Any, *, names: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if names:
                yield str(key)
            yield from _texts(item, names=names)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, names=names)
    elif value is not None:
        yield str(value).lower() if isinstance(value, bool) else str(value)  # as JSON writes it
