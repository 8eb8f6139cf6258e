"""Parses tool calls from a model's text: JSON, alone, in a fence or between words, or FunctionGemma's markup.

    <start_function_call>call:NAME{KEY:<escape>TEXT<escape>,KEY:1.5,KEY:[true,{KEY:null}]}<end_function_call>

Arguments that do not parse stay text, so that the validation of the call can report them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

MAX_CALLS = 64
"""Most calls that are parsed from one text."""
_MAX_TRIES = 64
_MAX_DEPTH = 32

_MARKED = re.compile(r"<start_function_call>\s*call:\s*([^\s{\[<]{1,200})\s*")
_END, _ESCAPE = "<end_function_call>", "<escape>"
_SPACE = re.compile(r"\s*")
_KEY = re.compile(r"([^:{}\[\],<]{1,200}):")
_BARE = re.compile(r"[^,{}\[\]<]+")
_FENCE = re.compile(r"```[^\n`]{0,40}\n(.*?)```", re.DOTALL)


def calls_in_text(text: str) -> tuple[dict[str, Any], ...]:
    """Every call in `text`, as `{"tool": …, "args": …}`."""
    return marked_calls(text) or _json_calls(text)


def is_only_calls(text: str) -> bool:
    """Whether `text` is nothing but a call or a list of calls as JSON, perhaps in a fence."""
    fence = _FENCE.fullmatch(text.strip())
    try:
        value = json.loads(fence[1] if fence else text)
    except (ValueError, RecursionError):
        return False
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(_as_call(item) is not None for item in items)


def marked_calls(text: str) -> tuple[dict[str, Any], ...]:
    """The calls in FunctionGemma's markup. It is unambiguous, so it counts anywhere in the text."""
    calls = []
    for mark in _MARKED.finditer(text):
        rest = text[mark.end() : _arguments_end(text, mark.end())]
        try:
            args, _ = _ArgumentParser(rest).value(0, 0)
        except _Unreadable:
            args = rest
        calls.append({"tool": mark[1], "args": args})
        if len(calls) == MAX_CALLS:
            break
    return tuple(calls)


def _arguments_end(text: str, start: int) -> int:
    """The end of the arguments: the closing mark, the next opening mark, or the end of the text."""
    places = [place for mark in (_END, "<start_function_call>") if (place := text.find(mark, start)) >= 0]
    return min(places, default=len(text))


class _Unreadable(Exception):
    """The text does not follow the format."""


class _ArgumentParser:
    """A recursive-descent parser. Each method returns a value and the position after it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        at = self._skip(at)
        if depth > _MAX_DEPTH:
            raise _Unreadable
        if self._text.startswith(_ESCAPE, at):
            return self._escaped(at)
        if self._text.startswith("{", at):
            return self._record(at + 1, depth + 1)
        if self._text.startswith("[", at):
            return self._list(at + 1, depth + 1)
        return self._bare(at)

    def _escaped(self, at: int) -> tuple[str, int]:
        start = at + len(_ESCAPE)
        end = self._text.find(_ESCAPE, start)
        if end < 0:
            raise _Unreadable
        return self._text[start:end], end + len(_ESCAPE)

    def _record(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        record: dict[str, Any] = {}
        while not self._text.startswith("}", at := self._skip(at)):
            key, at = self._key(at)
            record[key], at = self.value(at, depth)
            at = self._after_item(at, "}")
        return record, at + 1

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while not self._text.startswith("]", at := self._skip(at)):
            item, at = self.value(at, depth)
            items.append(item)
            at = self._after_item(at, "]")
        return items, at + 1

    def _key(self, at: int) -> tuple[str, int]:
        if self._text.startswith(_ESCAPE, at):
            key, at = self._escaped(at)
            at = self._skip(at)
            if not self._text.startswith(":", at):
                raise _Unreadable
            return key, at + 1
        match = _KEY.match(self._text, at)
        if match is None:
            raise _Unreadable
        return match[1].strip(), match.end()

    def _bare(self, at: int) -> tuple[Any, int]:
        match = _BARE.match(self._text, at)
        if match is None:
            raise _Unreadable
        written = match[0].strip()
        try:
            return json.loads(written), match.end()
        except ValueError:
            return written, match.end()

    def _after_item(self, at: int, closing: str) -> int:
        """The position after a comma, or of the closing bracket."""
        at = self._skip(at)
        if self._text.startswith(",", at):
            return at + 1
        if not self._text.startswith(closing, at):
            raise _Unreadable
        return at

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at


def _json_calls(text: str) -> tuple[dict[str, Any], ...]:
    """The first JSON value in `text` that is a call or a list of calls."""
    for value in _json_values(text):
        items = value if isinstance(value, list) else [value]
        calls = [call for call in map(_as_call, items[:MAX_CALLS]) if call is not None]
        if calls:
            return tuple(calls)
    return ()


def _json_values(text: str) -> Iterator[Any]:
    """JSON values in `text`: the whole text, then fenced blocks, then every value that starts with a brace."""
    for part in (text, *(fence[1] for fence in _FENCE.finditer(text))):
        try:
            yield json.loads(part)
        except (ValueError, RecursionError):
            continue
    decoder, at = json.JSONDecoder(), text.find("{")
    for _ in range(_MAX_TRIES):
        if at < 0:
            return
        try:
            value, after = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        yield value
        at = text.find("{", after)


def _as_call(value: Any) -> dict[str, Any] | None:
    """`value` as `{"tool": …, "args": …}`, if it has one of the shapes that models use for calls."""
    if not isinstance(value, dict):
        return None
    inner = value["function"] if isinstance(value.get("function"), dict) else value
    if isinstance(inner.get("tool"), str):
        return {"tool": inner["tool"], "args": inner.get("args", inner.get("arguments"))}
    for name in ("arguments", "parameters"):
        if isinstance(inner.get("name"), str) and name in inner:
            return {"tool": inner["name"], "args": inner[name]}
    return None
