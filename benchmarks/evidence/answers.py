"""Scores of a model's answers: the call that it wrote, compared with the recorded one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|$)", re.DOTALL)
_FENCED = re.compile(r"```[a-z_]*\s*\n?(.*?)(?:```|$)", re.DOTALL)
_NAMES = ("name", "tool", "function")
_ARGUMENTS = ("arguments", "args", "parameters")


@dataclass
class Answers:
    """What a model did with one memory."""

    turns: int = 0
    exact: int = 0
    """Tool and all arguments as in the record."""
    tool: int = 0
    """The tool as in the record."""
    valid: int = 0
    """An offered tool with all its required arguments and no unknown ones."""
    repeated: int = 0
    """A call that was made before with the same arguments, where the record makes another one."""
    tokens: int = 0
    recalls: list[float] = field(default_factory=list)
    by_grounded: dict[bool, list[bool]] = field(default_factory=lambda: {True: [], False: []})
    """Which turns were exact, of those that the memory grounded and of the others."""
    right: dict[str, bool] = field(default_factory=dict)
    """By turn, whether it was exact: for comparing memories turn by turn."""

    def row(self) -> dict[str, Any]:
        """The figures of a table's row."""
        grounded, other = self.by_grounded[True], self.by_grounded[False]
        share = {name: _share(getattr(self, name), self.turns) for name in ("exact", "tool", "valid", "repeated")}
        return {
            "turns": self.turns,
            "tokens": round(self.tokens / max(1, self.turns)),
            "recall": round(sum(self.recalls) / max(1, len(self.recalls)), 4),
            "grounded": _share(len(grounded), len(grounded) + len(other)),
            **share,
            "exact_grounded": _share(sum(grounded), len(grounded)),
            "exact_other": _share(sum(other), len(other)),
        }


def read_call(text: str) -> tuple[str, dict[str, Any]] | None:
    """The first call in an answer: inside `<tool_call>`, inside a fence, or bare JSON. None if there is none."""
    places = [*_TAGGED.findall(text), *_FENCED.findall(text), text]
    return next((call for place in places for call in _calls_in(place)), None)


def score_answers(
    rows: Iterable[Mapping[str, Any]], answers: Mapping[tuple[str, str], str]
) -> dict[tuple[str, str], Answers]:
    """Scores by suite and memory, over the rows that have an answer."""
    scores: dict[tuple[str, str], Answers] = {}
    for row in rows:
        text = answers.get((row["id"], row["memory"]))
        if text is not None:
            _judge(scores.setdefault((row["suite"], row["memory"]), Answers()), row, read_call(text))
    return scores


def call_key(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as text that is the same for equal calls: sorted keys, no whitespace around strings, 2.0 as 2."""
    return orjson.dumps([name, _plain(arguments)], option=orjson.OPT_SORT_KEYS).decode()


def duels(scores: Mapping[str, Answers], base: str) -> dict[str, tuple[int, int]]:
    """For each other memory: turns where it is exact and `base` is not, and the other way round."""
    other = scores[base].right
    found = {}
    for name, answers in scores.items():
        pairs = [(right, other[turn]) for turn, right in answers.right.items() if turn in other]
        found[name] = (sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs))
    return found


def _judge(kept: Answers, row: Mapping[str, Any], call: tuple[str, dict[str, Any]] | None) -> None:
    gold = {call_key(item["name"], item["arguments"]) for item in row["gold"]}
    key = call_key(*call) if call else ""
    exact = key in gold
    kept.turns += 1
    kept.tokens += row["tokens"]
    kept.exact += exact
    kept.right[row["id"]] = exact
    if row["grounded"] is not None:
        kept.recalls.append(row["recall"])
        kept.by_grounded[row["grounded"]].append(exact)
    if call:
        kept.tool += call[0] in {item["name"] for item in row["gold"]}
        kept.valid += _is_valid(*call, row["tools"])
        kept.repeated += not exact and key in row["earlier"]


def _is_valid(name: str, arguments: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> bool:
    schema = next((tool["function"]["parameters"] for tool in tools if tool["function"]["name"] == name), None)
    if schema is None:
        return False
    return set(schema.get("required", ())) <= set(arguments) <= set(schema.get("properties", ()))


def _calls_in(text: str) -> Iterable[tuple[str, dict[str, Any]]]:
    at = text.find("{")
    while at >= 0:
        end = _end_of_object(text, at)
        try:
            call = _call(orjson.loads(text[at:end]))
        except orjson.JSONDecodeError:
            call = None
        if call:
            yield call
            return
        at = text.find("{", at + 1)


def _end_of_object(text: str, start: int) -> int:
    """The index after the brace that closes the one at `start`; the end of the text if none does."""
    depth, quoted, escaped = 0, False, False
    for index in range(start, len(text)):
        char = text[index]
        if quoted:
            quoted, escaped = escaped or char != '"', char == "\\" and not escaped
        elif char == '"':
            quoted = True
        else:
            depth += (char == "{") - (char == "}")
            if not depth:
                return index + 1
    return len(text)


def _call(value: Any) -> tuple[str, dict[str, Any]] | None:
    if not isinstance(value, dict):
        return None
    if isinstance(inner := value.get("function"), dict):
        value = inner
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            return None
    return (name, arguments) if name and isinstance(arguments, dict) else None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.strip() if isinstance(value, str) else value


def _share(part: int, of: int) -> float | None:
    return round(part / of, 4) if of else None
