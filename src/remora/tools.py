"""Python functions as tools: `@remora.tool` gives a function the same schema, contract and errors as a script.

    @remora.tool(effects="none")
    def count_words(text: str, least: int = 1) -> dict:
        '''Count the words of a text.

        Args:
            text: Where to count.
            least: Shortest word that counts.
        '''

The model's arguments are checked against the annotations and never coerced. Otherwise `ToolArgumentsInvalid` names
every problem. A function that is not async runs in a thread.
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
    """A function as a tool. Calling it is always awaitable, whether the function is async or not."""

    def __init__(self, function: Callable[..., Any], *, name: str, description: str, effects: Effects) -> None:
        self.function = function
        self._signature = inspect.signature(function)
        docstring = _read_docstring(inspect.getdoc(function) or "")
        self._model = _model_of(function, self._signature, docstring.parameters, name)
        self.spec = ToolSpec(
            name=name,
            description=description or docstring.description,
            parameters=_plain_schema(self._model.model_json_schema()),
            effects=effects,
        )
        self.__doc__ = function.__doc__
        self.__name__ = name
        self.__wrapped__ = function

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function. Raises `ToolArgumentsInvalid` before the call if the arguments do not fit."""
        given = self._validate(self._by_name(args, kwargs))
        if inspect.iscoroutinefunction(self.function):
            return _plain_result(await self.function(**given))
        value = await asyncio.to_thread(self.function, **given)
        return _plain_result(await value if inspect.isawaitable(value) else value)

    def __repr__(self) -> str:
        return f"<tool {self.spec.name}>"

    def _by_name(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        names = list(self._signature.parameters)
        if len(args) > len(names):
            raise ToolArgumentsInvalid(self.spec.name, [f"{len(args)} arguments: expected at most {len(names)}"])
        return dict(zip(names, args, strict=False)) | dict(kwargs)

    def _validate(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Validate the arguments against the annotations, without coercing JSON types."""
        try:
            data = orjson.dumps(given, default=_to_json)
            model = self._model.model_validate_json(data, strict=True)
        except ValidationError as error:
            raise ToolArgumentsInvalid(self.spec.name, self._describe_errors(error)) from error
        except TypeError as error:
            raise ToolArgumentsInvalid(self.spec.name, [f"not JSON: {error}"]) from error
        # Omitted arguments stay omitted, so that the function's own defaults apply.
        return {name: getattr(model, name) for name in model.model_fields_set}

    def _describe_errors(self, error: ValidationError) -> list[str]:
        names = ", ".join(f"`{name}`" for name in self._model.model_fields) or "none"
        return [_describe_error(item, names) for item in error.errors(include_url=False, include_context=False)]


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
    """Make a function a tool, from its annotations and docstring. Raises `DefinitionError` with every problem."""

    def make(target: Callable[..., Any]) -> FunctionTool:
        return FunctionTool(target, name=name or target.__name__, description=description or "", effects=effects)

    return make if function is None else make(function)


@dataclasses.dataclass(frozen=True)
class _Docstring:
    """The parts of a Google-style docstring."""

    description: str
    parameters: Mapping[str, str]


def _read_docstring(text: str) -> _Docstring:
    """Everything before the first section is the description. The entries of `Args:` describe parameters."""
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
    return _Docstring(" ".join(" ".join(description).split()), parameters)


def _model_of(
    function: Callable[..., Any], signature: inspect.Signature, docstring: Mapping[str, str], name: str
) -> type[BaseModel]:
    """A model whose fields are the parameters. Raises `DefinitionError` with every problem."""
    problems = [] if _NAME.match(name) else [f"`{name}` is not a valid tool name; use letters, digits and `_`"]
    hints = _hints(function, problems)
    fields: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            problems.append(f"parameter `{parameter.name}` cannot be passed by name; write each parameter out")
        elif parameter.annotation is parameter.empty:
            problems.append(f"parameter `{parameter.name}` has no type; annotate it")
        else:
            default = ... if parameter.default is parameter.empty else parameter.default
            described = Field(default, description=docstring.get(parameter.name) or None)
            fields[parameter.name] = (hints.get(parameter.name, Any), described)
    problems += [
        f"`{each}` is described but is not a parameter" for each in docstring if each not in signature.parameters
    ]
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
        problems.append(f"its types cannot be resolved: {error}; import the names they use")
        return {}


def _place(function: Callable[..., Any], name: str, problems: list[str]) -> tuple[str, list[str]]:
    code = getattr(inspect.unwrap(function), "__code__", None)
    line = code.co_firstlineno if code else 1
    return code.co_filename if code else name, [f"{line}:1: tool `{name}`: {problem}" for problem in problems]


def _plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Normalize the schema like a script's: without titles, definitions inlined, a single constant as `enum`."""
    parts = schema.pop("$defs", {})
    plain: dict[str, Any] = _inline(schema, parts, ())
    plain.setdefault("properties", {})
    plain.setdefault("required", [])
    plain.pop("additionalProperties", None)
    plain.pop("description", None)
    return plain


def _inline(node: Any, parts: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inline(item, parts, inside) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        # A recursive model is described once.
        inner = {"type": "object"} if name in inside else _inline(parts[name], parts, (*inside, name))
        return inner | {key: value for key, value in node.items() if key != "$ref"}
    result = {key: _by_name(key, value, parts, inside) for key, value in node.items() if key != "title"}
    if "const" in result:
        result["enum"] = [result.pop("const")]
    return result


def _by_name(key: str, value: Any, parts: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    # A field may be named `title`, so names of properties are not keywords.
    if key == "properties":
        return {name: _inline(item, parts, inside) for name, item in value.items()}
    return value if key in ("default", "enum", "examples", "required") else _inline(value, parts, inside)


def _describe_error(item: Any, names: str) -> str:
    place = ".".join(f"`{item['loc'][0]}`" if index == 0 else str(part) for index, part in enumerate(item["loc"]))
    if item["type"] == "missing":
        return f"{place} is missing"
    if item["type"] == "extra_forbidden" and len(item["loc"]) == 1:
        return f"{place} is not an argument: expected {names}"
    return f"{place or 'arguments'}: {item['msg'][0].lower()}{item['msg'][1:]}, got {item['input']!r:.80}"


def _to_json(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"a `{type(value).__name__}` is not a JSON value")


def _plain_result(value: Any) -> Any:
    """Models and dataclasses, such as `ToolResult`, as dicts."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value
