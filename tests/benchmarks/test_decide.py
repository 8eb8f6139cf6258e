"""The model check writes prompts and scores answers. No model is asked here."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # `benchmarks` is not installed

from benchmarks.evidence.answers import call_key, read_call, score_answers  # noqa: E402
from benchmarks.evidence.asking import OPENING, answers, in_runs  # noqa: E402
from benchmarks.evidence.messages import closed, message_text, newest  # noqa: E402
from benchmarks.evidence.offered import derive_tools  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from inference.tiny import gguf  # noqa: E402
from remora.analysis import AssistantTurn, Chat  # noqa: E402
from remora.events import Call  # noqa: E402

CALL = {"name": "lookup", "arguments": {"city": "Ulm", "limit": 2}}
arguments = st.dictionaries(
    st.text(max_size=8), st.recursive(st.text(max_size=20) | st.integers(-9, 9), st.lists, max_leaves=5), max_size=4
)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CALL),
        f"```json\n{json.dumps(CALL, indent=1)}\n```",
        f"<tool_call>\n{json.dumps(CALL)}\n</tool_call>",
        f"<tool_call>{json.dumps(CALL)}",
        f"I think {{so}}: {json.dumps(CALL)} is best",
        json.dumps({"type": "function", "function": CALL | {"arguments": json.dumps(CALL["arguments"])}}),
        json.dumps({"tool": "lookup", "args": CALL["arguments"]}),
    ],
)
def test_a_call_is_read_in_every_usual_shape(text: str) -> None:
    assert read_call(text) == ("lookup", CALL["arguments"])


@pytest.mark.parametrize("text", ["", "Which city?", "{}", '{"name": "lookup"}', '{"name": "lookup", "arguments": 3}'])
def test_an_answer_without_a_call_is_none(text: str) -> None:
    assert read_call(text) is None


@given(arguments)
def test_every_call_in_a_fence_is_read_as_it_was_written(args: dict[str, Any]) -> None:
    text = json.dumps({"name": "x", "arguments": args})
    fenced = f"<tool_call>\n{text}\n</tool_call>" if "```" in text else f"```json\n{text}\n```"
    assert read_call(fenced) == ("x", args)


@given(arguments)
def test_the_order_of_arguments_makes_no_other_call(args: dict[str, Any]) -> None:
    assert call_key("x", args) == call_key("x", dict(reversed(args.items())))


def row(memory: str, grounded: bool | None = True) -> dict[str, Any]:
    tools = derive_tools([chat(Call(call_id="1", tool="lookup", args=CALL["arguments"]))])
    earlier = [call_key("lookup", {"city": "Bonn", "limit": 2})]
    shown = {"tokens": 10, "grounded": grounded, "recall": 1.0, "earlier": earlier}
    return {"suite": "s", "id": "a#1", "memory": memory, "tools": tools, "gold": [CALL], **shown}


def chat(*calls: Call) -> Chat:
    return Chat("a", "", "", "Find it", (), (AssistantTurn("", calls),))


def test_exact_valid_and_repeated_calls_are_told_apart() -> None:
    calls = {
        "exact": CALL,
        "repeated": {"name": "lookup", "arguments": {"city": "Bonn", "limit": 2}},
        "incomplete": {"name": "lookup", "arguments": {"city": "Ulm"}},
        "unknown": {"name": "guess", "arguments": {}},
    }
    texts = {("a#1", memory): json.dumps(call) for memory, call in calls.items()}
    scores = {memory: kept for (_, memory), kept in score_answers(map(row, calls), texts).items()}
    found = {name: (kept.exact, kept.tool, kept.valid, kept.repeated) for name, kept in scores.items()}
    assert found == {
        "exact": (1, 1, 1, 0),
        "repeated": (0, 1, 1, 1),
        "incomplete": (0, 1, 0, 0),
        "unknown": (0, 0, 0, 0),
    }


def test_a_result_whose_call_was_cut_off_still_names_its_tool() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "lookup", "arguments": "{}" + " " * 200}}
    history = [
        {"role": "user", "content": "Find it"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "name": "lookup", "content": "12345"},
    ]
    kept = closed(newest(history, 50, len))
    assert [message["role"] for message in kept] == ["user", "user"]
    assert "lookup" in message_text(kept[1])
    assert "12345" in message_text(kept[1])


def test_derived_tools_require_what_every_call_has() -> None:
    calls = [{"city": "Ulm", "at": [{"day": 1}]}, {"city": "Bonn", "at": [{"day": 2.5, "hour": 3}], "limit": 1}]
    (tool,) = derive_tools([chat(*(Call(call_id="1", tool="lookup", args=args) for args in calls))])
    schema = tool["function"]["parameters"]
    assert schema["required"] == ["city", "at"]
    assert schema["properties"]["limit"] == {"type": "integer"}
    assert schema["properties"]["at"]["items"]["required"] == ["day"]
    assert schema["properties"]["at"]["items"]["properties"]["day"] == {"type": "number"}


def test_prompts_and_scores_go_from_logs_to_a_table(tmp_path: Path) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "lookup", "arguments": '{"city": "Ulm"}'}}
    again = {"id": "2", "type": "function", "function": {"name": "book", "arguments": '{"room": "R-77312"}'}}
    messages = [
        {"role": "system", "content": "You book rooms."},
        {"role": "user", "content": "A room in Ulm, please"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": '{"rooms": ["R-77312"]}'},
        {"role": "assistant", "content": None, "tool_calls": [again]},
        {"role": "tool", "tool_call_id": "2", "content": '{"booked": true}'},
    ]
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "log.jsonl").write_text(json.dumps({"messages": messages}) + "\n", encoding="utf-8")
    prompts, answered = tmp_path / "prompts.jsonl", tmp_path / "answers.jsonl"
    decide("write", "--data", str(tmp_path / "desk"), "--out", str(prompts))
    rows = [json.loads(line) for line in prompts.read_text(encoding="utf-8").splitlines()]
    assert {row["memory"] for row in rows if row["grounded"] is False} == {"task only"}
    texts = [
        {"id": row["id"], "memory": row["memory"], "text": json.dumps(row["gold"][0] if row["grounded"] else {})}
        for row in rows
    ]
    answered.write_text("\n".join(map(json.dumps, texts)), encoding="utf-8")
    scores = {row["memory"]: row["exact"] for row in json.loads(decide("score", "--json", str(prompts), str(answered)))}
    assert scores.pop("task only") == 0.5
    assert set(scores.values()) == {1.0}


def test_prompts_are_written_as_text_by_a_models_own_template(tmp_path: Path) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "lookup", "arguments": '{"city": "Ulm"}'}}
    row = {
        "id": "desk#1",
        "memory": "whole history",
        "messages": [{"role": "user", "content": "Hi <b>"}, {"role": "assistant", "tool_calls": [call]}],
        "tools": [{"type": "function", "function": {"name": "lookup"}}],
    }
    template = (
        "{%- for message in messages %}[{{ message.role }}]{{ message.content }}"
        "{%- for call in message.tool_calls or [] %}{{ call.function.arguments.city }}{%- endfor %}{%- endfor %}"
        "{{ tools | tojson }}"
    )
    (tmp_path / "model.gguf").write_bytes(gguf({"tokenizer.chat_template": template}))
    (tmp_path / "prompts.jsonl").write_text(json.dumps(row), encoding="utf-8")
    out = tmp_path / "texts.jsonl.gz"
    decide("text", str(tmp_path / "prompts.jsonl"), "--template", str(tmp_path / "model.gguf"), "--out", str(out))
    written = json.loads(gzip.decompress(out.read_bytes()))
    assert written["text"].startswith("[user]Hi <b>[assistant]")
    assert written["text"].endswith('Ulm[{"type": "function", "function": {"name": "lookup"}}]')
    assert (written["id"], written["memory"], written["begin"]) == ("desk#1", "whole history", OPENING)


def prompt(run: str, turn: int, memory: str) -> dict[str, Any]:
    return {"id": f"{run}#{turn}", "memory": memory}


def test_memories_of_one_run_are_asked_together_and_in_the_order_of_its_turns() -> None:
    rows = [prompt(run, turn, memory) for run in "abc" for turn in (1, 2) for memory in ("whole", "cut", "none")]
    asked = in_runs(rows, ["whole", "cut"])
    parts = [asked[start : start + 4] for start in range(0, len(asked), 4)]
    assert sorted(part[0]["id"][0] for part in parts) == ["a", "b", "c"]
    for part in parts:
        run = part[0]["id"][0]
        assert part == [prompt(run, turn, memory) for memory in ("whole", "cut") for turn in (1, 2)]


class Echo:
    async def answer(self, row: Any, most: int) -> str:
        return f"{row['id']} in {most}"


async def test_a_file_of_answers_is_continued_where_it_ended(tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    out.write_text(json.dumps({"id": "a#1", "memory": "whole", "text": "earlier"}) + "\n", encoding="utf-8")
    rows = [prompt("a", 1, "whole"), prompt("a", 1, "cut"), prompt("a", 2, "whole")]
    found = [answer async for answer in answers(rows, Echo(), out, most=9, parallel=1)]
    assert found == [rows[1] | {"text": "a#1 in 9"}, rows[2] | {"text": "a#2 in 9"}]


def decide(*argv: str) -> str:
    command = [sys.executable, "-m", "benchmarks.evidence.decide", *argv]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
