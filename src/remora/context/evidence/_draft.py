"""What is shown of a run: written as one text or as chat messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from remora.context.evidence._cached import cached
from remora.context.evidence._chat import Message, chat_messages
from remora.context.evidence._text import Shown, entry_lines, grouped
from remora.context.text import number

NATIVE = 4
"""The newest entries that a chat shows as messages: this many. Older ones are lines of its first message."""
OLDER = "Before that, oldest first; `#n` is an event, indented lines are outputs."


@dataclass(frozen=True)
class Draft:
    """What is shown of a run."""

    task: str
    ledger: str
    """Identifiers of outputs that were dropped, in one line."""
    parts: Sequence[Shown]
    left_out: Mapping[str, int]
    recalls: bool
    """Whether `recall` brings back what was left out."""
    _messages: list[Message] = field(default_factory=list)

    @cached
    def text(self) -> str:
        """The account as text."""
        task = [f"Task: {self.task}"] if self.task else []
        return "\n".join([*task, *self._lines(self.parts), *_note(self.left_out, self.recalls)])

    def messages(self, calls_in_text: bool) -> list[Message]:
        """The account as chat: the newest entries, at most `NATIVE` of them, as messages, older ones as lines."""
        if self._messages:
            return self._messages
        start = max(0, len(self.parts) - NATIVE)
        older = next((at for at in range(len(self.parts), start, -1) if not _is_message(self.parts[at - 1])), start)
        opening = [*([self.task] if self.task else []), *_note(self.left_out, self.recalls)]
        if lines := self._lines(self.parts[:older]):
            opening += [OLDER, *lines]
        self._messages.extend(chat_messages("\n".join(opening), self.parts[older:], calls_in_text=calls_in_text))
        return self._messages

    def _lines(self, parts: Sequence[Shown]) -> list[str]:
        ledger = [self.ledger] if self.ledger else []
        return [*ledger, *grouped([line for part in parts for line in entry_lines(part)])]


def _is_message(part: Shown) -> bool:
    """Whether the entry can be written as messages: streams of earlier versions lack the arguments of calls."""
    return part.entry.speaker != "call" or part.entry.made is not None


def _note(left_out: Mapping[str, int], recalls: bool) -> list[str]:
    told = [number(left_out[f"{name}s"], name) for name in ("item", "line") if f"{name}s" in left_out]
    told += ["part of the task"] if "task" in left_out else []
    return [f"[Left out: {', '.join(told)}{'; `recall` brings them back' if recalls else ''}]"] if told else []
