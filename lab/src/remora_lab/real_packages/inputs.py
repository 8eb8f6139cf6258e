"""Whether a reader believes the inputs of a test or a fixture: somebody wrote them, or the project names them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

FEWEST_CASES = 2
LONGEST_LINE = 100
"""Characters of an assertion that can still be checked by eye."""


@dataclass(frozen=True)
class Subject:
    """The function that a test or a fixture is about, and where the project calls it."""

    name: str = ""
    """Its qualified name; empty if it is not known."""
    types: dict[str, str] | None = None
    """The types in its signature."""
    untyped: tuple[str, ...] = ()
    """Parameters without a default that have no type."""
    calls: tuple[str, ...] = ()
    """Lines of the project with a call of it, doctests included."""

    @property
    def is_private(self) -> bool:
        return any(part.startswith("_") for part in self.name.split("."))


def find_subject(name: str, source: str, lines: Iterable[str]) -> Subject:
    """The function with this qualified name in a module's text; `lines` are those of the whole project."""
    last = name.rpartition(".")[2]
    call = re.compile(rf"(?<!def )\b{re.escape(last)}\(") if last else re.compile(r"(?!)")
    given: list[ast.arg] = []
    optional: set[str] = set()
    for node in _named(source, last):
        every = [*node.args.posonlyargs, *node.args.args]
        given = [*every, *node.args.kwonlyargs]
        optional = {one.arg for one in every[len(every) - len(node.args.defaults) :]}
        optional |= {
            one.arg for one, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if value is not None
        }
    types = {one.arg: ast.unparse(one.annotation) for one in given if one.annotation}
    untyped = [one.arg for one in given if not one.annotation and one.arg not in ("self", "cls")]
    return Subject(
        name=name,
        types=types,
        untyped=tuple(one for one in untyped if one not in optional),
        calls=tuple(line for line in lines if call.search(line)),
    )


def _named(source: str, name: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            yield node


def doubt_fixture(text: str, subject: Subject, elsewhere: frozenset[str]) -> str:
    """Why nobody would keep a fixture, which is valid JSON; empty if there is no reason."""
    value = json.loads(text)
    cases = value.get("cases") if isinstance(value, dict) else None
    if not isinstance(cases, list):
        return ""
    if subject.is_private:
        return "the function is private"
    different = {json.dumps(case, sort_keys=True) for case in cases if case}
    if len(different) < FEWEST_CASES:
        return "fewer than two cases that give it something"
    said = value.get("parameters")
    guessed = [name for name in said if name not in (subject.types or {})] if isinstance(said, dict) else []
    if guessed and subject.types is not None:
        return f"the signature has no type for `{guessed[0]}`"
    doubted = [case for case in cases if case and not (_is_written(case, subject) or _is_named(case, elsewhere))]
    return f"nobody wrote {json.dumps(doubted[0], ensure_ascii=False)[:80]}" if doubted else ""


def _is_written(case: object, subject: Subject) -> bool:
    """Whether a call of the project has all values of the case."""
    values = [_as_written(leaf) for leaf in leaves(case)]
    return any(all(value in line for value in values) for line in subject.calls)


def _as_written(leaf: object) -> str:
    return leaf if isinstance(leaf, str) else repr(leaf)


def _is_named(case: object, elsewhere: frozenset[str]) -> bool:
    """Whether the case is an object of the project: keys that are its names, and texts that are its words."""
    inner = [each for each in case.values() if isinstance(each, dict)] if isinstance(case, dict) else []
    texts = [leaf for leaf in leaves(case) if isinstance(leaf, str) and leaf]
    known = all(set(re.findall(r"[^\W\d]+", text)) <= elsewhere for text in texts)
    return bool(inner) and all(key in elsewhere for each in inner for key in each) and known


def leaves(value: object) -> list[object]:
    """The values in lists and objects."""
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    if isinstance(value, list):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


def doubt_test(new: Sequence[str], subject: Subject, elsewhere: frozenset[str]) -> str:
    """Why nobody would keep a test with these new assertions; empty if there is no reason."""
    if long := [line for line in new if len(line) > LONGEST_LINE]:
        return f"an assertion of {len(long[0])} characters cannot be checked by eye"
    # A property and an expected error need no known value.
    if subject.untyped and not subject.calls and any(_arguments(line) for line in new):
        return f"no type or call says what `{subject.untyped[0]}` is"
    given = [value for line in new for value in _arguments(line)]
    numbers = [value for value in given if type(value) in (int, float)]
    odd = [one for one in numbers if not any(re.search(rf"(?<![\w.]){one}(?![\w.])", line) for line in subject.calls)]
    if subject.untyped and odd:
        return f"no call gives it {odd[0]}, and `{subject.untyped[0]}` has no type"
    for text in [value for value in given if isinstance(value, str)]:
        strange = [word for word in re.findall(r"[^\W\d_]+", text) if word not in elsewhere and len(word) > 1]
        if strange and elsewhere:
            return f"`{text[:40]}` is a text that the project does not have"
    return ""


def _arguments(line: str) -> list[object]:
    """The constants among the arguments of calls in a line."""
    try:
        tree = ast.parse(line.strip())
    except (SyntaxError, ValueError):
        return []
    calls = [part for part in ast.walk(tree) if isinstance(part, ast.Call)]
    given = [argument for call in calls for argument in [*call.args, *(each.value for each in call.keywords)]]
    return [one.value for argument in given for one in ast.walk(argument) if isinstance(one, ast.Constant)]
