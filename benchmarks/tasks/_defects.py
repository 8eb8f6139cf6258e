"""Defects: ways to spoil sound code so that ruff says one thing about it and the code still does what it did.

A defect looks at one line of a function, and what follows it, and gives the lines to put there; None where it has no
place. What it replaced is what a good edit puts back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

NAME = r"[A-Za-z_][\w.]*"
LONGEST = 120
"""Characters that a line of the projects may have."""


@dataclass(frozen=True)
class Place:
    """A line of a function, with what surrounds it."""

    lines: Sequence[str]
    index: int
    booleans: frozenset[str]
    """Parameters that are `bool`."""
    mappings: frozenset[str]
    """Parameters and locals that are a `dict`."""
    local: str
    """A name that is known in this line; empty if there is none."""

    @property
    def line(self) -> str:
        return self.lines[self.index]

    @property
    def indent(self) -> str:
        return self.line[: len(self.line) - len(self.line.lstrip())]

    def next(self, ahead: int = 1) -> str:
        return self.lines[self.index + ahead] if self.index + ahead < len(self.lines) else ""


@dataclass(frozen=True)
class Spoilt:
    """Lines in place of others: `old` from the place on, `new` instead."""

    old: int
    new: tuple[str, ...]


Spoil = Callable[[Place], Spoilt | None]


def _sub(pattern: str, new: str | Callable[[re.Match[str]], str]) -> Spoil:
    """Replaces one match within a line."""

    def spoil(place: Place) -> Spoilt | None:
        line = re.sub(pattern, new, place.line, count=1)
        return Spoilt(1, (line,)) if line != place.line else None

    return spoil


def _insert(text: str, before: str = "return ") -> Spoil:
    """Puts a line before one that begins so, with a name that is known there."""

    def spoil(place: Place) -> Spoilt | None:
        if not place.line.lstrip().startswith(before) or not place.local or len(place.indent) > 8:
            return None
        return Spoilt(1, (place.indent + text.replace("NAME", place.local), place.line))

    return spoil


def _flag_compared(place: Place) -> Spoilt | None:
    found = re.match(rf"(\s+if )({NAME}):$", place.line)
    return Spoilt(1, (f"{found[1]}{found[2]} == True:",)) if found and found[2] in place.booleans else None


def _keys_asked(place: Place) -> Spoilt | None:
    found = re.search(rf"\b(in )({NAME})(?=[:\s)]|$)", place.line)
    if not found or found[2] not in place.mappings or " for " in place.line:
        return None
    return Spoilt(1, (f"{place.line[: found.start()]}in {found[2]}.keys(){place.line[found.end() :]}",))


def _formatted(place: Place) -> Spoilt | None:
    found = re.search(r'f"([^"{}]*(?:\{[a-z_]\w*\}[^"{}]*)+)"', place.line)
    if not found:
        return None
    names = re.findall(r"\{(\w+)\}", found[1])
    text = re.sub(r"\{\w+\}", "{}", found[1])
    made = f'"{text}".format({", ".join(names)})'
    return Spoilt(1, (place.line[: found.start()] + made + place.line[found.end() :],))


def _percent(place: Place) -> Spoilt | None:
    found = re.search(r'f"([^"{}%]*(?:\{[a-z_]\w*\}[^"{}%]*)+)"', place.line)
    if not found:
        return None
    names = re.findall(r"\{(\w+)\}", found[1])
    made = f'"{re.sub(r"{.*?}", "%s", found[1])}" % ({", ".join(names)}{"," if len(names) == 1 else ""})'
    return Spoilt(1, (place.line[: found.start()] + made + place.line[found.end() :],))


def _else_after_return(place: Place) -> Spoilt | None:
    simple = re.match(r"\s+if .*:$", place.line) and re.match(r"\s+return ", place.next())
    last = place.next(2)
    if not simple or not last.startswith(f"{place.indent}return ") or last.rstrip().endswith(("(", "[", "{")):
        return None
    return Spoilt(3, (place.line, place.next(), f"{place.indent}else:", f"    {last}"))


def _one_line_if(place: Place) -> Spoilt | None:
    body = place.next().strip()
    if not re.match(r"\s+if .*:$", place.line) or not re.match(r"(return|raise|continue)\b", body):
        return None
    if place.next(2).strip()[:4] in ("elif", "else") or len(f"{place.line} {body}") > LONGEST:
        return None
    return Spoilt(2, (f"{place.line} {body}",))


def _nested_if(place: Place) -> Spoilt | None:
    found = re.match(r"(\s+)if ([^()]+?) and ([^()]+?):$", place.line)
    deeper, after = place.next(), place.next(2)
    if not found or " or " in place.line or not deeper.startswith(place.indent + "    "):
        return None
    if after.startswith(place.indent + "    ") or after.strip()[:4] in ("elif", "else"):
        return None
    return Spoilt(2, (f"{found[1]}if {found[2]}:", f"{found[1]}    if {found[3]}:", f"    {deeper}"))


def _yoda(place: Place) -> Spoilt | None:
    found = re.match(r"(\s+if )([\w.]+|len\(\w+\)) (<|>|<=|>=|==|!=) (-?\d+(?:\.\d+)?):$", place.line)
    if not found:
        return None
    turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(found[3], found[3])
    return Spoilt(1, (f"{found[1]}{found[4]} {turned} {found[2]}:",))


def _assigned_return(place: Place) -> Spoilt | None:
    found = re.match(r"(    |        )return (.+)$", place.line)
    if not found or re.fullmatch(r"[\w.]+", found[2]) or found[2].count("(") != found[2].count(")"):
        return None
    return Spoilt(1, (f"{found[1]}outcome = {found[2]}", f"{found[1]}return outcome"))


def _true_or_false(place: Place) -> Spoilt | None:
    found = re.match(r"(\s+return )([\w. ]+ (?:<|>|<=|>=|==) [\w. ()]+)$", place.line)
    return Spoilt(1, (f"{found[1]}True if {found[2]} else False",)) if found else None


def _message_inline(place: Place) -> Spoilt | None:
    """Code that EM101 and EM102 want otherwise: the sound form names the message first."""
    found = re.match(r'(\s+)raise (\w+)\((f?".*")\)( from \w+)?$', place.line)
    return Spoilt(1, (place.line,)) if found else None


def message_named(line: str) -> tuple[str, ...]:
    """What EM101 and EM102 ask for."""
    found = re.match(r'(\s+)raise (\w+)\((f?".*")\)( from \w+)?$', line)
    assert found
    return (f"{found[1]}message = {found[3]}", f"{found[1]}raise {found[2]}(message){found[4] or ''}")


def _not_chained(place: Place) -> Spoilt | None:
    found = re.match(r"(\s+except \w+) as (\w+):$", place.line)
    if not found or not place.next().endswith(f" from {found[2]}"):
        return None
    return Spoilt(2, (f"{found[1]}:", place.next().removesuffix(f" from {found[2]}")))


def _short_name(place: Place) -> Spoilt | None:
    found = re.search(r"[\[{(](.*) for (\w+) in ", place.line)
    if not found or found[2] == "_" or place.line.count(" for ") > 1 or '"' in place.line or "lambda" in place.line:
        return None
    if place.line.count("[") != place.line.count("]") or place.line.lstrip().startswith("for "):
        return None
    return Spoilt(1, (re.sub(rf"\b{found[2]}\b", "l", place.line),))


def _counted_loop(place: Place) -> Spoilt | None:
    found = re.match(rf"(\s+for )(\w+) in ({NAME}):$", place.line)
    return Spoilt(1, (f"{found[1]}number, {found[2]} in enumerate({found[3]}):",)) if found else None


def _message_split(place: Place) -> Spoilt | None:
    found = re.search(r'\("([a-z]+(?: [a-z]+)+)"\)', place.line)
    if not found:
        return None
    first, _, rest = found[1].partition(" ")
    return Spoilt(1, (place.line.replace(f'"{found[1]}"', f'"{first} " "{rest}"'),))


BODY: dict[str, tuple[Spoil, ...]] = {
    "B007": (_counted_loop,),
    "B018": (_insert("NAME"),),
    "B904": (_not_chained,),
    "C408": (_sub(r"= \{\}$", "= dict()"), _sub(r"= \[\]$", "= list()")),
    "C414": (_sub(rf"sorted\(({NAME})([,)])", r"sorted(list(\1)\2"),),
    "E701": (_one_line_if,),
    "E703": (_sub(r"^(\s+\w+ (?:=|\+=|-=) [^\[{(]*)$", r"\1;"),),
    "E711": (
        _sub(rf"\b({NAME}) is None", r"\1 == None"),
        _sub(rf"\b({NAME}) is not None", r"\1 != None"),
    ),
    "E712": (_flag_compared,),
    "E713": (_sub(rf"\bif ({NAME}|{NAME}\.\w+) not in ({NAME})", r"if not \1 in \2"),),
    "E714": (_sub(rf"\bif ({NAME}) is not (None|{NAME}):", r"if not \1 is \2:"),),
    "E741": (_short_name,),
    "EM101": (lambda place: _message_inline(place) if '("' in place.line else None,),
    "EM102": (lambda place: _message_inline(place) if '(f"' in place.line else None,),
    "ERA001": (_insert("# NAME = sorted(NAME)"), _insert("# print(NAME)")),
    "F541": (_sub(r'\("([a-z][a-z ]+)"\)', r'(f"\1")'),),
    "F841": (_insert("earlier = NAME"), _insert("kind = type(NAME)")),
    "ISC001": (_message_split,),
    "PIE790": (_insert("pass"),),
    "PLW0127": (_insert("NAME = NAME"),),
    "Q000": (_sub(r'([( \[])"([\w.:;, -]+)"', r"\1'\2'"),),
    "RET504": (_assigned_return,),
    "RET505": (_else_after_return,),
    "RUF010": (_sub(r"(f\"[^\"{}]*)\{([a-z_]\w*)\}", r"\1{str(\2)}"),),
    "SIM102": (_nested_if,),
    "SIM118": (_keys_asked,),
    "SIM210": (_true_or_false,),
    "SIM300": (_yoda,),
    "T201": (_insert("print(NAME)"), _insert('print("here", NAME)')),
    "UP018": (_sub(r'= ""$', '= str("")'), _sub(r"= (0\.0)$", r"= float(\1)")),
    "UP031": (_percent,),
    "UP032": (_formatted,),
    "UP034": (_sub(rf"\blen\(({NAME})\)", r"len((\1))"),),
    "W291": (_sub(r"^(\s+(?:if|return|for) .*[:\w)\]])$", r"\1  "),),
}
"""By rule code, the ways to bring it about inside a function."""

FIXED_BY_RUFF = frozenset(
    ("E703", "E713", "E714", "F401", "F541", "I001", "ISC001", "PIE790", "Q000", "RET505", "RUF010", "SIM118",
     "SIM300", "UP004", "UP009", "UP018", "UP032", "UP034", "UP039", "UP045", "W291")
)  # fmt: skip
"""Codes with a safe fix; a test holds this against ruff itself."""
