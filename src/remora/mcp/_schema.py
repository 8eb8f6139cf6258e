"""Cleans the tools that a server lists. Their names, descriptions and schemas are untrusted text for a prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from remora.context.text import one_line

MAX_DESCRIPTION = 500
"""Most characters of a tool's description."""
MAX_PARAMETER_DESCRIPTION = 200
MAX_SCHEMA = 8 * 1024
"""Most bytes of a cleaned schema."""
MAX_DEPTH = 8
MAX_PARAMETERS = 64
MAX_CHOICES = 100

_PARAMETER = re.compile(r"[A-Za-z0-9_$.@-]{1,64}")
_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
_REFERENCE = re.compile(r"#/(?:\$defs|definitions)/([^/]{1,200})")


class SchemaRefused(Exception):
    """A tool's schema cannot be offered to a model. The text says why."""


def clean_description(text: str | None) -> str:
    """A tool's description as one bounded line."""
    return one_line(text or "", MAX_DESCRIPTION)


def clean_parameters(schema: Any) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, reduced to what a call needs. Raises `SchemaRefused`.

    Keeps types, names, choices and descriptions. Drops all other rules: the server checks its arguments itself.
    References are replaced by what they refer to.
    """
    if not isinstance(schema, Mapping):
        raise SchemaRefused("its schema is not an object")
    cleaned = _Cleaner(_definitions(schema)).record(schema, 0)
    size = len(orjson.dumps(cleaned))
    if size > MAX_SCHEMA:
        raise SchemaRefused(f"its schema has {size:,} bytes: expected at most {MAX_SCHEMA:,}")
    return cleaned


def _definitions(schema: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in ("definitions", "$defs"):
        part = schema.get(key)
        found |= part if isinstance(part, Mapping) else {}
    return found


class _Cleaner:
    """Cleans one schema."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._left = 2_000
        """How many more parts may be read: references can make a small schema very large."""

    def record(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """An object with named properties."""
        given = schema.get("properties")
        properties = given if isinstance(given, Mapping) else {}
        if len(properties) > MAX_PARAMETERS:
            raise SchemaRefused(f"it has {len(properties):,} parameters: expected at most {MAX_PARAMETERS}")
        for name in properties:
            if not isinstance(name, str) or not _PARAMETER.fullmatch(name):
                raise SchemaRefused(f"a parameter is named {one_line(repr(name), 80)}: expected letters and digits")
        required = schema.get("required")
        return {
            "type": "object",
            "properties": {name: self.part(inner, depth + 1) for name, inner in properties.items()},
            "required": [name for name in properties if isinstance(required, list) and name in required],
        }

    def part(self, schema: Any, depth: int) -> dict[str, Any]:
        """Any part of a schema. What is too deep or not understood accepts any value."""
        self._left -= 1
        if self._left < 0:
            raise SchemaRefused("its schema has too many parts")
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
            return {}
        described = schema.get("description")
        extra = {"description": one_line(described, MAX_PARAMETER_DESCRIPTION)} if isinstance(described, str) else {}
        return {**self._shape(self._resolved(schema), depth), **{key: text for key, text in extra.items() if text}}

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema itself, or what it refers to."""
        for _ in range(MAX_DEPTH):
            found = _REFERENCE.fullmatch(str(schema.get("$ref", "")))
            inner = self._definitions.get(found[1]) if found else schema
            if not isinstance(inner, Mapping):
                return {}
            if inner is schema:
                return schema
            schema = inner
        return {}

    def _shape(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        if "enum" in schema or "const" in schema:
            return {"enum": _choices(schema["enum"] if "enum" in schema else [schema["const"]])}
        options = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(options, list) and options:
            return {"anyOf": [self.part(option, depth + 1) for option in options[:MAX_CHOICES]]}
        if isinstance(schema.get("properties"), Mapping):
            return self.record(schema, depth)
        kind = _kind(schema.get("type"))
        shape: dict[str, Any] = {"type": kind} if kind else {}
        if kind == "array" and isinstance(schema.get("items"), Mapping):
            shape["items"] = self.part(schema["items"], depth + 1)
        if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
            shape["additionalProperties"] = self.part(schema["additionalProperties"], depth + 1)
        return shape


def _kind(given: Any) -> str | list[str] | None:
    if isinstance(given, list):
        return [each for each in given if each in _TYPES][: len(_TYPES)] or None
    return given if given in _TYPES else None


def _choices(given: Any) -> list[Any]:
    """The values of an enumeration. They are sent back as they are, so an unprintable one is refused."""
    values = given if isinstance(given, list) else []
    if not 0 < len(values) <= MAX_CHOICES:
        raise SchemaRefused(f"a parameter has {len(values):,} choices: expected 1 to {MAX_CHOICES}")
    for value in values:
        if not isinstance(value, str | int | float | bool | None) or (
            isinstance(value, str) and value and one_line(value) != value
        ):
            raise SchemaRefused("a choice is not a short printable value")
    return list(values)
