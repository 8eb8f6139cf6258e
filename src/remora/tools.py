"""Python functions as tools: `@remora.tool` gives a function the same schema, contract and errors as a script.

    @remora.tool(effects="none")
    def count_words(text: str, least: int = 1) -> dict:
        '''Count the words of a text.

        Args:
            text: Where to count.
            least: Shortest word that counts.
        '''

The model's arguments are checked against the annotations and never coerced; what does not fit is a
`ToolArgumentsInvalid` that names every misfit. A function that is not async runs in a thread.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints, overload

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError

from remora.context.contracts import Effects, ToolSpec
from remora.errors import DefinitionError, ToolArgumentsInvalid

_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")
_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$")
_ENTRY = re.compile(r"^(\*{0,2}\w+)(?:\s*\([^)]*\))?:\s*(.*)$")


class FunctionTool:
    """A function as a tool. Awaiting a call of it gives the function's result, whether it is async or not."""

    def __init__(self, function: Callable[..., Any], *, name: str, description: str, effects: Effects) -> None:
        self.function = function
        self._signature = inspect.signature(function)
        told = _read_docstring(inspect.getdoc(function) or "")
        self._model = _model_of(function, self._signature, told.parameters, name)
        self.spec = ToolSpec(
            name=name,
            description=description or told.description,
            parameters=_plain_schema(self._model.model_json_schema()),
            effects=effects,
        )
        self.__doc__ = function.__doc__
        self.__name__ = name
        self.__wrapped__ = function

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives for these arguments. Raises `ToolArgumentsInvalid` before it is called at all."""
        given = self._checked(self._named(args, kwargs))
        if inspect.iscoroutinefunction(self.function):
            return _plain_result(await self.function(**given))
        value = await asyncio.to_thread(self.function, **given)
        return _plain_result(await value if inspect.isawaitable(value) else value)

    def __repr__(self) -> str:
        return f"<tool {self.spec.name}>"

    def _named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        names = list(self._signature.parameters)
        if len(args) > len(names):
            raise ToolArgumentsInvalid(self.spec.name, [f"{len(args)} arguments: expected at most {len(names)}"])
        return dict(zip(names, args, strict=False)) | dict(kwargs)

    def _checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function's annotations name them: nothing is coerced that JSON tells apart."""
        try:
            data = orjson.dumps(given, default=_dumped)
            model = self._model.model_validate_json(data, strict=True)
        except ValidationError as error:
            raise ToolArgumentsInvalid(self.spec.name, self._misfits(error)) from error
        except TypeError as error:
            raise ToolArgumentsInvalid(self.spec.name, [f"not JSON: {error}"]) from error
        # What was left out stays left out, so that the function's own default is the one that counts.
        return {name: getattr(model, name) for name in model.model_fields_set}

    def _misfits(self, error: ValidationError) -> list[str]:
        names = ", ".join(f"`{name}`" for name in self._model.model_fields) or "none"
        return [_misfit(item, names) for item in error.errors(include_url=False, include_context=False)]


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, effects: Effects = "outside"
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effects: Effects = "outside",
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a function a tool, by its annotations and docstring. Raises `DefinitionError` with every problem."""

    def make(made: Callable[..., Any]) -> FunctionTool:
        return FunctionTool(made, name=name or made.__name__, description=description or "", effects=effects)

    return make if function is None else make(function)


@dataclasses.dataclass(frozen=True)
class _Told:
    """What a docstring in Google's style says."""

    description: str
    parameters: Mapping[str, str]


def _read_docstring(text: str) -> _Told:
    """Everything before the first section is the description; the entries of `Args:` describe parameters."""
    section, description = "", []
    parameters: dict[str, str] = {}
    name, indent = "", 0
    for line in text.splitlines():
        if found := _SECTION.match(line):
            section, indent = found[1], 0
            continue
        if not section:
            description.append(line)
        elif section in ("Args", "Arguments", "Parameters") and line.strip():
            depth = len(line) - len(line.lstrip())
            indent = indent or depth
            entry = _ENTRY.match(line.strip()) if depth == indent else None
            if entry:
                name = entry[1]
                parameters[name] = entry[2].strip()
            elif name:
                parameters[name] = f"{parameters[name]} {line.strip()}".strip()
    return _Told(" ".join(" ".join(description).split()), parameters)


