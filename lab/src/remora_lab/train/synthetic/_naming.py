"""The same tools with names in another style: `get_user`, `getUser`, `GetUser` or `get-user`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from remora.context.contracts import ToolSpec
from remora_lab.train.synthetic._dice import Dice

Style = Callable[[Sequence[str]], str]
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+")


def _snake(words: Sequence[str]) -> str:
    return "_".join(words)


def _kebab(words: Sequence[str]) -> str:
    return "-".join(words)


def _pascal(words: Sequence[str]) -> str:
    return "".join(word.capitalize() for word in words)


def _camel(words: Sequence[str]) -> str:
    return words[0] + _pascal(words[1:])


STYLES: tuple[tuple[Style, Style], ...] = (
    (_snake, _snake),
    (_camel, _camel),
    (_pascal, _camel),
    (_pascal, _pascal),
    (_kebab, _snake),
)
"""How tools and how their arguments are named."""


def restyled(
    dice: Dice, tools: Sequence[ToolSpec], tool: str, args: Mapping[str, Any]
) -> tuple[tuple[ToolSpec, ...], str, dict[str, Any]]:
    """The tools and a call with their names in another style; as they were where two names would become one."""
    of_tools, of_args = dice.one(STYLES)
    names = {each.name: _named(each.name, of_tools) for each in tools}
    if len(set(names.values())) < len(names):
        return tuple(tools), tool, dict(args)
    made = tuple(_with_names(each, names[each.name], of_args) for each in tools)
    return made, names.get(tool, tool), {_named(name, of_args): value for name, value in args.items()}


def with_shuffled_arguments(dice: Dice, tool: ToolSpec) -> ToolSpec:
    """The tool with its arguments in another order."""
    properties = tool.parameters["properties"]
    shuffled = {name: properties[name] for name in dice.shuffled(list(properties))}
    return tool.model_copy(update={"parameters": {**tool.parameters, "properties": shuffled}})


def _with_names(tool: ToolSpec, name: str, style: Style) -> ToolSpec:
    properties = {_named(each, style): schema for each, schema in tool.parameters["properties"].items()}
    required = [_named(each, style) for each in tool.parameters["required"]]
    parameters = {**tool.parameters, "properties": properties, "required": required}
    return tool.model_copy(update={"name": name, "parameters": parameters})


def _named(name: str, style: Style) -> str:
    """The name in this style; what stands before and after a dot is a name of its own."""
    return ".".join(style([word.lower() for word in _WORD.findall(part)]) for part in name.split("."))
