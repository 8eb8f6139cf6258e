"""Summarizers for checkers: ruff's JSON and mypy's text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from remora.context._summaries._base import excerpt, is_cut, lines_of, most, text_of
from remora.context._summaries._generic import json_of
from remora.context.summary import Summarized
from remora.context.text import number

_MYPY = re.compile(r"([^:\n]{1,400}):(\d{1,9}):(?:\d{1,9}:)? (error|note|warning): ")
_MYPY_END = re.compile(r"Success: no issues found in (\d{1,9}) source files?|Found (\d{1,9}) errors? in ")
_MYPY_SIGNS = (": error: ", ": note: ", ": warning: ", "Success: ", "Found ")
"""Every output of mypy contains one of these."""
_MYPY_CODE = re.compile(r"  \[([a-z0-9-]{1,60})\]$")


def read_ruff(raw: Any) -> Summarized | None:
    """The output of `ruff check --output-format json`."""
    errors = json_of(raw)
    if not isinstance(errors, list) or not all(_is_ruff(item) for item in errors):
        return None
    if not errors:
        return Summarized("No lint errors", {"lint_errors_remaining": 0, "lint_fixable": 0})
    rules = Counter(str(item["code"] or "syntax") for item in errors)
    files = {item["filename"] for item in errors}
    fixable = sum(_is_fixable(item) for item in errors)
    line = f"{number(len(errors), 'lint error')} in {number(len(files), 'file')}: {most(rules)}; {fixable} fixable"
    knowledge = {
        "lint_errors_remaining": len(errors),
        "lint_fixable": fixable,
        "lint_rules": dict(sorted(rules.items(), key=lambda rule: (-rule[1], rule[0]))[:8]),
    }
    return Summarized(line, knowledge, excerpt("ruff", [_ruff_line(item) for item in errors]))


def _is_ruff(item: Any) -> bool:
    return (
        isinstance(item, Mapping)
        and {"code", "location", "message"} <= set(item)
        and isinstance(item.get("filename"), str)
        and isinstance(item["location"], Mapping)
    )


def _is_fixable(item: Mapping[str, Any]) -> bool:
    fix = item.get("fix")
    return isinstance(fix, Mapping) and fix.get("applicability") == "safe"


def _ruff_line(item: Mapping[str, Any]) -> str:
    place = item["location"]
    return f"{item['filename']}:{place.get('row')}:{place.get('column')} {item['code'] or 'syntax'} {item['message']}"


def read_mypy(raw: Any) -> Summarized | None:
    """The text output of mypy."""
    text = text_of(raw)
    if text is None or not any(sign in text for sign in _MYPY_SIGNS):
        return None
    lines = lines_of(text)
    end = next((match for line in reversed(lines[-20:]) if (match := _MYPY_END.match(line))), None)
    messages = [match for line in lines if (match := _MYPY.match(line))]
    if end is None and (not messages or is_cut(raw)):
        return None
    if end is not None and end[1]:
        return Summarized(f"No type errors in {number(int(end[1]), 'file')}", {"type_errors": 0})
    errors = [match for match in messages if match[3] == "error"]
    return _type_errors(errors, int(end[2]) if end else len(errors))


def _type_errors(errors: list[re.Match[str]], total: int) -> Summarized:
    codes = Counter(code[1] if (code := _MYPY_CODE.search(match.string)) else "other" for match in errors)
    files = {match[1] for match in errors}
    line = f"{number(total, 'type error')} in {number(len(files), 'file')}"
    first = f"; first at {errors[0][1]}:{errors[0][2]}" if errors else ""
    knowledge = {"type_errors": total, "type_error_codes": dict(codes.most_common(8))}
    shown = excerpt("mypy", [match.string for match in errors])
    return Summarized(f"{line}: {most(codes)}{first}" if codes else line, knowledge, shown)
