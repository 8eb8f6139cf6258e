"""Each known server, as it behaves: its window, its tokenizer, how it is held to a call, a prompt too long for it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import pytest

from inference.fakes import (
    FakeServer,
    LikeOllama,
    Reply,
    answer,
    by_path,
    call_part,
    calls_natively,
    chooses,
    like_llamacpp,
    like_lmstudio,
    like_vllm,
    says,
)
from remora.context.contracts import ToolSpec
from remora.errors import ConfigError, DecisionError, ReplyInvalid
from remora.inference import Endpoint, Probed, ServerPolicy, preset_of, probe
from remora.inference._grammar import call_grammar
from remora.ports import Decision, Prompt

CODE = {"type": "object", "properties": {"code": {"type": "string", "title": "Code"}}, "required": ["code"]}
TOOLS = (
    ToolSpec(name="apply_fix", description="Apply one rule.", parameters=CODE),
    ToolSpec(name="submit_result", parameters={"type": "object", "properties": {"summary": {"type": "string"}}}),
)
FIX = chooses("apply_fix", code="F401")


def prompt(words: int = 5) -> Prompt:
    return Prompt(messages=({"role": "user", "content": "fix " * words},), tools=TOOLS, turn=2)


def endpoint(kind: str, url: str, model: str = "", **more: Any) -> Endpoint:
    return Endpoint(preset_of(kind)[0], url, model=model, **{"deadline_s": 20.0, **more})


async def decide(at: Endpoint, words: int = 5) -> Decision:
    async with ServerPolicy(at) as policy:
        return await policy.decide(prompt(words))


async def probed(kind: str, reply: Reply, model: str = "") -> Probed:
    with FakeServer(reply) as server:
        return await probe(endpoint(kind, server.url, model))


@pytest.mark.parametrize(
    ("kind", "reply", "model", "window", "exact"),
    [
        ("llamacpp", like_llamacpp(n_ctx=2048, reply=FIX), "tiny.gguf", 2048, True),
        ("vllm", like_vllm(window=8192, reply=FIX), "org/tiny", 8192, True),
        ("lmstudio", like_lmstudio(loaded=4096, reply=FIX), "tiny", 4096, False),
        ("lmstudio", like_lmstudio(loaded=None, reply=FIX), "tiny", 32768, False),
        ("ollama", LikeOllama(FIX), "qwen3:4b", 4096, False),
        ("ollama", LikeOllama(FIX, num_ctx=16384), "qwen3:4b", 16384, False),
        ("ollama", LikeOllama(FIX, server_window=64000), "qwen3:4b", 40960, False),
        ("ollama", LikeOllama(FIX, server_window=2048), "qwen3:4b", 2048, False),
        (
            "ollama",
            by_path(v1__models=answer({"data": [{"id": "m"}]}), api__show=answer({"parameters": "num_ctx 512"})),
            "m",
            512,
            False,
        ),
    ],
)
async def test_the_model_its_window_and_its_counter_are_known_before_a_run(
    kind: str, reply: Reply, model: str, window: int, exact: bool
) -> None:
    found = await probed(kind, reply)
    assert (found.endpoint.model, found.window, found.counter.exact) == (model, window, exact)


async def test_tokens_are_counted_by_the_server_in_its_own_shape() -> None:
    for kind, reply in (("llamacpp", like_llamacpp(reply=FIX)), ("vllm", like_vllm(reply=FIX))):
        with FakeServer(reply) as server:
            found = await probe(endpoint(kind, server.url))
            assert found.counter.count("one two three") == 3


async def test_a_server_of_no_known_kind_is_taken_as_it_is() -> None:
    with FakeServer(by_path(v1__chat__completions=calls_natively(call_part("apply_fix", '{"code": "E1"}')))) as server:
        preset, url = preset_of(server.root)
        found = await probe(Endpoint(preset, url, model="any"))
        assert (found.window, found.counter.exact, found.endpoint.asks_for) == (None, False, "tools")
        assert (await decide(found.endpoint)).calls[0].args == {"code": "E1"}


@pytest.mark.parametrize(
    ("kind", "reply", "model", "words"),
    [
        ("ollama", LikeOllama(FIX), "llama9", "has no model `llama9`: it has `qwen3:4b`"),
        ("vllm", like_vllm(reply=FIX), "other", "has no model `other`: it has `org/tiny`"),
        ("vllm", answer({"error": "no"}, 401), "m", "rejects the key: HTTP 401"),
        ("lmstudio", answer({"data": []}), "", "lists no model"),
        ("lmstudio", answer(b"<html>", 200, "text/html"), "", "lists no model"),
    ],
)
async def test_what_a_person_must_put_right_is_told_before_anything_runs(
    kind: str, reply: Reply, model: str, words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        await probed(kind, reply, model)
    assert words in refused.value.message


async def test_a_server_that_does_not_run_is_told_with_how_to_start_it() -> None:
    with FakeServer(FIX) as server:
        pass
    with pytest.raises(ConfigError) as refused:
        await probe(endpoint("ollama", server.url, "qwen3:4b"))
    assert "ollama serve" in (refused.value.hint or "")


@pytest.mark.parametrize("kind", ["llamacpp", "vllm", "ollama", "lmstudio"])
async def test_the_request_holds_the_reply_to_one_of_the_offered_calls(kind: str) -> None:
    with FakeServer(FIX) as server:
        decision = await decide(endpoint(kind, server.url, "m"))
        body = server.asked[0].body
    assert [(call.tool, call.args) for call in decision.calls] == [("apply_fix", {"code": "F401"})]
    assert (decision.finish, decision.usage["prompt_tokens"], decision.model) == ("stop", 100, "fake")
    if kind == "llamacpp":
        assert body["grammar"] == call_grammar(TOOLS)
        return
    first, second = body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert first["properties"]["tool"] == {"const": "apply_fix"}
    assert first["properties"]["args"] == {
        "type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"],
        "additionalProperties": False,
    }  # fmt: skip
    assert second["properties"]["tool"] == {"const": "submit_result"}
    assert (body["stream"], body["temperature"], body["max_tokens"], "tools" in body) == (True, 0.0, 256, False)


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("llamacpp", "cache_prompt", True),
        ("llamacpp", "chat_template_kwargs", {"enable_thinking": False}),
        ("vllm", "chat_template_kwargs", {"enable_thinking": False}),
        ("ollama", "reasoning_effort", "none"),
    ],
)
async def test_each_server_is_told_in_its_own_words_to_decide_without_thinking(
    kind: str, field: str, value: Any
) -> None:
    with FakeServer(FIX) as server:
        await decide(endpoint(kind, server.url, "m"))
        assert server.asked[0].body[field] == value


async def test_a_prompt_that_ollama_cuts_is_seen_in_the_usage_of_the_decision() -> None:
    with FakeServer(LikeOllama(FIX, server_window=2048)) as server:
        decision = await decide(endpoint("ollama", server.url, "qwen3:4b"), words=5000)
    assert decision.usage["prompt_tokens"] == 2048
    assert preset_of("ollama")[0].cuts_silently


@pytest.mark.parametrize(
    ("kind", "reply"),
    [("llamacpp", like_llamacpp(n_ctx=512, reply=FIX)), ("vllm", like_vllm(window=512, reply=FIX))],
)
async def test_a_prompt_that_is_too_long_for_the_others_is_refused_and_told(kind: str, reply: Reply) -> None:
    with FakeServer(reply) as server, pytest.raises(DecisionError, match="HTTP 400") as refused:
        await decide(endpoint(kind, server.url, "org/tiny"), words=5000)
    assert (refused.value.code, refused.value.ask_again) == ("server_refused", False)


MARKED = "<start_function_call>call:apply_fix{code:<escape>F401<escape>}<end_function_call>"


@pytest.mark.parametrize("mode", ["json", "tools"])
@pytest.mark.parametrize("text", [MARKED, 'Sure:\n```json\n{"tool": "apply_fix", "args": {"code": "F401"}}\n```'])
async def test_a_call_in_the_text_is_a_call_in_both_modes(mode: Literal["json", "tools"], text: str) -> None:
    with FakeServer(says(text)) as server:
        decision = await decide(endpoint("llamacpp", server.url, "m", mode=mode))
    assert [(call.tool, call.args) for call in decision.calls] == [("apply_fix", {"code": "F401"})]


async def test_native_calls_are_asked_for_and_a_reply_without_one_is_an_answer() -> None:
    with FakeServer(says('Done: 3 fixed. {"tool": "hammer", "args": {}} is not needed.')) as server:
        decision = await decide(endpoint("llamacpp", server.url, "m", mode="tools"))
        body = server.asked[0].body
    assert (decision.calls, decision.text[:5]) == ((), "Done:")
    assert [tool["function"]["name"] for tool in body["tools"]] == ["apply_fix", "submit_result"]
    assert (body["tool_choice"], "response_format" in body) == ("auto", False)


async def test_of_several_calls_the_good_ones_are_made_and_the_others_told() -> None:
    parts = [call_part("apply_fix", '{"code": "F401"}'), call_part("hammer", "{}", index=1, call_id="c2")]
    with FakeServer(calls_natively(*parts)) as server:
        decision = await decide(endpoint("llamacpp", server.url, "m", mode="tools"))
    assert [call.tool for call in decision.calls] == ["apply_fix"]
    assert [bad.error.code for bad in decision.bad] == ["tool_not_found"]


async def test_what_is_no_call_is_told_in_words_for_the_model() -> None:
    with FakeServer(says("I think that F401 should go.")) as server, pytest.raises(ReplyInvalid) as invalid:
        await decide(endpoint("llamacpp", server.url, "m"))
    assert "The reply is not a call" in invalid.value.message
    assert (invalid.value.text, invalid.value.usage["completion_tokens"]) == ("I think that F401 should go.", 7)


def test_a_name_that_is_no_server_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match="`llamacpp`, `vllm`, `ollama`, `lmstudio`, or a URL"):
        preset_of("olama")
    assert preset_of("http://10.0.0.7:9000")[1] == "http://10.0.0.7:9000/v1"
    assert preset_of("https://host/api/v1/")[1] == "https://host/api/v1"


def test_the_key_is_in_no_repr() -> None:
    assert "sk-1" not in repr(replace(endpoint("vllm", "http://x/v1"), api_key="sk-1"))
    assert json.dumps(preset_of("vllm")[0].extra)
