"""A URL is enough: the server is recognized, asked once what it can do, and a call that is nearly right is made."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.fakes import (
    FakeServer,
    LikeOllama,
    Reply,
    Wire,
    answer,
    by_path,
    call_part,
    calls_natively,
    chooses,
    like_llamacpp,
    like_lmstudio,
    like_vllm,
)
from inference.test_servers import FIX, TOOLS, decide, prompt
from remora.context.calls import drop_extra_arguments
from remora.context.schema import problems
from remora.errors import ConfigError, ReplyInvalid, ServerRefused
from remora.events import Call
from remora.inference import Endpoint, Probed, ServerPolicy, preset_of, probe

CHAT = {"choices": [{"message": {"role": "assistant", "content": "ready"}, "finish_reason": "stop"}]}
OLLAMA = LikeOllama(FIX)


def ollama_with_version(wire: Wire) -> None:
    if wire.request.path == "/api/version":
        return answer({"version": "0.13.0"})(wire)
    return OLLAMA(wire)


async def at_url(reply: Reply, model: str = "") -> Probed:
    with FakeServer(reply) as server:
        preset, url = preset_of(server.url)
        return await probe(Endpoint(preset, url, model=model, deadline_s=20.0))


@pytest.mark.parametrize(
    ("reply", "kind", "window"),
    [
        (like_llamacpp(n_ctx=2048, reply=FIX), "llamacpp", 2048),
        (ollama_with_version, "ollama", 4096),
        (like_lmstudio(loaded=4096, reply=FIX), "lmstudio", 4096),
    ],
)
async def test_a_known_server_at_a_url_is_treated_as_what_it_is(reply: Reply, kind: str, window: int) -> None:
    found = await at_url(reply)
    assert (found.endpoint.preset.name, found.window, found.endpoint.asks_for) == (kind, window, "json")


async def test_vllm_is_recognized_by_its_list_of_models() -> None:
    listed = answer({"object": "list", "data": [{"id": "org/m", "owned_by": "vllm", "max_model_len": 8192}]})
    found = await at_url(by_path(v1__models=listed))
    assert (found.endpoint.preset.name, found.endpoint.model, found.window) == ("vllm", "org/m", 8192)
    assert (await at_url(like_vllm(reply=answer(CHAT)))).endpoint.preset.name == "url"


@pytest.mark.parametrize("typed", ["", "tiny-q4.gguf", "tiny-q4", "Tiny-Q4", "/models/a/tiny-q4.gguf"])
async def test_a_model_whose_name_is_a_path_needs_no_whole_path(typed: str) -> None:
    listed = answer(
        {"data": [{"id": "/models/a/tiny-q4.gguf", "owned_by": "llamacpp"}, {"id": "/models/b/other.gguf"}]}
    )
    found = await at_url(by_path(v1__models=listed), typed)
    assert found.endpoint.model == "/models/a/tiny-q4.gguf"


def server_without(*fields: str) -> Reply:
    """An OpenAI-compatible server that refuses requests with any of these fields."""

    def complete(wire: Wire) -> None:
        for name in fields:
            if name in wire.request.body:
                return answer({"error": {"message": f"Unsupported parameter: '{name}'"}}, 400)(wire)
        if wire.request.body.get("stream"):
            return FIX(wire)
        return answer(CHAT)(wire)

    return by_path(v1__models=answer({"data": [{"id": "m"}]}), v1__chat__completions=complete)


@pytest.mark.parametrize(
    ("refuses", "mode", "constrained", "sentences"),
    [
        ((), "tools", True, 0),
        (("tools",), "json", True, 1),
        (("tools", "response_format"), "json", False, 1),
        (("max_tokens",), "tools", True, 0),
    ],
)
async def test_what_a_server_cannot_do_is_found_by_asking_once_and_told(
    refuses: tuple[str, ...], mode: str, constrained: bool, sentences: int
) -> None:
    with FakeServer(server_without(*refuses)) as server:
        preset, url = preset_of(server.url)
        found = await probe(Endpoint(preset, url, model="m", deadline_s=20.0))
        assert (found.endpoint.asks_for, found.endpoint.constrained) == (mode, constrained)
        assert len(found.cannot) == sentences
        decision = await decide(found.endpoint)
    assert decision.calls[0].args == {"code": "F401"}


async def test_optional_fields_that_a_server_refuses_are_left_out_from_then_on_and_told_once() -> None:
    with FakeServer(server_without("seed", "stream_options", "temperature", "max_tokens")) as server:
        preset, url = preset_of(server.url)
        async with ServerPolicy(Endpoint(preset, url, model="m", mode="json", deadline_s=20.0)) as policy:
            first, second = await policy.decide(prompt()), await policy.decide(prompt())
        last = server.asked[-1].body
    assert sorted(notice.message.split("`")[1] for notice in first.notices) == [
        "max_tokens", "seed", "stream_options", "temperature"
    ]  # fmt: skip
    assert second.notices == ()
    assert len(server.asked) == 6
    assert last["max_completion_tokens"] == 256
    assert not {"seed", "temperature", "max_tokens", "stream_options"} & set(last)


async def test_a_field_that_is_needed_is_not_left_out() -> None:
    with FakeServer(server_without("messages")) as server:
        preset, url = preset_of(server.url)
        with pytest.raises(ServerRefused):
            await decide(Endpoint(preset, url, model="m", mode="json", deadline_s=20.0))
    assert len(server.asked) == 1


async def test_openrouter_lists_what_a_model_can_do_so_it_is_not_asked() -> None:
    models = [
        {"id": "a/b", "context_length": 32768, "supported_parameters": ["tools", "structured_outputs"]},
        {"id": "c/d", "context_length": 8192, "supported_parameters": ["tools", "temperature"]},
        {"id": "e/f", "context_length": 4096, "supported_parameters": ["temperature"]},
    ]
    listed = by_path(v1__models=answer({"data": models}))
    found = [await at_url(listed, model) for model in ("a/b", "c/d", "e/f")]
    assert [(each.endpoint.asks_for, each.endpoint.constrained, each.window) for each in found] == [
        ("json", True, 32768), ("tools", True, 8192), ("json", False, 4096)
    ]  # fmt: skip


@pytest.mark.parametrize("reply", [answer(b"<html>hello", 200, "text/html"), answer({"error": "no"}, 404)])
@pytest.mark.parametrize(
    ("model", "words"), [("", "does not answer like a model server"), ("m", "does not answer a chat")]
)
async def test_a_url_that_is_no_model_server_is_told_so(reply: Reply, model: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        await at_url(reply, model)


async def test_a_server_that_fails_to_list_its_models_is_told_by_its_status() -> None:
    with pytest.raises(ConfigError, match="HTTP 500") as caught:
        await at_url(answer(b"Internal Server Error", 500, "text/plain"))
    assert "server.api_key_env" in str(caught.value.hint)


@pytest.mark.parametrize("mode", ["json", "tools"])
async def test_an_argument_too_many_is_dropped_with_a_notice(mode: Any) -> None:
    args = {"code": "E1", "node_id": "a.py:f"}
    reply = chooses("apply_fix", **args) if mode == "json" else calls_natively(call_part("apply_fix", json.dumps(args)))
    with FakeServer(reply) as server:
        preset, url = preset_of(server.url)
        decision = await decide(Endpoint(preset, url, model="m", mode=mode, deadline_s=20.0))
    assert [call.args for call in decision.calls] == [{"code": "E1"}]
    (notice,) = decision.notices
    assert notice.code == "extra_arguments"
    assert "`node_id`" in notice.message


async def test_an_argument_too_few_is_still_told_to_the_model() -> None:
    with FakeServer(chooses("apply_fix", node_id="a.py:f")) as server:
        preset, url = preset_of(server.url)
        with pytest.raises(ReplyInvalid, match="`code` is missing"):
            await decide(Endpoint(preset, url, model="m", mode="json", deadline_s=20.0))


@given(st.dictionaries(st.sampled_from(["code", "node_id", "x", ""]), st.text(max_size=3)))
def test_what_is_left_has_only_known_arguments_and_a_sentence_tells_of_the_rest(args: dict[str, str]) -> None:
    (call,), sentences = drop_extra_arguments([Call(call_id="1", tool="apply_fix", args=args)], TOOLS)
    assert isinstance(call, Call)
    assert call.args == {name: value for name, value in args.items() if name == "code"}
    assert bool(sentences) == (set(args) - {"code"} != set())
    assert all("is missing" in problem for problem in problems(TOOLS[0].parameters, call.args))


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/chat/completions", "/v1/models"])
def test_the_address_of_a_request_is_taken_as_the_address_of_its_server(path: str) -> None:
    assert preset_of(f"http://127.0.0.1:8080{path}")[1] == "http://127.0.0.1:8080/v1"
