"""Scenarios: realistic work for an agent as data, with the possible conditions and what to do for each.

A program can shuffle words, but not invent rules whose meaning decides. So these were written by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict

FOLDER = Path(__file__).with_name("scenarios")
FIXED = "="
"""Prefix of a fixed argument value."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Look(_Model):
    """The tool that reports the state."""

    name: str
    says: str


class Case(_Model):
    """One possible condition of a thing, and the tool for it. Without a tool nothing is done."""

    facts: dict[str, list[Any]] = {}
    items: tuple[str, ...] = ()
    """Things whose name shows that they belong here, if no fact does."""
    tool: str = ""
    says: str = ""
    takes: dict[str, str] = {}
    """The source of each argument: the item, a fact, a value, or a fixed word."""
    rule: str
    """What is done, without the name of a tool."""
    orders: tuple[str, ...]
    """The same, with the name of the tool."""
    done: str = ""
    summary: str = ""

    def source(self, argument: str) -> str:
        """The key of an argument's value; empty for a fixed word."""
        return "" if self.takes[argument].startswith(FIXED) else self.takes[argument]

    def args(self, reported: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments for a thing with these facts."""
        return {name: reported[key] if (key := self.source(name)) else self.takes[name][1:] for name in self.takes}


class Scenario(_Model):
    """One kind of agent."""

    name: str
    shape: Literal["one", "many", "names"]
    """One thing; several things with facts; several things that only differ by name."""
    thing: str
    who: str
    goals: tuple[str, ...]
    files: tuple[str, ...]
    look: Look
    cases: tuple[Case, ...]
    items: tuple[str, ...] = ()
    values: dict[str, list[Any]] = {}
    """Values reported besides the facts, with examples."""
    pile: str = ""


@cache
def scenarios() -> dict[str, Scenario]:
    """All scenarios by name."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    read = [yaml.load(path.read_bytes(), Loader=loader) for path in sorted(FOLDER.glob("*.yaml"))]  # noqa: S506
    found = [Scenario.model_validate(each) for listed in read for each in listed]
    return {each.name: each for each in found}
