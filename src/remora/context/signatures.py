"""Tools as signatures, for models that were not trained on JSON listings.

    - write_rows(rows: object[], mode?: "append"|"replace" = "append"): Write the rows.
        rows: Each with values by column

A small model that reads an argument's JSON Schema where a call has the argument writes the schema into its call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from remora.context.contracts import ToolSpec

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_DEPTH = 4
HINT = "An argument with `?` may be left out: give it only if you need another value."
"""What the list of tools ends with, if one has such an argument."""


def list_signatures(tools: Sequence[ToolSpec]) -> list[str]:
    """The tools, one after another, in lines."""
    lines = [line for tool in tools for line in _lines(tool)]
    return [*lines, HINT] if any(_optional(tool) for tool in tools) else lines


def starts_with(tool: str) -> str:
    """How the signature of a tool begins."""
    return f"- {tool}("


def _optional(tool: ToolSpec) -> bool:
    return set(tool.parameters.get("properties", {})) > set(tool.parameters.get("required", ()))


def _lines(tool: ToolSpec) -> Iterator[str]:
    known, required = tool.parameters.get("properties", {}), tool.parameters.get("required", ())
    listed = sorted(known, key=lambda name: name not in required)
    args = ", ".join(_argument(name, known[name], name in required) for name in listed)
    yield f"{starts_with(tool.name)}{args})" + (f": {tool.description.strip()}" if tool.description.strip() else "")
    for name in listed:
        told = known[name].get("description") if isinstance(known[name], Mapping) else None
        if isinstance(told, str) and told.strip():
            yield f"    {name}: {told.strip()}"


def _argument(name: str, schema: Any, required: bool) -> str:
    default = ""
    if isinstance(schema, Mapping) and schema.get("default") not in (None, "", [], {}):
        default = f" = {json.dumps(schema['default'], ensure_ascii=False)}"
    return f"{_name(name)}{'' if required else '?'}: {_type(schema)}{default}"


def _type(schema: Any, depth: int = 0) -> str:
    """A schema as a type, as TypeScript writes it. What has no short form is `any`."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return "any"
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        return "|".join(json.dumps(value, ensure_ascii=False) for value in values)
    options = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(options, list):
        return "|".join(dict.fromkeys(_type(option, depth + 1) for option in options))
    kind = schema.get("type")
    if isinstance(kind, list):
        return "|".join(_type({**schema, "type": each}, depth + 1) for each in kind)
    if kind == "array":
        item = _type(schema["items"], depth + 1) if "items" in schema else "any"
        return f"({item})[]" if "|" in item else f"{item}[]"
    if kind == "object" or "properties" in schema:
        return _object(schema, depth)
    return kind if kind in ("string", "integer", "number", "boolean", "null") else "any"


def _object(schema: Mapping[str, Any], depth: int) -> str:
    known, required = schema.get("properties"), schema.get("required", ())
    if isinstance(known, Mapping) and known:
        inner = (f"{_name(name)}{'' if name in required else '?'}: {_type(known[name], depth + 1)}" for name in known)
        return "{" + ", ".join(inner) + "}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return "{[name]: " + _type(schema["additionalProperties"], depth + 1) + "}"
    return "object"


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)
