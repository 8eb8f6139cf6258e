"""Tools as signatures: short, without schemas that a model could copy, and with what may be left out."""

from __future__ import annotations

from typing import Any

import pytest

from remora.context.contracts import ToolSpec
from remora.context.render import system_text
from remora.context.signatures import HINT, list_signatures

TEXT = {"type": "string"}


def tool(name: str = "t", description: str = "", required: tuple[str, ...] = (), **known: Any) -> ToolSpec:
    schema = {"type": "object", "properties": known, "required": list(required)}
    return ToolSpec(name=name, description=description, parameters=schema)


def test_required_arguments_come_first_and_others_are_marked_with_what_they_default_to() -> None:
    mode = {"enum": ["append", "replace"], "default": "append"}
    rows = {"type": "array", "items": {"type": "object"}, "description": "Each with values by column"}
    assert list_signatures([tool("write_rows", "Write the rows.", ("rows",), mode=mode, rows=rows), tool("stop")]) == [
        '- write_rows(rows: object[], mode?: "append"|"replace" = "append"): Write the rows.',
        "    rows: Each with values by column",
        "- stop()",
        HINT,
    ]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (TEXT, "string"),
        ({"type": ["string", "null"]}, "string|null"),
        ({"anyOf": [TEXT, {"type": "integer"}]}, "string|integer"),
        ({"type": "array", "items": {"anyOf": [TEXT, {"type": "null"}]}}, "(string|null)[]"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "{[name]: number}"),
        ({"type": "object", "properties": {"a": TEXT, "b-c": TEXT}, "required": ["a"]}, '{a: string, "b-c"?: string}'),
        ({"const": 3}, "3"),
        ({"$ref": "#/x"}, "any"),
        ({}, "any"),
        (True, "any"),
        ("nonsense", "any"),
    ],
)
def test_a_schema_is_a_short_type(schema: Any, told: str) -> None:
    assert list_signatures([tool(required=("x",), x=schema)]) == [f"- t(x: {told})"]


def test_a_schema_that_never_ends_is_cut() -> None:
    inner: dict[str, Any] = {}
    inner |= {"type": "array", "items": inner}
    assert list_signatures([tool(required=("x",), x=inner)]) == ["- t(x: any[][][][][])"]


def test_only_prompts_for_models_that_say_why_list_signatures() -> None:
    values = {"type": "object", "additionalProperties": TEXT, "default": {}}
    plain, reasoned = (system_text("Work.", [tool(values=values)], calling) for calling in ("text", "reasoned"))  # type: ignore[arg-type]
    assert "additionalProperties" in plain
    assert "additionalProperties" not in reasoned
    assert "- t(values?: {[name]: string})" in reasoned
    assert "why" not in plain
