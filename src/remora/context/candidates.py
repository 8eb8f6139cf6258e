"""Candidates by an agent's own rules: what to offer when a tool offers nothing itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from remora.events import CandidateAction
from remora.subagent import CandidateRule

_KEY = re.compile(r"\{([A-Za-z0-9_.-]+)\}")


def by_rules(rules: Sequence[CandidateRule], known: Mapping[str, Any]) -> tuple[CandidateAction, ...]:
    """The calls whose rule holds for what is known, in the order of the rules."""
    return tuple(
        CandidateAction(tool=rule.tool, args=_filled(rule.args, known), reason=rule.reason)
        for rule in rules
        if rule.when in known and _holds(rule, known[rule.when])
    )


def _holds(rule: CandidateRule, value: Any) -> bool:
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


def _filled(args: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(value, known) for name, value in args.items()}


def _value(value: Any, known: Mapping[str, Any]) -> Any:
    """A text that is one `{key}` becomes what is known, as it is; inside a longer text it becomes text."""
    if not isinstance(value, str):
        return value
    whole = _KEY.fullmatch(value)
    if whole and whole[1] in known:
        return known[whole[1]]
    return _KEY.sub(lambda found: str(known.get(found[1], found[0])), value)
