"""The reply of a streamed request, put together from its server-sent events: Anthropic, OpenAI chat and Responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

_WHOLE = ("response.completed", "response.incomplete", "response.failed")
_BLOCK_TEXTS = {"text_delta": "text", "thinking_delta": "thinking"}


def streamed_reply(text: str) -> dict[str, Any]:
    """The reply as it would have come without streaming; empty if the text holds none."""
    reply: dict[str, Any] = {}
    blocks: dict[Any, dict[str, Any]] = {}
    chat: dict[str, Any] = {}
    for event in _events(text):
        kind = event.get("type")
        if kind in _WHOLE and isinstance(event.get("response"), dict):
            return dict(event["response"])
        if kind == "message_start" and isinstance(event.get("message"), dict):
            reply = dict(event["message"])
        elif kind == "content_block_start" and isinstance(event.get("content_block"), dict):
            blocks[event.get("index")] = dict(event["content_block"])
        elif kind == "content_block_delta" and isinstance(event.get("delta"), dict):
            _add_to_block(blocks.setdefault(event.get("index"), {}), event["delta"])
        elif kind == "message_delta":
            reply["usage"] = {**_mapping(reply.get("usage")), **_mapping(event.get("usage"))}
        elif isinstance(event.get("choices"), list):
            _add_choice(chat, event)
    if blocks:
        content = [_finished(block) for _, block in sorted(blocks.items(), key=lambda pair: str(pair[0]).zfill(6))]
        return {"role": "assistant", **reply, "content": content}
    return _chat_reply(chat) if chat else reply


def _events(text: str) -> Iterator[dict[str, Any]]:
    for line in text.split("\n"):  # other line breaks may be inside a text
        if not line.startswith("data:"):
            continue
        try:
            event = orjson.loads(line[5:].strip())
        except orjson.JSONDecodeError:
            continue
        if isinstance(event, dict):
            yield event


def _add_to_block(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    kind = str(delta.get("type"))
    if kind in _BLOCK_TEXTS:
        name = _BLOCK_TEXTS[kind]
        block[name] = str(block.get(name) or "") + str(delta.get(name) or "")
    elif kind == "input_json_delta":
        block["_input"] = block.get("_input", "") + str(delta.get("partial_json") or "")


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    written = block.pop("_input", "")
    return {**block, "input": written} if written else block


def _add_choice(chat: dict[str, Any], event: Mapping[str, Any]) -> None:
    chat.setdefault("texts", [])
    calls = chat.setdefault("calls", {})
    chat["model"] = event.get("model") or chat.get("model")
    chat["usage"] = event.get("usage") or chat.get("usage")
    first = _mapping(event["choices"][0]) if event["choices"] else {}
    delta = _mapping(first.get("delta"))
    if isinstance(delta.get("content"), str):
        chat["texts"].append(delta["content"])
    for part in delta.get("tool_calls") or ():
        given, function = _mapping(part), _mapping(_mapping(part).get("function"))
        call = calls.setdefault(given.get("index"), {"id": "", "name": "", "arguments": ""})
        call["id"] = given.get("id") or call["id"]
        call["name"] += str(function.get("name") or "")
        call["arguments"] += str(function.get("arguments") or "")


def _chat_reply(chat: Mapping[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(chat["texts"])}
    if chat["calls"]:
        message["tool_calls"] = list(chat["calls"].values())
    return {"choices": [{"message": message}], "model": chat["model"] or "", "usage": chat["usage"] or {}}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
