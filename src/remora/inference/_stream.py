"""A streamed reply, put together part by part: whatever comes, in whatever order, within a size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remora.context.calls import get, text_of, usage_of
from remora.events import canonical

MAX_CHARACTERS = 1024 * 1024
"""Characters of a reply: text, thoughts and arguments together."""
MAX_CALLS = 32


class Overfull(Exception):
    """The reply is over one of its limits, which is named."""


class Said:
    """What a model has said so far."""

    def __init__(self) -> None:
        self.finish = ""
        self.model = ""
        self.usage: dict[str, Any] = {}
        self._text: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._size = 0

    @property
    def began(self) -> bool:
        """Whether anything was said: a request that was answered is never sent again."""
        return self._size > 0

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def calls(self) -> tuple[dict[str, str], ...]:
        """The native calls, in the order of their numbers."""
        return tuple(self._calls[place] for place in sorted(self._calls))

    def fields(self) -> dict[str, Any]:
        """What errors and decisions carry of it."""
        return {"text": self.text, "finish": self.finish, "usage": self.usage, "model": self.model}

    def add(self, chunk: object) -> None:
        """Take in one chunk of the stream. Raises `Overfull`."""
        self.model = self.model or text_of(get(chunk, "model"))[:200]
        self.usage = usage_of(get(chunk, "usage")) or self.usage
        choices = get(chunk, "choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        self.finish = text_of(get(first, "finish_reason"))[:40] or self.finish
        delta = get(first, "delta")
        self._text.append(self._counted(get(delta, "content")))
        self._counted(get(delta, "reasoning_content") or get(delta, "reasoning"))
        parts = get(delta, "tool_calls")
        for part in parts if isinstance(parts, list) else ():
            self._add_call(part)

    def _add_call(self, part: object) -> None:
        function = get(part, "function")
        name, call_id = self._counted(get(function, "name")), self._counted(get(part, "id"))
        call = self._calls.setdefault(self._place(part, name, call_id), {"id": "", "name": "", "arguments": ""})
        if len(self._calls) > MAX_CALLS:
            raise Overfull(f"{MAX_CALLS} calls")
        call["id"] = call["id"] or call_id
        call["name"] = call["name"] or name
        arguments = get(function, "arguments")
        written = canonical(arguments).decode() if isinstance(arguments, Mapping) else arguments
        call["arguments"] += self._counted(written)

    def _place(self, part: object, name: str, call_id: str) -> int:
        """Which call a part belongs to. Some servers number every call 0: a new name with a new id is a new call."""
        place = get(part, "index")
        place = place if isinstance(place, int) else len(self._calls) - (not name)
        known = self._calls.get(max(place, 0))
        if known and name and call_id and known["id"] not in ("", call_id):
            return max(self._calls) + 1
        return max(place, 0)

    def _counted(self, value: Any) -> str:
        text = text_of(value)
        self._size += len(text)
        if self._size > MAX_CHARACTERS:
            raise Overfull(f"{MAX_CHARACTERS:,} characters")
        return text
