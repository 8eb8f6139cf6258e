"""The same request about another order, amount or number: digits that sentence and call share are exchanged in both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from remora_lab.train.synthetic._dice import Dice
from remora_lab.train.synthetic._toolsets import Said, WantedCall

_RUN = re.compile(r"(?<![\d.,])\d{3,}(?![\d.,]\d)(?!\d)")
_YEARS = range(1000, 2101)
"""Four digits in this range may be a year, whose change would make a wrong date."""


def renumbered(dice: Dice, said: Said) -> Said:
    """The request with other digits, in its sentence and in its call."""
    if said.call is None:
        return said
    shared = set(_RUN.findall(said.say)) & {run for text in _texts(said.call.args) for run in _RUN.findall(text)}
    other = {run: _other_digits(dice, run) for run in sorted(shared) if not _may_be_year(run)}
    args = {name: _exchanged(value, other) for name, value in said.call.args.items()}
    return Said(say=_in_text(said.say, other), call=WantedCall(tool=said.call.tool, args=args))


def _texts(value: Any) -> list[str]:
    """All texts and whole numbers in it, as text."""
    if isinstance(value, Mapping):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [str(value)] if isinstance(value, str | int) and not isinstance(value, bool) else []


def _may_be_year(run: str) -> bool:
    return len(run) == 4 and int(run) in _YEARS


def _other_digits(dice: Dice, run: str) -> str:
    """As many digits; a leading zero stays, and none comes."""
    first = "0" if run[0] == "0" else str(dice.number(1, 9))
    return first + "".join(str(dice.number(0, 9)) for _ in run[1:])


def _exchanged(value: Any, other: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {name: _exchanged(each, other) for name, each in value.items()}
    if isinstance(value, list):
        return [_exchanged(each, other) for each in value]
    if isinstance(value, str):
        return _in_text(value, other)
    return int(_in_text(str(value), other)) if isinstance(value, int) and not isinstance(value, bool) else value


def _in_text(text: str, other: Mapping[str, str]) -> str:
    return _RUN.sub(lambda found: other.get(found.group(), found.group()), text)
