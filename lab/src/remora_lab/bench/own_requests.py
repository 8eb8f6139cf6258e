"""Reads requests that people wrote, to ask a model for them. One line of JSON each:

    {"request": "Move the 3 pm call to Friday", "tools": [TOOL, …], "call": {"name": "reschedule", "arguments": {…}}}

A tool has OpenAI's or Anthropic's shape. `call` is null where no tool fits, and a list where several calls are right.
Where many are, `accepts` in place of `arguments` has the right values of each argument, in any combination:

    "call": {"name": "reschedule", "accepts": {"event": ["3 pm call", "call"], "day": ["Friday"], "room": [null, "B2"]}}

Null means that the argument may be missing. These texts are compared without upper case, blanks and punctuation.
`system` is the system text, if it is not ours. `decline: false` offers no `no_tool_fits`, as most agents do.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, model_validator

from remora.app import Deciders
from remora.context.chat import tool_spec
from remora.context.models import DecisionPacket
from remora.context.render import fixed_tokens, render_within, system_text
from remora.errors import ConfigError, DefinitionError
from remora.subagent import NO_TOOL_FITS, NO_TOOL_FITS_TOOL, SUBMIT_RESULT, SUBMIT_RESULT_TOOL
from remora.validation import validate
from remora_lab.bench.requests import Exactly, OneOfEach, Request

SYSTEM = "Do what the user asks. Take arguments from the user's words."
MAY_DECLINE = f" If no tool fits, call {NO_TOOL_FITS_TOOL} and say so."
_HINT = 'Expected {"request": …, "tools": […], "call": {"name": …, "arguments": {…}} or null}'


class _Wanted(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    accepts: dict[str, list[Any]] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.arguments and self.accepts:
            raise ValueError("expected `arguments` or `accepts`, not both")
        _check_accepts(self.accepts or {}, "accepts")
        return self

    def rightness(self) -> Exactly | OneOfEach:
        return Exactly(self.arguments) if self.accepts is None else OneOfEach(self.accepts)


def _check_accepts(accepts: Mapping[str, Any], where: str) -> None:
    """Objects among the right values say in the same way what is right inside them. Raises `ValueError` where not."""
    for name, right in accepts.items():
        if not isinstance(right, list):
            said = f"`{where}.{name}` is no list: expected all its right values, such as `[{right!r:.40}]`"
            raise ValueError(said)  # noqa: TRY004 - pydantic tells only these
        for value in itertools.chain(right, *(each for each in right if isinstance(each, list))):
            if isinstance(value, dict):
                _check_accepts(value, f"{where}.{name}")


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    request: str = Field(min_length=1)
    tools: list[dict[str, Any]] = Field(min_length=1)
    call: _Wanted | list[_Wanted] | None
    system: str | None = None
    decline: bool = True


class OwnRequests:
    """The requests of a file, as prompts of a model. Raises `ConfigError` for a line that is none."""

    def __init__(self, path: Path) -> None:
        try:
            lines = path.read_bytes().splitlines()
        except OSError as error:
            raise ConfigError(f"`{path}` cannot be read: {error.strerror}", hint=_HINT) from error
        self._lines = [_line(line, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line.strip()]
        if not self._lines:
            raise ConfigError(f"`{path}` holds no request", hint=_HINT)

    def __len__(self) -> int:
        return len(self._lines)

    def prompts(self, deciders: Deciders) -> Iterator[Request]:
        """Each request as the first prompt of an agent with these tools, for the model of `deciders`."""
        for line in self._lines:
            yield _request(line, deciders)


def _line(text: bytes, where: str) -> _Line:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise DefinitionError(where, [f"not JSON: {error}"], hint=_HINT) from error
    line = validate(_Line, value, where, hint=_HINT)
    if problem := _problem(line):
        raise DefinitionError(where, [problem], hint=_HINT)
    return line


def _problem(line: _Line) -> str:
    """What is wrong with its tools or calls; empty if nothing is."""
    try:
        names = Counter(tool_spec(tool).name for tool in line.tools)
    except ConfigError as error:
        return error.message
    added = [NO_TOOL_FITS.name, SUBMIT_RESULT.name] if line.decline else [SUBMIT_RESULT.name]
    offered = names + Counter(added)
    if twice := [name for name in names if offered[name] > 1]:
        own = f"added by itself: {', '.join(f'`{name}`' for name in added)}"
        return f"two tools are named `{twice[0]}`: expected different names ({own})"
    if unknown := [call.name for call in _accepted(line) if call.name not in names]:
        return f"`call` names `{unknown[0]}`, which is not one of its tools"
    if len({call.name for call in _accepted(line)}) > 1:
        return "`call` names several tools: expected one tool"
    return ""


def _accepted(line: _Line) -> list[_Wanted]:
    return line.call if isinstance(line.call, list) else [line.call] if line.call else []


def _request(line: _Line, deciders: Deciders) -> Request:
    declining = (NO_TOOL_FITS,) if line.decline else ()
    tools = (*map(tool_spec, line.tools), *declining, SUBMIT_RESULT)
    text = line.system or SYSTEM + (MAY_DECLINE if line.decline else "")
    system = system_text(text, tools, deciders.calling)
    fixed = fixed_tokens(system, deciders.counter, tools if deciders.calling == "native" else ())
    rendered = render_within(
        DecisionPacket(agent_id="", operation="", node_id="", goal=line.request, turn=1),
        system,
        fixed,
        limit=deciders.limit(fixed + deciders.packet_tokens),
        count=deciders.counter.count,
        style="json",
        calling=deciders.calling,
    )
    accepted = _accepted(line)
    wanted = accepted[0].name if accepted else NO_TOOL_FITS_TOOL if line.decline else SUBMIT_RESULT_TOOL
    return Request(tuple(rendered.messages), tools, wanted, tuple(call.rightness() for call in accepted))
