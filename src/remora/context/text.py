"""Makes untrusted text safe for a packet: one bounded line without invisible characters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

MAX_LINE = 200

# Control characters, line and paragraph separators, lone surrogates, zero-width and bidirectional marks can break a
# line, hide text, or change how the rest of it reads.
_ODD = "\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
_INVISIBLE = re.compile(f"[\\s\x00-\x1f{_ODD}\ud800-\udfff]+")


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """`text` as one line without invisible characters, at most `limit` characters."""
    if len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()  # the common case: nothing to replace
    line = _INVISIBLE.sub(" ", text[: limit * 8]).strip()
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def message_text(message: Mapping[str, Any]) -> str:
    """All that a chat message says: its content, and its calls as JSON."""
    made = message.get("tool_calls")
    calls = [_call_text(call) for call in made] if isinstance(made, list | tuple) else []
    return "\n".join([text for text in (str(message.get("content") or ""), *calls) if text])


def _call_text(call: Any) -> str:
    function = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return str(call)  # a foreign or damaged stream may hold anything
    given = function.get("arguments")
    args = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return f'{{"name": "{function.get("name")}", "arguments": {args}}}'


def messages_text(messages: Iterable[Mapping[str, Any]]) -> str:
    """All that chat messages say, without the system message. Several messages are told apart by their roles."""
    shown = [message for message in messages if message.get("role") != "system"]
    if len(shown) == 1:
        return message_text(shown[0])
    return "\n".join([f"{message.get('role')}: {message_text(message)}" for message in shown])


def number(count: int, word: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f{_ODD}\ud800-\udfff]")
_IN_JSON = re.compile(f"[{_ODD}]")


def visible(text: str) -> str:
    """`text` for a terminal: keeps line breaks and tabs, and escapes all other control characters."""
    if text.isascii() and text.isprintable():
        return text  # the common case: nothing to escape
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def escaped_json(text: str) -> str:
    """The same JSON with every control or invisible character escaped, not only those below U+0020."""
    return _IN_JSON.sub(lambda match: json.dumps(match[0])[1:-1], text)


def counts_text(check: Mapping[str, Any]) -> str:
    """`5 → 1`; `unknown` where the check itself failed, empty if there was no check."""
    if not check:
        return ""
    before, after = check.get("before"), check.get("after")
    if before is None and after is None:
        return "unknown"
    return " → ".join("unknown" if count is None else str(count) for count in (before, after))
