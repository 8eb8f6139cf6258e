"""Lost words: what a call took from an earlier result although the prompt no longer showed it.

The same question as `analysis.grounding`, answered for one result at a time and without splitting every text into
words, so that it is fast enough for thousands of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from remora.analysis._grounding import call_words
from remora.context.text import message_text
from remora.events import Call, ModelRequestEvent, ToolResultEvent

MAX_SOURCES = 200
"""Earlier results that are searched for a word, newest first."""
_JOINS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_ESCAPES = frozenset({"\\n", "\\r", "\\t"})


@dataclass(frozen=True)
class LostWord:
    """A word that a call used, from a result that the prompt no longer showed."""

    word: str
    tool: str
    """The tool whose result held it."""
    seq: int
    """The event of that result."""
    turn: int
    """The turn whose call used it."""


class LostWords:
    """Collects the lost words of one stream."""

    def __init__(self, system: Callable[[ModelRequestEvent], str], raw_text: Callable[[ToolResultEvent], str]) -> None:
        """`system` returns the constant first message of a prompt. Both may read blobs, and are called only for words
        that the rest of the prompt lacks."""
        self._system = system
        self._raw_text = raw_text
        self._results: list[ToolResultEvent] = []
        self._texts: dict[int, str] = {}
        self._request = ModelRequestEvent()
        self._prompt: list[str] = []
        self.found: list[LostWord] = []

    def take_result(self, event: ToolResultEvent) -> None:
        """Remember a result of the agent."""
        self._results.append(event)

    def take_prompt(self, event: ModelRequestEvent) -> None:
        """Remember what the model is shown. The constant system text is left to `system`."""
        self._request = event
        self._prompt = [message_text(message) for message in event.messages]

    def take_calls(self, calls: Sequence[Call], turn: int) -> None:
        """Find the words of these calls that only an earlier result held."""
        if not self._results or not self._prompt:  # nothing was shown that could lack a word
            return
        missing = [word for word in call_words(calls) if not any(has_word(text, word) for text in self._prompt)]
        for word in sorted(missing):
            if not has_word(self._system(self._request), word) and (source := self._source(word)):
                self.found.append(LostWord(word, source.tool, source.seq, turn))

    def _source(self, word: str) -> ToolResultEvent | None:
        newest = reversed(self._results[-MAX_SOURCES:])
        return next((event for event in newest if has_word(self._text(event), word)), None)

    def _text(self, event: ToolResultEvent) -> str:
        if event.seq not in self._texts:
            self._texts[event.seq] = self._raw_text(event)
        return self._texts[event.seq]


def has_word(text: str, word: str) -> bool:
    """Whether `text` has `word` as a word of its own, as `words_in` splits it."""
    at = text.find(word)
    while at >= 0:
        before, end = text[at - 1 : at], at + len(word)
        begins = before not in _JOINS or text[max(at - 2, 0) : at] in _ESCAPES
        if begins and (end == len(text) or text[end] not in _JOINS):
            return True
        at = text.find(word, at + 1)
    return False
