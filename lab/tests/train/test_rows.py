"""Rows are written as a model should answer, and each prompt once."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import orjson

from remora.context.contracts import ToolSpec
from remora_lab.train import TrainingRow, answer_text, write_rows

SPEC = ToolSpec(
    name="edit",
    parameters={
        "type": "object",
        "properties": {
            "note": {"type": "string", "default": ""},
            "first": {"type": "integer"},
            "text": {"type": "string"},
        },
        "required": ["first", "text"],
    },
)


def row(name: str, said: str) -> TrainingRow:
    return TrainingRow(name, "trace", "lint", "json-2", ({"role": "user", "content": said},), '{"tool":"a","args":{}}')


def test_an_answer_has_no_spaces_and_required_arguments_first_in_the_order_of_the_schema() -> None:
    answer = answer_text("edit", {"text": "a\n“b”", "note": "n", "first": 2}, [SPEC])
    assert answer == '{"tool":"edit","args":{"first":2,"text":"a\\n“b”","note":"n"}}'


def test_a_call_that_is_not_valid_is_no_answer() -> None:
    assert answer_text("edit", {"first": "2", "text": ""}, [SPEC]) is None
    assert answer_text("edit", {"first": 2}, [SPEC]) is None
    assert answer_text("edit", {"first": 2, "text": "", "more": 1}, [SPEC]) is None
    assert answer_text("other", {}, [SPEC]) is None
    assert answer_text("edit", {"first": 2, "text": "\x7f"}, [SPEC]) is None


def test_a_prompt_is_written_once_and_the_same_rows_are_the_same_bytes(tmp_path: Path) -> None:
    rows = [row("a/1", "x"), row("b/1", "x"), row("b/2", "y")]
    kept = write_rows(tmp_path / "one.jsonl.gz", rows)
    write_rows(tmp_path / "two.jsonl.gz", rows)
    assert (kept.rows, kept.repeated, dict(kept.by_operation)) == (2, 1, {"lint": 2})
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()
    lines = gzip.decompress((tmp_path / "one.jsonl.gz").read_bytes()).splitlines()
    assert [orjson.loads(line)["id"] for line in lines] == ["a/1", "b/2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.jsonl.gz", "two.jsonl.gz"]


def test_what_looks_like_a_secret_in_a_run_is_redacted_in_its_row(tmp_path: Path) -> None:
    token = "ghp_abcdefghij1234567890"
    answer = f'{{"tool":"a","args":{{"key":"{token}"}}}}'
    write_rows(tmp_path / "rows.jsonl", [replace(row("a/1", f"Use {token}"), answer=answer)])
    (read,) = map(orjson.loads, (tmp_path / "rows.jsonl").read_bytes().splitlines())
    assert read["messages"][0]["content"] == "Use [redacted:github-token]"
    assert orjson.loads(read["answer"])["args"] == {"key": "[redacted:github-token]"}
