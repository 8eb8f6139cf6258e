"""Which messages of a request are new: most requests repeat the conversation so far."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from remora.analysis.logs._blocks import kind_of, part_words

ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}
"""Roles of other libraries, by ours."""
_CALLS = ("tool_use", "tool_call", "server_tool_use", "mcp_tool_use")
_RESULTS = ("tool_result", "tool_call_response", "mcp_tool_result")
_THOUGHTS = ("thinking", "reasoning", "redacted_thinking")


def message_key(message: Any) -> bytes:
    """A digest of what a message says, the same for a reply and for its copy in a later request.

    Empty for what a copy may lack, such as reasoning.
    """
    if not isinstance(message, Mapping) or message.get("type") == "reasoning":
        return b""
    kind = str(message.get("type") or "")
    if kind.endswith("_output"):
        return _digest("tool", "", [], [message.get("call_id") or message.get("id")])
    if kind.endswith("_call"):
        return _digest("assistant", "", [message.get("call_id") or message.get("id")], [])
    role = str(message.get("role") or "")
    texts, calls, results = _read_parts(message.get("content", message.get("parts")))
    listed = message.get("tool_calls")
    calls += [_call_name(call) for call in listed] if isinstance(listed, list) else []
    if message.get("tool_call_id"):
        texts, results = [], [message["tool_call_id"]]
    return _digest(ROLES.get(role, role), "\n".join(texts).strip(), calls, results)


def call_ids(message: Any) -> list[str]:
    """The ids of the calls that a message makes, or their names where they have no ids."""
    if not isinstance(message, Mapping):
        return []
    listed = message.get("tool_calls")
    calls = _read_parts(message.get("content", message.get("parts")))[1]
    calls += [_call_name(call) for call in listed] if isinstance(listed, list) else []
    return [str(call) for call in calls if call]


def result_ids(message: Any) -> set[str]:
    """The ids of the calls whose results a message gives, if it gives nothing else, also as a user."""
    if not isinstance(message, Mapping):
        return set()
    texts, calls, results = _read_parts(message.get("content", message.get("parts")))
    if message.get("role") == "tool":
        results += [message.get("tool_call_id"), message.get("id")]
    elif calls or any(texts):
        return set()
    return {str(each) for each in results if each}


def _read_parts(content: Any) -> tuple[list[str], list[Any], list[Any]]:
    texts: list[str] = []
    calls: list[Any] = []
    results: list[Any] = []
    for part in content if isinstance(content, list) else [content]:
        kind = kind_of(part)
        if isinstance(part, str):
            texts.append(part)
        elif kind in _CALLS:
            calls.append(_call_name(part))
        elif kind in _RESULTS or kind.endswith("_tool_result"):
            results.append(part.get("tool_use_id") or part.get("id"))
        elif kind not in _THOUGHTS:
            texts.append(part_words(part) or "")
    return texts, calls, results


def _call_name(call: Any) -> Any:
    """The id of a call, or its name if it has no id."""
    if not isinstance(call, Mapping):
        return None
    return call.get("id") or _tool(call)


def _digest(role: str, text: str, calls: list[Any], results: list[Any]) -> bytes:
    said = orjson.dumps([role, text.encode(errors="replace").decode(), list(map(str, calls)), list(map(str, results))])
    return hashlib.blake2b(said, digest_size=12).digest()


@dataclass(frozen=True)
class _Reply:
    """What a reply said, to know a copy that was written in another way."""

    size: int
    said: bytes
    """Digest of its text."""
    tools: tuple[str, ...]

    @classmethod
    def of(cls, message: Any) -> _Reply:
        text = _text(message)
        return cls(len(text), _digest("", text, [], []), tuple(_tools(message)))

    def is_in(self, message: Any) -> bool:
        """Whether a message calls some of the same tools, with the same text, a longer one, or none."""
        text = _text(message)
        tools = _tools(message)
        if not set(tools) <= set(self.tools) or not (text or tools):
            return False
        return not text or (bool(self.size) and _digest("", text[: self.size], [], []) == self.said)


class History:
    """The messages of one conversation so far, as digests."""

    def __init__(self) -> None:
        self._keys: list[bytes] = []
        self._replies: dict[int, _Reply] = {}
        """By their place in the history, the replies of the model."""

    def fresh(self, sent: list[Any]) -> list[Any]:
        """The messages of a request that are not in the history. They are added to it."""
        keys = [message_key(message) for message in sent]
        if self._keys:
            # What has no key is a copy of a part of an earlier reply.
            sent = [message for message, key in zip(sent, keys, strict=True) if key]
            keys = list(filter(None, keys))
        if self._keys and keys and keys[0] == self._keys[0]:
            new = self._not_repeated(sent, keys)
        else:
            # Where a server keeps the conversation, a request has only its end, which may overlap.
            most = min(len(keys), len(self._keys))
            known = next((size for size in range(most, 0, -1) if keys[:size] == self._keys[-size:]), 0)
            new = sent[known:]
        self._keys += [key for key in map(message_key, new) if key]
        return new

    def _not_repeated(self, sent: list[Any], keys: list[bytes]) -> list[Any]:
        """A request that begins like the history repeats it in order, as a whole or with parts left out.

        Some programs give the copy of a reply other ids, close its last tag, or make a message of each of its calls. So
        what follows the messages that a reply answered is its copy, if it says and calls the same.
        """
        at, new = 0, []
        copied: _Reply | None = None
        places: dict[bytes, list[int]] = {}
        for place in range(len(self._keys) - 1, -1, -1):
            places.setdefault(self._keys[place], []).append(place)
        for message, key in zip(sent, keys, strict=True):
            found = places.get(key, [])
            while found and found[-1] < at:
                found.pop()
            reply = copied or self._replies.get(at)
            if found:
                at, copied = found.pop() + 1, None
            elif reply is not None and _role(message) == "assistant" and reply.is_in(message):
                at, copied = at if copied else at + 1, reply
            else:
                copied = None
                new.append(message)
        return new

    def add(self, replies: Iterable[Any]) -> None:
        """Add the messages of a reply."""
        for message in replies:
            if key := message_key(message):
                self._replies[len(self._keys)] = _Reply.of(message)
                self._keys.append(key)


def _role(message: Any) -> str:
    role = str(message.get("role") or "") if isinstance(message, Mapping) else ""
    return ROLES.get(role, role)


def _text(message: Any) -> str:
    content = message.get("content", message.get("parts")) if isinstance(message, Mapping) else None
    return "\n".join(_read_parts(content)[0]).strip()


def _tools(message: Any) -> list[str]:
    """The names of the tools that a message calls."""
    if not isinstance(message, Mapping):
        return []
    listed, content = message.get("tool_calls"), message.get("content", message.get("parts"))
    parts = [part for part in content if kind_of(part) in _CALLS] if isinstance(content, list) else []
    calls = [*parts, *(listed if isinstance(listed, list) else [])]
    return [str(_tool(call)) for call in calls if isinstance(call, Mapping)]


def _tool(call: Mapping[str, Any]) -> Any:
    function = call.get("function")
    return call.get("name") or (function.get("name") if isinstance(function, Mapping) else function)
