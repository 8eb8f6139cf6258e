"""Assembles a streamed reply from chunks, in any order, within a size limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remora.context.calls import get, text_of, usage_of
from remora.events import canonical

MAX_CHARACTERS = 1024 * 1024
"""Characters of a reply: text, reasoning and arguments together."""
MAX_CALLS = 32


class Overfull(Exception):
    """The reply exceeds a limit, which the message names."""


class Reply:
    """The reply so far."""

    def __init__(self) -> None:
        self.finish = ""
        self.model = ""
        self.usage: dict[str, Any] = {}
        self.probabilities: dict[str, float] = {}
        """Log probabilities of the likeliest first tokens, if they were asked for."""
        self._text: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._size = 0

    @property
    def began(self) -> bool:
        """Whether there was output. A request with output is never sent again."""
        return self._size > 0

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def calls(self) -> tuple[dict[str, str], ...]:
        """The native calls, in the order of their indices."""
        return tuple(self._calls[place] for place in sorted(self._calls))

    def fields(self) -> dict[str, Any]:
        """The fields that errors and decisions carry."""
        return {"text": self.text, "finish": self.finish, "usage": self.usage, "model": self.model}

    def add(self, chunk: object) -> None:
        """Add one chunk of the stream. Raises `Overfull`."""
        self.model = self.model or text_of(get(chunk, "model"))[:200]
        self.usage = usage_of(get(chunk, "usage")) or self.usage
        choices = get(chunk, "choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        self.finish = text_of(get(first, "finish_reason"))[:40] or self.finish
        self.probabilities = self.probabilities or _first_probabilities(get(first, "logprobs"))
        delta = get(first, "delta")
        self._text.append(self._count(get(delta, "content")))
        self._count(get(delta, "reasoning_content") or get(delta, "reasoning"))
        parts = get(delta, "tool_calls")
        for part in parts if isinstance(parts, list) else ():
            self._add_call(part)

    def _add_call(self, part: object) -> None:
        function = get(part, "function")
        name, call_id = self._count(get(function, "name")), self._count(get(part, "id"))
        call = self._calls.setdefault(self._place(part, name, call_id), {"id": "", "name": "", "arguments": ""})
        if len(self._calls) > MAX_CALLS:
            raise Overfull(f"{MAX_CALLS} calls")
        call["id"] = call["id"] or call_id
        call["name"] = call["name"] or name
        arguments = get(function, "arguments")
        written = canonical(arguments).decode() if isinstance(arguments, Mapping) else arguments
        call["arguments"] += self._count(written)

    def _place(self, part: object, name: str, call_id: str) -> int:
        """Which call a part belongs to. Some servers number every call 0: a new name with a new id is a new call."""
        place = get(part, "index")
        place = place if isinstance(place, int) else len(self._calls) - (not name)
        known = self._calls.get(max(place, 0))
        if known and name and call_id and known["id"] not in ("", call_id):
            return max(self._calls) + 1
        return max(place, 0)

    def _count(self, value: Any) -> str:
        text = text_of(value)
        self._size += len(text)
        if self._size > MAX_CHARACTERS:
            raise Overfull(f"{MAX_CHARACTERS:,} characters")
        return text


def _first_probabilities(logprobs: object) -> dict[str, float]:
    """Log probabilities by token, of the first token that a chunk tells about."""
    tokens = get(logprobs, "content")
    listed = get(tokens[0], "top_logprobs") if isinstance(tokens, list) and tokens else None
    found = [(text_of(get(each, "token")), get(each, "logprob")) for each in listed or () if isinstance(listed, list)]
    return {token: float(value) for token, value in found if isinstance(value, int | float)}
