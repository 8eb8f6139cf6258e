"""Rows of the Berkeley Function Calling Leaderboard become requests that `remora bench requests` reads."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).parents[2]))  # `benchmarks` is not installed

from benchmarks.public_requests import CATEGORIES, read_category, row_of

FUNCTION: dict[str, Any] = {
    "name": "math.area",
    "description": "Area of a triangle.",
    "parameters": {
        "type": "dict",
        "properties": {
            "base": {"type": "float"},
            "unit": {"type": "any"},
            "points": {"type": "tuple", "items": {"type": "dict", "properties": {"x": {"type": "integer"}}}},
        },
        "required": ["base"],
    },
}
ROW = {"id": "a", "question": [[{"role": "user", "content": "Area of base 3?"}]], "function": [FUNCTION]}


def test_types_are_those_of_json_schema_and_names_have_no_dots() -> None:
    (tool,) = row_of(ROW, None)["tools"]
    assert tool["name"] == "math_area"
    assert tool["parameters"] == {
        "type": "object",
        "properties": {
            "base": {"type": "number"},
            "unit": {},
            "points": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        },
        "required": ["base"],
    }


def test_an_empty_text_means_that_an_argument_may_be_missing_also_inside() -> None:
    answer = [{"math.area": {"base": [3], "unit": ["cm", ""], "points": [[{"x": [1], "y": ["", 2]}], [{"x": 4}]]}}]
    assert row_of(ROW, answer)["call"] == {
        "name": "math_area",
        "accepts": {"base": [3], "unit": ["cm", None], "points": [[{"x": [1], "y": [None, 2]}], [{"x": [4]}]]},
    }


def test_a_category_without_answers_is_one_that_no_tool_fits(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        rows = [{**ROW, "id": name} for name in "abc"]
        wheel.writestr("bfcl_eval/data/BFCL_v4_irrelevance.json", b"\n".join(map(orjson.dumps, rows)))
        found = read_category(wheel, "irrelevance")
        assert [row["call"] for row in found] == [None] * 3
        assert "irrelevance" in CATEGORIES
