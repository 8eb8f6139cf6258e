from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion

import remora
from remora.context.contracts import ToolSpec
from remora.context.recall import RECALL
from remora.errors import BudgetError, ConfigError, DecisionError
from remora.events import (
    AgentEndEvent,
    Call,
    ModelRequestEvent,
    ModelResponseEvent,
    NoticeEvent,
    PacketUpdateEvent,
    SubmitResultEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from remora.testing import MemoryTwoTrack, completion, tool_call_message
from remora.trace import read_events, verify

ROOT = Path(__file__).parents[1]
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
COUNT = {"type": "function", "function": {"name": "count", "description": "Count words.", "parameters": TEXT}}


class FakeServer:
    """An OpenAI-compatible server on loopback that answers from a script and keeps what it was asked."""

    def __init__(self) -> None:
        self.replies: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                fake.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                body = json.dumps(fake.replies.pop(0)).encode()
                self.send_response(200 if self.path == "/v1/chat/completions" else 404)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> FakeServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        yield fake


def count(text: str) -> dict[str, Any]:
    return {"result": text, "summary": f"{len(text.split())} words"}


def of_type(events: Any, kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


async def test_a_loop_with_the_plain_client_runs_on_both_tracks(server: FakeServer, tmp_path: Path) -> None:
    server.replies = [
        completion(tool_call_message("count", {"text": "to be or not"}), prompt_tokens=21, total_tokens=30),
        completion("Four words."),
    ]
    async with (
        AsyncOpenAI(base_url=server.url, api_key="none") as client,
        remora.TwoTrack(goal="Count", tools=[COUNT], system_prompt="Be brief.", state_dir=tmp_path) as tt,
    ):
        for _ in range(5):
            prompt = await tt.request()
            reply = await client.chat.completions.create(
                model="m", messages=prompt.messages, tools=prompt.openai_tools()
            )
            for call in await tt.response(reply):
                await tt.call(call, count)
            if not reply.choices[0].message.tool_calls:
                break
    first, second = server.asked
    assert first["tools"] == [COUNT]
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert second["messages"][0]["content"] == "Be brief."
    assert "4 words" in second["messages"][-1]["content"]
    responses = of_type(read_events(tt.path), ModelResponseEvent)
    assert [(response.text, response.finish) for response in responses] == [("", "tool_calls"), ("Four words.", "stop")]
    assert (responses[0].usage["prompt_tokens"], responses[0].model) == (21, "scripted")
    assert verify(tt.path).status == "sealed"


def test_the_example_runs_as_its_docstring_says(server: FakeServer, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "long.py").write_text("x = 1\n" * 3)
    server.replies = [
        completion(tool_call_message("list_files", {"folder": "src"})),
        completion(tool_call_message("count_lines", '{"path": "src/lo')),
        completion(tool_call_message("no_such_tool", {})),
        completion(tool_call_message("count_lines", {"path": "src/long.py"})),
        completion("src/long.py, 3 lines"),
    ]
    key = "sk-canary-0123456789"
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "own_loop" / "main.py", "m", "src"],
        cwd=tmp_path,
        env={**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": key},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer, path = done.stdout.splitlines()
    assert answer == "src/long.py, 3 lines"
    events = list(read_events(tmp_path / path))
    assert [event.tool for event in of_type(events, ToolResultEvent)] == ["list_files", "count_lines"]
    assert [event.code for event in of_type(events, NoticeEvent)] == ["tool_arguments_invalid", "tool_not_found"]
    assert of_type(events, SubmitResultEvent)[0].result == {"summary": "src/long.py, 3 lines"}
    assert "Arguments of `count_lines` do not fit" in server.asked[2]["messages"][-1]["content"]


def test_the_guide_shows_the_loop_of_the_example() -> None:
    page = (ROOT / "docs" / "guides" / "adopt-it-in-your-own-agent.md").read_text(encoding="utf-8")
    shown = page.partition("```py\n")[2].partition("```")[0]
    assert shown.startswith("async def main")
    assert shown in (ROOT / "examples" / "own_loop" / "main.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("shape", ["object", "dict", "message", "namespace"])
async def test_a_reply_may_come_in_any_of_its_shapes(shape: str) -> None:
    message = tool_call_message("count", {"text": "a"}, "c9")
    function = SimpleNamespace(name="count", arguments='{"text": "a"}')
    reply = {
        "object": ChatCompletion.model_validate(completion(message)),
        "dict": completion(message),
        "message": message,
        "namespace": SimpleNamespace(content=None, tool_calls=[SimpleNamespace(id="c9", function=function)]),
    }[shape]
    async with MemoryTwoTrack(tools=[COUNT]) as tt:
        await tt.request()
        assert await tt.response(reply) == (Call(call_id="c9", tool="count", args={"text": "a"}),)


@pytest.mark.parametrize("written", ["{", "[1]", '"text"', "nul", "[" * 2000, '{"text": "\\ud800"}', '{"a":' * 600])
async def test_arguments_that_are_no_object_are_recorded_and_told(written: str) -> None:
    async with MemoryTwoTrack(tools=[COUNT]) as tt:
        await tt.request()
        assert await tt.response(completion(tool_call_message("count", written))) == ()
        assert tt.packet.last_error is not None
        assert tt.packet.last_error.startswith("Arguments of `count` do not fit: expected a JSON object")
        (notice,) = of_type(tt.events, NoticeEvent)
        assert (notice.code, notice.message) == ("tool_arguments_invalid", f"call-1 count {written}")
        assert [event.source for event in of_type(tt.events, PacketUpdateEvent)] == ["model_response"]


async def test_one_bad_call_does_not_take_the_good_ones_along() -> None:
    message = tool_call_message("count", "{", "bad")
    message["tool_calls"] += tool_call_message("count", {"text": "a"}, "good")["tool_calls"]
    message["tool_calls"] += tool_call_message("count", {"text": "b"}, "good")["tool_calls"]
    async with MemoryTwoTrack(tools=[COUNT]) as tt:
        await tt.request()
        assert [call.call_id for call in await tt.response(message)] == ["good", "call-1-2"]


@pytest.mark.parametrize("arguments", ["", None, {}])
async def test_a_call_without_arguments_has_none(arguments: Any) -> None:
    message = tool_call_message("count", "")
    message["tool_calls"][0]["function"]["arguments"] = arguments
    async with MemoryTwoTrack(tools=[COUNT]) as tt:
        await tt.request()
        (call,) = await tt.response(message)
        assert call.args == {}


@pytest.mark.parametrize("reply", [None, 3, {"error": {"message": "overloaded"}}, {"choices": []}, iter(())])
async def test_what_is_no_reply_ends_the_run_and_says_so(reply: Any) -> None:
    with pytest.raises(DecisionError, match="is not a reply"):
        async with MemoryTwoTrack() as tt:
            await tt.request()
            await tt.response(reply)
    assert of_type(tt.events, AgentEndEvent)[0].outcome == "error"


async def test_a_text_in_parts_or_with_a_lone_surrogate_can_be_recorded() -> None:
    async with MemoryTwoTrack() as tt:
        await tt.request()
        assert await tt.response({"role": "assistant", "content": [{"type": "text", "text": "a\ud800"}]}) == ()
        assert of_type(tt.events, ModelResponseEvent)[0].text == "a?"


async def test_a_tool_call_of_the_server_can_be_called_as_it_is() -> None:
    (good,) = tool_call_message("count", {"text": "a b"}, "c1")["tool_calls"]
    (bad,) = tool_call_message("count", '{"text": ', "c2")["tool_calls"]
    async with MemoryTwoTrack(tools=[COUNT]) as tt:
        await tt.request()
        assert (await tt.perform(good, count)).raw["summary"] == "2 words"
        refused = await tt.perform(bad, count)
        assert (refused.outcome, refused.raw["code"]) == ("error", "tool_arguments_invalid")
        assert refused.raw["arguments"] == '{"text": '
        assert [(event.call_id, event.args) for event in of_type(tt.events, ToolCallEvent)][1] == ("c2", {})


async def test_a_secret_in_bad_arguments_is_not_recorded(tmp_path: Path) -> None:
    key = "sk-canary-0123456789"
    async with remora.TwoTrack("g", tools=[COUNT], state_dir=tmp_path, secrets={"KEY": key}) as tt:
        await tt.request()
        await tt.response(tool_call_message("count", "{" + "x" * 70 + key))
    assert key[:12] not in tt.path.read_text()


async def test_tools_sent_beside_the_messages_count_against_the_budget() -> None:
    long = {"type": "function", "function": {"name": "f", "description": "word " * 400, "parameters": TEXT}}
    with pytest.raises(BudgetError, match="too small"):
        MemoryTwoTrack(tools=[long], budget=800)
    async with MemoryTwoTrack(tools=[COUNT]) as with_tools, MemoryTwoTrack() as without:
        await with_tools.request()
        await without.request()
    counted = [of_type(tt.events, ModelRequestEvent)[0].tokens["system"] for tt in (with_tools, without)]
    assert counted[0] > counted[1]


async def test_tools_in_the_text_are_called_by_the_text() -> None:
    async with MemoryTwoTrack(tools=[COUNT], calling="text") as tt:
        prompt = await tt.request()
        assert '"name":"count"' in prompt.messages[0]["content"]
        (call,) = await tt.response(completion('{"tool": "count", "args": {"text": "a"}}'))
        assert call.args == {"text": "a"}
        await tt.request()
        assert await tt.response(completion("I would count.")) == ()


def test_a_tool_in_openais_shape_is_the_tool_it_describes() -> None:
    spec = ToolSpec(name="count", description="Count words.", parameters=TEXT)
    assert MemoryTwoTrack(tools=[COUNT]).tools == MemoryTwoTrack(tools=[spec]).tools == (spec, RECALL)
    assert spec.openai() == COUNT
    with pytest.raises(ConfigError, match="is not a tool"):
        MemoryTwoTrack(tools=[{"type": "function"}])
    for properties in ([1], {"text": True}, "text"):
        with pytest.raises(ConfigError, match="`properties` of tool `count` cannot be read"):
            MemoryTwoTrack(tools=[{"name": "count", "parameters": {"type": "object", "properties": properties}}])


@pytest.mark.parametrize("result", [Call(call_id="", tool="submit_result", args={"summary": "done"}), "done"])
async def test_a_result_is_a_call_or_a_line(result: Any) -> None:
    async with MemoryTwoTrack() as tt:
        await tt.submit(result)
    assert of_type(tt.events, SubmitResultEvent)[0].result == {"summary": "done"}


async def test_the_model_sees_what_a_person_said_last() -> None:
    async with MemoryTwoTrack() as tt:
        await tt.user("first")
        await tt.user("only\nthe tests")
        assert "only the tests" in (await tt.request()).messages[-1]["content"]
    async with MemoryTwoTrack(style="json") as tt:
        await tt.user("only\nthe tests")
        assert "only the tests" in (await tt.request()).messages[-1]["content"]
        assert tt.packet.knowledge["user"].pinned