def _model_of(
    function: Callable[..., Any], signature: inspect.Signature, told: Mapping[str, str], name: str
) -> type[BaseModel]:
    """A model whose fields are the parameters. Raises `DefinitionError` with everything that stands against it."""
    problems = [] if _NAME.match(name) else [f"`{name}` is no name for a tool; use letters, digits and `_`"]
    hints = _hints(function, problems)
    fields: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            problems.append(f"parameter `{parameter.name}` has no name to call it by; write each parameter out")
        elif parameter.annotation is parameter.empty:
            problems.append(f"parameter `{parameter.name}` has no type; annotate it")
        else:
            default = ... if parameter.default is parameter.empty else parameter.default
            described = Field(default, description=told.get(parameter.name) or None)
            fields[parameter.name] = (hints.get(parameter.name, Any), described)
    problems += [f"`{each}` is described but is no parameter" for each in told if each not in signature.parameters]
    model: type[BaseModel] = BaseModel
    try:
        model = create_model(name, __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields)
        model.model_json_schema()
    except (PydanticUserError, NameError, TypeError, ValueError) as error:
        problems.append(f"its types have no JSON Schema: {str(error).splitlines()[0]}; use JSON types or models")
    if problems:
        raise DefinitionError(*_place(function, name, problems))
    return model


def _hints(function: Callable[..., Any], problems: list[str]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        problems.append(f"its types cannot be read: {error}; import what they name")
        return {}


def _place(function: Callable[..., Any], name: str, problems: list[str]) -> tuple[str, list[str]]:
    code = getattr(inspect.unwrap(function), "__code__", None)
    line = code.co_firstlineno if code else 1
    return code.co_filename if code else name, [f"{line}:1: tool `{name}`: {problem}" for problem in problems]


def _plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """As scripts write it: without titles, definitions in their places, a choice of one as an `enum`."""
    parts = schema.pop("$defs", {})
    plain: dict[str, Any] = _inlined(schema, parts, ())
    plain.setdefault("properties", {})
    plain.setdefault("required", [])
    plain.pop("additionalProperties", None)
    plain.pop("description", None)
    return plain


def _inlined(node: Any, parts: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inlined(item, parts, inside) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        # A model that holds itself is described once.
        inner = {"type": "object"} if name in inside else _inlined(parts[name], parts, (*inside, name))
        return inner | {key: value for key, value in node.items() if key != "$ref"}
    made = {key: _named(key, value, parts, inside) for key, value in node.items() if key != "title"}
    if "const" in made:
        made["enum"] = [made.pop("const")]
    return made


def _named(key: str, value: Any, parts: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    # A field may itself be called `title`, so the names of properties are not keywords.
    if key == "properties":
        return {name: _inlined(item, parts, inside) for name, item in value.items()}
    return value if key in ("default", "enum", "examples", "required") else _inlined(value, parts, inside)


def _misfit(item: Any, names: str) -> str:
    place = ".".join(f"`{item['loc'][0]}`" if index == 0 else str(part) for index, part in enumerate(item["loc"]))
    if item["type"] == "missing":
        return f"{place} is missing"
    if item["type"] == "extra_forbidden" and len(item["loc"]) == 1:
        return f"{place} is not an argument: expected {names}"
    return f"{place or 'arguments'}: {item['msg'][0].lower()}{item['msg'][1:]}, got {item['input']!r:.80}"


def _dumped(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"a `{type(value).__name__}` is not a JSON value")


def _plain_result(value: Any) -> Any:
    """Models and dataclasses, a `ToolResult` among them, as the contract's dicts."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value
