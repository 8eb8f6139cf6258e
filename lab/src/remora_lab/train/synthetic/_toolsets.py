"""Tools as people write them, and what people ask of them, written down by hand: `requests/*.yaml`."""

from __future__ import annotations

import hashlib
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from remora.context.contracts import ToolSpec

FOLDER = Path(__file__).with_name("requests")
UNSEEN_IN = 6
"""One toolset in so many is never trained on."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WantedCall(_Strict):
    """The call that does what a sentence asks for."""

    tool: str
    args: dict[str, JsonValue] = {}


class Said(_Strict):
    """What a person says, and the call for it; without a call no tool of the set fits."""

    say: str
    call: WantedCall | None


class WrittenTool(_Strict):
    """A tool. A parameter is its JSON Schema, or the name of its type; `optional` marks what may be left out."""

    name: str
    description: str
    parameters: dict[str, str | dict[str, Any]] = {}

    @property
    def spec(self) -> ToolSpec:
        schemas = {name: {"type": each} if isinstance(each, str) else each for name, each in self.parameters.items()}
        required = [name for name, each in schemas.items() if "default" not in each and not each.get("optional")]
        plain = {
            name: {key: value for key, value in each.items() if key != "optional"} for name, each in schemas.items()
        }
        schema = {"type": "object", "properties": plain, "required": required}
        return ToolSpec(name=self.name, description=self.description, parameters=schema)


class Toolset(_Strict):
    """Tools of one field that are offered together."""

    name: str
    field: str
    """Sets of the same field can do each other's work."""
    wide: bool = False
    """Its tools can do the work of any field, such as a search of the web: they are never mixed with others."""
    alike: tuple[tuple[str, ...], ...] = ()
    """Tools that can stand in for each other: without one of them, the others would do."""
    tools: tuple[WrittenTool, ...] = Field(min_length=1, max_length=7)
    requests: tuple[Said, ...] = Field(min_length=8, max_length=12)

    @cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self.tools)

    @property
    def is_unseen(self) -> bool:
        return hashlib.sha256(self.name.encode()).digest()[0] % UNSEEN_IN == 0

    def stand_ins(self, tool: str) -> frozenset[str]:
        """The tool, and those that would do its work."""
        return frozenset({tool}.union(*(group for group in self.alike if tool in group)))


@cache
def toolsets() -> tuple[Toolset, ...]:
    """All toolsets, in the order of their files."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    read = [yaml.load(path.read_bytes(), Loader=loader) for path in sorted(FOLDER.glob("*.yaml"))]  # noqa: S506
    return tuple(Toolset.model_validate(each) for listed in read for each in listed)
