"""Asks a running server about itself, once before a run: what it is, its models, the context window, what it cannot do.

A URL may be any server. It is recognized by its answers, and one of an unknown type is sent one small request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import orjson

from remora.context.text import one_line
from remora.errors import ConfigError
from remora.inference._abilities import Abilities, ask_abilities
from remora.inference._server_counter import ServerCounter
from remora.inference._servers import PRESETS, Endpoint, models_in, server_type, window_in
from remora.inference._tokens import EstimatedCounter
from remora.ports import TokenCounter

_WINDOW_PATHS = {
    "llamacpp": ("/props",),
    "vllm": ("/v1/models",),
    "lmstudio": ("/api/v0/models",),
    "ollama": ("/api/show", "/api/generate", "/api/ps"),
}
"""By server type, the paths that tell the window.

Ollama only knows it once the model is loaded, which an empty `/api/generate` does.
"""
_POSTED = ("/api/show", "/api/generate")
_TYPE_PATHS = ("/props", "/api/version", "/api/v0/models")
"""Paths that only one type of server answers."""


@dataclass(frozen=True)
class Probed:
    """A server that responds, with its model and window as far as known."""

    endpoint: Endpoint
    counter: TokenCounter
    window: int | None
    """Tokens that prompt and reply may use together; None if unknown."""
    cannot: tuple[str, ...] = ()
    """What the server cannot do, and what is done instead, in sentences."""


async def probe(endpoint: Endpoint) -> Probed:
    """Ask the server about the model. Raises `ConfigError` if it does not respond, or has no such model."""
    from remora.inference._door import http_client

    cannot: tuple[str, ...] = ()
    async with http_client(endpoint.root, endpoint.api_key, endpoint.deadline_s) as client:
        status, listed = await _models(client, endpoint)
        answers: dict[str, Any] = {"/v1/models": listed}
        endpoint = await _recognize(client, endpoint, answers)
        endpoint = _with_model(endpoint, models_in(listed), status)
        for path in _WINDOW_PATHS.get(endpoint.preset.name, ()):
            if path not in answers:
                answers[path] = await _ask(client, endpoint, endpoint.root + path)
        if endpoint.preset.name == "url":
            found = await ask_abilities(client, endpoint, listed=listed)
            endpoint, cannot = _apply(endpoint, found), found.cannot
    counter = counter_for(endpoint)
    window = window_in(endpoint.preset.name, answers, endpoint.model)
    return Probed(endpoint, counter, window, cannot)


def counter_for(endpoint: Endpoint) -> TokenCounter:
    """An exact counter if the server tokenizes, else the estimate."""
    if endpoint.preset.tokenizer == "none":
        return EstimatedCounter()
    model = endpoint.model if endpoint.preset.tokenizer == "vllm" else ""
    return ServerCounter(endpoint.root, api_key=endpoint.api_key, model=model)


def _apply(endpoint: Endpoint, found: Abilities) -> Endpoint:
    """The endpoint with the mode that works there, unless the user chose one."""
    mode = found.mode if endpoint.mode == "auto" else endpoint.mode
    return replace(endpoint, mode=mode, constrained=found.constrained)


async def _recognize(client: Any, endpoint: Endpoint, answers: dict[str, Any]) -> Endpoint:
    """A URL as the type of server that it is, if it is a known one."""
    if endpoint.preset.name != "url":
        return endpoint
    found = server_type(answers)
    for path in _TYPE_PATHS:
        if found is None:
            answers[path] = await _ask(client, endpoint, endpoint.root + path)
            found = server_type(answers)
    return replace(endpoint, preset=PRESETS[found]) if found else endpoint


async def _models(client: Any, endpoint: Endpoint) -> tuple[int, Any]:
    """The HTTP status and the JSON of the server's list of models."""
    import httpx2

    try:
        return await _fetch(client, endpoint, endpoint.url + "/models")
    except (httpx2.HTTPError, TimeoutError) as error:
        raise ConfigError(
            f"No server answers at {endpoint.url}: {type(error).__name__}",
            hint=f"Start {_start_hint(endpoint)}, or name another server with `--server`",
        ) from error


async def _ask(client: Any, endpoint: Endpoint, url: str) -> Any:
    """The JSON at `url`; None if the server has none there."""
    return (await _fetch(client, endpoint, url))[1]


async def _fetch(client: Any, endpoint: Endpoint, url: str) -> tuple[int, Any]:
    """The HTTP status and the JSON at `url`; None in place of JSON if the server has none there."""
    async with asyncio.timeout(endpoint.deadline_s):
        if url.removeprefix(endpoint.root) in _POSTED:
            response = await client.post(url, json={"model": endpoint.model, "stream": False})
        else:
            response = await client.get(url)
    if response.status_code in (401, 403) and url.startswith(endpoint.url):
        raise ConfigError(
            f"{endpoint.url} rejects the key: HTTP {response.status_code}",
            hint="Name the environment variable that holds it in `server.api_key_env`",
        )
    try:
        found = orjson.loads(response.content) if response.status_code == 200 else None
    except orjson.JSONDecodeError:
        found = None
    return response.status_code, found


def _with_model(endpoint: Endpoint, known: tuple[str, ...], status: int) -> Endpoint:
    """The endpoint with a model that the server has: the requested one, or the first.

    `status` is the HTTP status of the server's list of models.
    """
    if not endpoint.model:
        if not known:
            raise _no_model(endpoint, status)
        return replace(endpoint, model=known[0])
    if found := _match(endpoint.model, known):
        return replace(endpoint, model=found)
    # llama.cpp serves the model it was started with, whatever the name.
    if known and endpoint.preset.name != "llamacpp":
        names = ", ".join(f"`{one_line(name, 80)}`" for name in known[:8])
        pull = f"`ollama pull {endpoint.model}`, or choose one of them" if endpoint.preset.name == "ollama" else None
        raise ConfigError(f"{endpoint.url} has no model `{endpoint.model}`: it has {names}", hint=pull)
    return endpoint


def _match(wanted: str, known: tuple[str, ...]) -> str:
    """The server's name for a model: exact, with Ollama's default tag, or by the last part of a path."""
    for name in known:
        if name in (wanted, f"{wanted}:latest"):
            return wanted
    short = [name for name in known if wanted.casefold() in _short_names(name)]
    return short[0] if len(short) == 1 else ""


def _short_names(name: str) -> tuple[str, str]:
    last = PurePosixPath(name.replace("\\", "/").casefold()).name
    return last, last.removesuffix(".gguf")


def _no_model(endpoint: Endpoint, status: int) -> ConfigError:
    if status >= 500:
        return ConfigError(
            f"{endpoint.url}/models answers with an error of the server: HTTP {status}",
            hint="Read the server's log. If it needs a key, name its environment variable in `server.api_key_env`",
        )
    if endpoint.preset.name == "url":
        return ConfigError(
            f"{endpoint.url} does not answer like a model server: it lists no models",
            hint="Is the address right, with its `/v1`? A server without a list needs a name: `--model`",
        )
    return ConfigError(f"{endpoint.url} lists no model", hint="Name one with `--model`")


def _start_hint(endpoint: Endpoint) -> str:
    commands: Mapping[str, str] = {
        "ollama": "it with `ollama serve`",
        "vllm": "it with `vllm serve MODEL`",
        "llamacpp": "it with `llama-server -m FILE.gguf`",
        "lmstudio": "it with `lms server start`",
    }
    return commands.get(endpoint.preset.name, "it")
