"""Parses JUnit reports. Rejects documents with a DTD, so that no entity is ever expanded."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

MAX_CASES = 100_000
MAX_REPORT = 20_000

_KINDS = {"failure": "failed", "error": "error", "skipped": "skipped"}


class _Refused(Exception):
    pass


@dataclass
class Case:
    """One test case of a report."""

    name: str
    kind: str = "passed"
    reason: str = ""
    text: str = ""


@dataclass
class _Reader:
    cases: list[Case] = field(default_factory=list)
    inside: bool = False
    """Whether the parser is inside a failure or an error."""
    room: int = MAX_REPORT

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "testcase":
            self.begin(attributes)
        elif name in _KINDS and self.cases:
            case = self.cases[-1]
            case.kind, case.reason = _KINDS[name], attributes.get("message", "")[:400]
            self.inside, self.room = name != "skipped", MAX_REPORT

    def begin(self, attributes: dict[str, str]) -> None:
        if len(self.cases) >= MAX_CASES:
            raise _Refused
        owner, name = attributes.get("classname", ""), attributes.get("name", "?")
        self.cases.append(Case(f"{owner}::{name}"[:400] if owner else name[:400]))

    def end(self, name: str) -> None:
        if name in _KINDS:
            self.inside = False

    def text(self, data: str) -> None:
        if self.inside and self.room > 0:
            self.cases[-1].text += data[: self.room]
            self.room -= len(data)


def read_cases(text: str) -> list[Case] | None:
    """The test cases of a report, in order. None if it is not XML or has a DTD."""
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(text.lstrip(), True)
    except (expat.ExpatError, _Refused, ValueError):
        return None
    return reader.cases


def _refuse(*_: object) -> None:
    raise _Refused
