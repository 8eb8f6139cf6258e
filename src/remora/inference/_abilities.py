"""Finds out what a server of an unknown type can do, by one small request, or by what it lists."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from remora.context.contracts import ToolSpec
from remora.context.text import one_line
from remora.errors import ConfigError
from remora.inference._constrain import response_format
from remora.inference._servers import Endpoint, find_model

_TOKENS = 8
"""Most tokens of the reply to a trial request."""
_TOOL = ToolSpec(
    name="ready",
    description="Say that you are ready.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
_NO_TOOLS = "The server does not accept `tools`: calls are requested as JSON that is held to a schema"
_NO_SCHEMA = "The server accepts neither `tools` nor `response_format`: the prompt alone asks for JSON"


@dataclass(frozen=True)
class Abilities:
    """How to ask a server for calls."""

    mode: Literal["json", "tools"]
    constrained: bool = True
    cannot: tuple[str, ...] = ()


async def ask_abilities(client: Any, endpoint: Endpoint, *, listed: Any) -> Abilities:
    """How the server can be asked for calls. Raises `ConfigError` if it is not a model server."""
    if found := _from_list(listed, endpoint.model):
        return found
    if endpoint.mode != "auto":
        return Abilities(endpoint.mode)
    trials: tuple[tuple[dict[str, Any], Abilities], ...] = (
        ({"tools": [_TOOL.openai()]}, Abilities("tools")),
        ({"response_format": response_format([_TOOL])}, Abilities("json", cannot=(_NO_TOOLS,))),
        ({}, Abilities("json", constrained=False, cannot=(_NO_SCHEMA,))),
    )
    problem = ""
    for fields, abilities in trials:
        problem = await _try(client, endpoint, fields)
        if not problem:
            return abilities
    raise ConfigError(
        f"{endpoint.url} does not answer a chat request: {problem}",
        hint=f"Is it a model server, `{endpoint.model}` one of its models, and the key right (`server.api_key_env`)?",
    )


def _from_list(listed: Any, model: str) -> Abilities | None:
    """Abilities that the server lists for the model, as OpenRouter does; None if it lists none."""
    supported = find_model(listed, model).get("supported_parameters")
    if not isinstance(supported, list):
        return None
    if "structured_outputs" in supported:
        return Abilities("json")
    return Abilities("tools") if "tools" in supported else Abilities("json", constrained=False, cannot=(_NO_SCHEMA,))


async def _try(client: Any, endpoint: Endpoint, fields: Mapping[str, Any]) -> str:
    """Send a trial request. Returns what is wrong; empty if it is answered."""
    import httpx2

    asked = {"model": endpoint.model, "messages": [{"role": "user", "content": "Say: ready"}], "max_tokens": _TOKENS}
    try:
        async with asyncio.timeout(endpoint.deadline_s):
            response = await client.post(f"{endpoint.url}/chat/completions", json={**asked, **fields})
            if response.status_code == 400 and b"max_tokens" in response.content:
                asked["max_completion_tokens"] = asked.pop("max_tokens")
                response = await client.post(f"{endpoint.url}/chat/completions", json={**asked, **fields})
    except (httpx2.HTTPError, TimeoutError) as error:
        raise ConfigError(f"{endpoint.url} does not answer a chat request: {type(error).__name__}") from error
    if response.status_code == 200 and response.headers.get("content-type", "").startswith("text/event-stream"):
        return ""  # it always streams
    try:
        answer = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return f"HTTP {response.status_code}, and no JSON"
    if response.status_code == 200 and isinstance(answer, Mapping) and isinstance(answer.get("choices"), list):
        return ""
    told = answer.get("error", answer) if isinstance(answer, Mapping) else answer
    said = told.get("message", told) if isinstance(told, Mapping) else told
    return f"HTTP {response.status_code}: {one_line(str(said), 160)}"
