"""Candidate actions by an agent's rules, for tool results without candidates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from remora.events import CandidateAction
from remora.subagent import CandidateRule

_KEY = re.compile(r"\{([A-Za-z0-9_.-]+)\}")


def by_rules(rules: Sequence[CandidateRule], known: Mapping[str, Any]) -> tuple[CandidateAction, ...]:
    """The candidates of all rules that match the knowledge, in the order of the rules."""
    return tuple(
        CandidateAction(tool=rule.tool, args=_fill_arguments(rule.args, known), reason=rule.reason)
        for rule in rules
        if not rule.when or (rule.when in known and _matches(rule, known[rule.when]))
    )


def _matches(rule: CandidateRule, value: Any) -> bool:
    match rule.is_:
        case "known":
            return True
        case "true":
            return bool(value)
        case "equal":
            return bool(value == rule.value)
        case "above":
            numbers = (int, float)
            return isinstance(value, numbers) and isinstance(rule.value, numbers) and value > rule.value


def _fill_arguments(args: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _fill(value, known) for name, value in args.items()}


def _fill(value: Any, known: Mapping[str, Any]) -> Any:
    """Replace `{key}` by knowledge. A text that is nothing but `{key}` becomes the value itself, of any type."""
    if not isinstance(value, str):
        return value
    whole = _KEY.fullmatch(value)
    if whole and whole[1] in known:
        return known[whole[1]]
    return _KEY.sub(lambda match: str(known.get(match[1], match[0])), value)
