"""Asks a model what people ask for: a sentence must choose the tool and hold its arguments, or no tool fits."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from remora.context.contracts import ToolSpec
from remora.errors import DecisionError
from remora.ports import Policy, Prompt
from remora.subagent import NO_TOOL_FITS_TOOL, SUBMIT_RESULT_TOOL
from remora_lab.bench.stats import Interval, wilson

DECLINES = (NO_TOOL_FITS_TOOL, SUBMIT_RESULT_TOOL)
_NONE = object()
_LOOSE = re.compile(r"[\s,./\-_*^'\"]")
"""What does not count where two texts are compared: whoever asked did not say it either."""


class RequestRow(Protocol):
    """A request as training rows have it."""

    @property
    def messages(self) -> tuple[Mapping[str, Any], ...]:
        """System text with the tools, and the packet with the sentence as its goal."""

    @property
    def answer(self) -> str:
        """The right call, as JSON."""


@dataclass(frozen=True)
class Exactly:
    """Arguments that are right as they are; one with its default is as good as none."""

    arguments: Mapping[str, Any]

    def fits(self, tool: ToolSpec, args: Mapping[str, Any]) -> bool:
        """Whether these arguments of a call are right."""
        return _without_defaults(tool, args) == _without_defaults(tool, self.arguments)


@dataclass(frozen=True)
class OneOfEach:
    """For each argument the values that are right; None among them if it may be missing."""

    accepts: Mapping[str, Sequence[Any]]

    def fits(self, tool: ToolSpec, args: Mapping[str, Any]) -> bool:
        """Whether these arguments of a call are right."""
        return _each_fits(_without_defaults(tool, args), self.accepts)


@dataclass(frozen=True)
class Request:
    """A person's sentence as a model reads it, and the calls that are right."""

    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[ToolSpec, ...]
    wanted: str
    """The right tool; one of `DECLINES` if none fits."""
    accepted: tuple[Exactly | OneOfEach, ...]
    """Arguments that are right."""


@dataclass(frozen=True)
class Asked:
    """One request and what the model called; an empty tool if it gave no call."""

    wanted: str
    tool: str
    exact: bool
    place: int
    """The position of the called tool in the list; -1 for one that is not listed."""
    tools: int
    seconds: float
    offered: bool = True
    """Whether `no_tool_fits` was offered. If not, `submit_result` declines."""

    @property
    def declined(self) -> bool:
        return self.tool in DECLINES

    @property
    def should_decline(self) -> bool:
        return self.wanted in DECLINES


@dataclass(frozen=True)
class RequestFigures:
    """How often a model did what was asked."""

    right_tool: Interval
    """Of requests that a tool fits."""
    exact: Interval
    """The same, with exactly the right arguments."""
    declined: Interval
    """Of requests that no tool fits."""
    declined_by_tool: Interval
    """The same, where `no_tool_fits` was offered."""
    over_declined: Interval
    """Declined, of requests that a tool fits."""
    first_listed: Interval
    """Calls of the tool that is listed first, of requests that a tool fits."""
    seconds: float
    """Mean of a decision."""


def request_of(row: RequestRow) -> Request:
    """The request of a training row, whose system text lists the tools."""
    wanted = orjson.loads(row.answer)
    return Request(
        row.messages, listed_tools(str(row.messages[0]["content"])), wanted["tool"], (Exactly(wanted["args"]),)
    )


async def ask_requests(
    requests: Iterable[Request], policies: Iterable[Policy], done: Callable[[Asked], None] = lambda _: None
) -> list[Asked]:
    """Ask every request once: each policy takes the next one when it is free."""
    left, found = iter(requests), list[Asked]()

    async def work(policy: Policy) -> None:
        for request in left:
            found.append(await _ask(request, policy))
            done(found[-1])

    async with asyncio.TaskGroup() as group:
        for policy in policies:
            group.create_task(work(policy))
    return found


async def _ask(request: Request, policy: Policy) -> Asked:
    tools = request.tools
    prompt = Prompt(messages=request.messages, tools=tools, candidates=(), turn=1)
    began = time.monotonic()
    try:
        calls = (await policy.decide(prompt)).calls
    except DecisionError:
        calls = ()
    tool, args = (calls[0].tool, calls[0].args) if calls else ("", {})
    names = [each.name for each in tools]
    place = names.index(tool) if tool in names else -1
    right = tool == request.wanted and any(each.fits(tools[place], args) for each in request.accepted)
    offered = NO_TOOL_FITS_TOOL in names
    return Asked(request.wanted, tool, right, place, len(tools), time.monotonic() - began, offered)


def _each_fits(args: Mapping[str, Any], accepts: Mapping[str, Sequence[Any]]) -> bool:
    missing = accepts.keys() - args.keys()
    return (
        args.keys() <= accepts.keys()
        and all(None in accepts[name] for name in missing)
        and all(any(_is_one(value, right) for right in accepts[name]) for name, value in args.items())
    )


def _is_one(value: Any, right: Any) -> bool:
    match value, right:
        case str(), str():
            return _LOOSE.sub("", value).casefold() == _LOOSE.sub("", right).casefold()
        case dict(), dict():
            return _each_fits(value, right)
        case list(), list():
            return len(value) == len(right) and all(map(_is_one, value, right))
    return isinstance(value, bool) == isinstance(right, bool) and bool(value == right)


def _without_defaults(tool: ToolSpec, args: Mapping[str, Any]) -> dict[str, Any]:
    properties = tool.parameters.get("properties", {})
    return {name: value for name, value in args.items() if properties.get(name, {}).get("default", _NONE) != value}


def listed_tools(system: str) -> tuple[ToolSpec, ...]:
    """The tools that a system text lists."""
    listed = system.partition("Tools:\n")[2].partition("\n\n")[0]
    return tuple(_spec(orjson.loads(line)) for line in listed.splitlines())


def _spec(listed: Mapping[str, Any]) -> ToolSpec:
    args = {name: {key: item for key, item in arg.items() if key != "optional"} for name, arg in listed["args"].items()}
    required = [name for name, arg in listed["args"].items() if "default" not in arg and not arg.get("optional")]
    schema = {"type": "object", "properties": args, "required": required}
    return ToolSpec(name=listed["name"], description=listed["description"], parameters=schema)


def figures(asked: Sequence[Asked]) -> RequestFigures:
    """The shares, with Wilson's intervals."""
    fits = [one for one in asked if not one.should_decline]
    none = [one for one in asked if one.should_decline]
    return RequestFigures(
        right_tool=_share([one.tool == one.wanted for one in fits]),
        exact=_share([one.exact for one in fits]),
        declined=_share([one.declined for one in none]),
        declined_by_tool=_share([one.declined for one in none if one.offered]),
        over_declined=_share([one.declined for one in fits]),
        first_listed=_share([one.place == 0 for one in fits]),
        seconds=sum(one.seconds for one in asked) / max(1, len(asked)),
    )


def _share(found: Sequence[bool]) -> Interval:
    return wilson(sum(found) / max(1, len(found)), len(found))
