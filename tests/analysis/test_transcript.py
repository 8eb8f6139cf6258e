from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import remora
from remora.analysis import Entry, LlmConversationLogger, transcript
from remora.analysis._transcript import MAX_SHOWN
from remora.errors import TraceError
from remora.events import BlobRef, Call, Event, ModelRequestEvent, ModelResponseEvent, ToolResultEvent
from remora.ports import Decision, Prompt
from remora.trace import FileBlobs, read_events


def store(blobs: Mapping[str, bytes]):  # type: ignore[no-untyped-def]
    async def get(digest: str) -> bytes:
        try:
            return blobs[digest]
        except KeyError as error:
            raise TraceError(f"Blob {digest} is gone") from error

    return get


def texts(entries: list[Entry], kind: str, who: str = "") -> list[str]:
    return [entry.text for entry in entries if entry.kind == kind and who in entry.who]


async def run_three_turns(folder: Path) -> tuple[list[Event], Path, list[Prompt]]:
    """A real run of three turns, its stream, and the prompts as they were given out."""
    tools = [{"name": "read_file", "description": "Read.", "parameters": {"type": "object"}}]
    prompts = []
    async with remora.TwoTrack(
        goal="Find it", tools=tools, system_prompt="You look.", state_dir=folder / ".agentfs", style="account"
    ) as tt:
        for raw in ("short", "x" * 50_000, "last"):
            prompts.append(await tt.request())
            (call,) = await tt.response(Decision((Call(call_id="c", tool="read_file", args={}),), "so"))
            await tt.call(call, lambda raw=raw: raw)
        await tt.submit("found")
    return list(read_events(tt.path)), tt.path.parents[1], prompts


async def test_every_prompt_is_as_it_was_sent_and_the_system_text_stands_once(tmp_path: Path) -> None:
    events, state_dir, prompts = await run_three_turns(tmp_path)
    entries = await transcript(events, FileBlobs(state_dir).get)
    assert texts(entries, "prompt", "user") == [prompt.messages[-1]["content"] for prompt in prompts]
    assert texts(entries, "prompt", "system") == [prompts[0].messages[0]["content"]]
    assert [entry.kind for entry in entries if entry.turn == 1] == ["prompt", "prompt", "reply", "call", "result"]
    assert texts(entries, "reply") == ["so\n→ read_file {}"] * 3
    assert [entry.kind for entry in entries][-2:] == ["submit", "end"]


async def test_a_long_result_is_cut_unless_all_of_it_is_wanted(tmp_path: Path) -> None:
    events, state_dir, _ = await run_three_turns(tmp_path)
    get = FileBlobs(state_dir).get
    cut = [entry for entry in await transcript(events, get) if entry.kind == "result"]
    assert [entry.left_out for entry in cut] == [0, 50_000 - MAX_SHOWN, 0]
    whole = [entry async for entry in LlmConversationLogger(get, full=True).entries(events)]
    assert texts(whole, "result")[1] == "x" * 50_000


async def test_what_retention_let_go_is_named_and_the_rest_is_shown() -> None:
    gone = BlobRef(blob="sha256:00", size=3, encoding="utf-8")
    events = [
        ModelRequestEvent(messages=({"role": "system", "content_ref": gone.model_dump()}, {"role": "user"})),
        ModelRequestEvent(messages=({"role": "system", "content_ref": {"no": "reference"}},)),
        ModelResponseEvent(text="beginning", text_ref=gone),
        ToolResultEvent(call_id="c", tool="t", outcome="success", raw_ref=gone, attachments=({"name": "out"},)),
    ]
    entries = await transcript(events, store({}))
    assert texts(entries, "prompt", "system")[0] == "[cannot be shown: Blob sha256:00 is gone]"
    assert texts(entries, "prompt", "system")[1] == "[cannot be shown: not a reference]"
    assert texts(entries, "result") == ["[cannot be shown: Blob sha256:00 is gone]"]


async def test_a_system_text_that_changes_is_shown_again() -> None:
    said = [{"role": "system", "content": text} for text in ("a", "a", "b", "a")]
    events = [ModelRequestEvent(messages=(message,)) for message in said]
    assert texts(await transcript(events, store({})), "prompt", "system") == ["a", "b", "a"]


async def hostile_stream(folder: Path) -> Path:
    hostile = "\x1b]0;owned\x07 \x1b[2J \x9b31m a\rb \u202egnp"
    async with remora.TwoTrack(goal=f"goal {hostile}", tools=[], state_dir=folder) as tt:
        await tt.request()
        await tt.response(Decision((), f"reply {hostile}"))
        await tt.call({"function": {"name": "t", "arguments": "{}"}}, lambda: f"raw {hostile}")
    return tt.path


def test_nothing_in_a_transcript_steers_the_terminal(tmp_path: Path) -> None:
    stream = asyncio.run(hostile_stream(tmp_path))
    argv = ["trace", "transcript", stream.stem, "--state-dir", str(tmp_path)]
    command = [sys.executable, "-c", "from remora.cli import main; main()", *argv]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode()
    assert all(word in shown for word in ("goal ", "reply ", "raw "))
    assert not [mark for mark in "\x1b\x07\x9b\r\u202e" if mark in shown]


async def test_a_call_that_was_doubted_shows_the_question_and_its_answer() -> None:
    fit = {"proposed": {"tool": "book", "args": {}}, "answer": "No", "fits": False, "log_odds": -1.5, "least": 0.6}
    reply = ModelResponseEvent(calls=(Call(call_id="c", tool="no_tool_fits", args={"reason": "x"}),), fit=fit)
    (entry,) = await transcript([reply], store({}))
    assert "[does book do what was asked? No (log odds of Yes -1.5, at least 0.6 needed)]" in entry.text
    assert "no_tool_fits" in entry.text
