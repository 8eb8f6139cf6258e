"""Work that people would give an agent, told as data: how a thing can stand, and what is done then.

A program can shuffle words, but not make up rules whose meaning decides. These were written down one by one for that.
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
"""Before a word that an argument always has."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Look(_Strict):
    """The tool that tells how things stand."""

    name: str
    says: str


class Case(_Strict):
    """One way in which a thing can stand, and the tool for it; without a tool nothing is done."""

    facts: dict[str, list[Any]] = {}
    items: tuple[str, ...] = ()
    """Things whose name tells that they belong here, where no fact does."""
    tool: str = ""
    says: str = ""
    takes: dict[str, str] = {}
    """Where the value of each argument comes from: the item, a fact, a value, or a fixed word."""
    rule: str
    """What is done, without the name of a tool."""
    orders: tuple[str, ...]
    """The same, with the name of the tool."""
    done: str = ""
    summary: str = ""

    def source(self, argument: str) -> str:
        """The key under which an argument's value is told; nothing for a fixed word."""
        return "" if self.takes[argument].startswith(FIXED) else self.takes[argument]

    def args(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments for a thing of which this is told."""
        return {name: told[key] if (key := self.source(name)) else self.takes[name][1:] for name in self.takes}


class Scenario(_Strict):
    """One kind of agent."""

    name: str
    shape: Literal["one", "many", "names"]
    """One thing; several things of which something is told; several things that only their names tell apart."""
    thing: str
    who: str
    goals: tuple[str, ...]
    files: tuple[str, ...]
    look: Look
    cases: tuple[Case, ...]
    items: tuple[str, ...] = ()
    values: dict[str, list[Any]] = {}
    """What is told beside the facts, and examples."""
    pile: str = ""


@cache
def scenarios() -> dict[str, Scenario]:
    """All scenarios by name."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    read = [yaml.load(path.read_bytes(), Loader=loader) for path in sorted(FOLDER.glob("*.yaml"))]  # noqa: S506
    found = [Scenario.model_validate(each) for listed in read for each in listed]
    return {each.name: each for each in found}
