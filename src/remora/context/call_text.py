"""Calls that a model wrote as text: as JSON, alone, in a fence or between words, or between FunctionGemma's marks.

    <start_function_call>call:NAME{KEY:<escape>TEXT<escape>,KEY:1.5,KEY:[true,{KEY:null}]}<end_function_call>

What cannot be read as FunctionGemma's arguments stays a text, so that whoever checks the call can say so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

MAX_CALLS = 64
"""Calls that are looked for in one text."""
_MAX_TRIES = 64
_MAX_DEPTH = 32

_MARKED = re.compile(r"<start_function_call>\s*call:\s*([^\s{\[<]{1,200})\s*")
_END, _ESCAPE = "<end_function_call>", "<escape>"
_SPACE = re.compile(r"\s*")
_KEY = re.compile(r"([^:{}\[\],<]{1,200}):")
_BARE = re.compile(r"[^,{}\[\]<]+")
_FENCE = re.compile(r"```[^\n`]{0,40}\n(.*?)```", re.DOTALL)


def calls_in_text(text: str) -> tuple[dict[str, Any], ...]:
    """Every call in `text`, as `{"tool": …, "args": …}`; empty where there is none."""
    return marked_calls(text) or _json_calls(text)


def marked_calls(text: str) -> tuple[dict[str, Any], ...]:
    """The calls between FunctionGemma's marks, which mean nothing else wherever they stand."""
    found = []
    for mark in _MARKED.finditer(text):
        rest = text[mark.end() : _end_of(text, mark.end())]
        try:
            args, _ = _Arguments(rest).value(0, 0)
        except _Unreadable:
            args = rest
        found.append({"tool": mark[1], "args": args})
        if len(found) == MAX_CALLS:
            break
    return tuple(found)


def _end_of(text: str, start: int) -> int:
    """Where the arguments end: at the closing mark, at the next opening one, or with the text."""
    places = [place for mark in (_END, "<start_function_call>") if (place := text.find(mark, start)) >= 0]
    return min(places, default=len(text))


class _Unreadable(Exception):
    """The text is not what the format says."""


class _Arguments:
    """Reads one value, and gives where it ends."""

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
        found: dict[str, Any] = {}
        while not self._text.startswith("}", at := self._skip(at)):
            key, at = self._key(at)
            found[key], at = self.value(at, depth)
            at = self._after(at, "}")
        return found, at + 1

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        while not self._text.startswith("]", at := self._skip(at)):
            item, at = self.value(at, depth)
            found.append(item)
            at = self._after(at, "]")
        return found, at + 1

    def _key(self, at: int) -> tuple[str, int]:
        if self._text.startswith(_ESCAPE, at):
            key, at = self._escaped(at)
            at = self._skip(at)
            if not self._text.startswith(":", at):
                raise _Unreadable
            return key, at + 1
        found = _KEY.match(self._text, at)
        if found is None:
            raise _Unreadable
        return found[1].strip(), found.end()

    def _bare(self, at: int) -> tuple[Any, int]:
        found = _BARE.match(self._text, at)
        if found is None:
            raise _Unreadable
        written = found[0].strip()
        try:
            return json.loads(written), found.end()
        except ValueError:
            return written, found.end()

    def _after(self, at: int, closing: str) -> int:
        """Past a comma, or before the closing sign."""
        at = self._skip(at)
        if self._text.startswith(",", at):
            return at + 1
        if not self._text.startswith(closing, at):
            raise _Unreadable
        return at

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at


def _json_calls(text: str) -> tuple[dict[str, Any], ...]:
    """The first JSON value in `text` that is a call or a list of calls."""
    for value in _json_values(text):
        items = value if isinstance(value, list) else [value]
        calls = [call for call in map(_as_call, items[:MAX_CALLS]) if call is not None]
        if calls:
            return tuple(calls)
    return ()


def _json_values(text: str) -> Iterator[Any]:
    """What is JSON in `text`: all of it, what stands in fences, then whatever begins with a brace."""
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
    """`value` in our shape, if it is a call as models are known to write them."""
    if not isinstance(value, dict):
        return None
    inner = value["function"] if isinstance(value.get("function"), dict) else value
    if isinstance(inner.get("tool"), str):
        return {"tool": inner["tool"], "args": inner.get("args", inner.get("arguments"))}
    for name in ("arguments", "parameters"):
        if isinstance(inner.get("name"), str) and name in inner:
            return {"tool": inner["name"], "args": inner[name]}
    return None
