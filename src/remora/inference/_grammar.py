"""The offered calls as a llama.cpp grammar (GBNF), for replies without any whitespace between their tokens.

A JSON Schema allows line breaks and indentation. A model that is used to them writes them, and each takes a token.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from remora.context.contracts import ToolSpec

_KNOWN = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "title", "description",
    "default", "examples",
}  # fmt: skip
"""Keys of a schema that the grammar covers or may ignore."""
_BASE = r"""
string ::= "\"" char* "\""
char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
integer ::= "-"? ("0" | [1-9] [0-9]{0,17})
number ::= integer ("." [0-9]{1,17})? ([eE] [-+]? [0-9]{1,3})?
boolean ::= "true" | "false"
null ::= "null"
array ::= "[" (value ("," value)*)? "]"
object ::= "{" (string ":" value ("," string ":" value)*)? "}"
value ::= object | array | string | number | boolean | null
""".strip()
WHY = "why"
MAX_REASON = 200
"""Characters of the sentence before a call."""
_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")


class _Unknown(Exception):
    """The schema has something that the grammar cannot express."""


def call_grammar(tools: Sequence[ToolSpec], *, reasoned: bool = False) -> str | None:
    """A grammar of `{"tool":NAME,"args":{…}}` for any one of the tools. None if a schema has more than it covers.

    With `reasoned`, the object begins with `"why"` and a text of at most `MAX_REASON` characters.
    """
    rules = _Rules()
    try:
        calls = [
            f"{_text(_json('tool') + ':' + _json(tool.name) + ',')} {_text(_json('args') + ':')} "
            f'{rules.of(tool.parameters)} "}}"'
            for tool in tools
        ]
    except _Unknown:
        return None
    call = " | ".join(rules.name(call) for call in calls)
    start = f'{_text("{" + _json(WHY) + ":")} "\\"" char{{1,{MAX_REASON}}} "\\"" ","' if reasoned else '"{"'
    return "\n".join([f"root ::= {start} ({call})", *rules.lines, _BASE])


class _Rules:
    """Named rules, each of them once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, str] = {}

    def name(self, body: str) -> str:
        """The name of the rule with this body."""
        if body not in self._names:
            self._names[body] = f"r{len(self._names)}"
            self.lines.append(f"{self._names[body]} ::= {body}")
        return self._names[body]

    def of(self, schema: Any) -> str:
        """The rule of a schema's values."""
        if not isinstance(schema, Mapping) or not set(schema) <= _KNOWN:
            raise _Unknown
        if "const" in schema or "enum" in schema:
            values = [schema["const"]] if "const" in schema else schema["enum"]
            return self.name(" | ".join(_text(_json(value)) for value in values))
        if "anyOf" in schema:
            return self.name(" | ".join(self.of(option) for option in schema["anyOf"]))
        if isinstance(schema.get("properties"), Mapping) and schema["properties"]:
            return self._record(schema["properties"], schema.get("required", ()))
        kind = schema.get("type", "value" if "properties" not in schema else "object")
        if isinstance(kind, list):
            return self.name(" | ".join(self.of({**schema, "type": each}) for each in kind))
        return self._plain(kind, schema)

    def _plain(self, kind: str, schema: Mapping[str, Any]) -> str:
        if kind == "object" and "properties" in schema and not schema.get("additionalProperties"):
            return '"{}"'
        if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
            item = f'string ":" {self.of(schema["additionalProperties"])}'
            return self.name(f'"{{" ({item} ("," {item})*)? "}}"')
        if kind == "array" and "items" in schema:
            item = self.of(schema["items"])
            return self.name(f'"[" ({item} ("," {item})*)? "]"')
        if kind not in (*_TYPES, "value"):
            raise _Unknown
        return kind

    def _record(self, properties: Mapping[str, Any], required: Sequence[str]) -> str:
        """An object: first what is required, then any of the rest, in the order of the schema."""
        pair = {name: f"{_text(_json(name) + ':')} {self.of(inner)}" for name, inner in properties.items()}
        first = [pair[name] for name in properties if name in required]
        rest = [pair[name] for name in properties if name not in required]
        if first:
            optional = "".join(f' ("," {each})?' for each in rest)
            joined = ' "," '.join(first)
            return self.name(f'"{{" {joined}{optional} "}}"')
        ways = []
        for place, each in enumerate(rest):
            ways.append(each + "".join(f' ("," {later})?' for later in rest[place + 1 :]))
        return self.name(f'"{{" ({" | ".join(ways)})? "}}"')


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text(text: str) -> str:
    """A literal of the grammar, for text without control characters, which JSON escapes."""
    return _json(text)
