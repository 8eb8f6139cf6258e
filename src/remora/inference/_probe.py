"""Asks a running server about itself, once before a run: its models, and the context window of the one we use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from remora.errors import ConfigError
from remora.inference._server_counter import ServerCounter
from remora.inference._servers import Endpoint, models_in, window_in
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


@dataclass(frozen=True)
class Probed:
    """A server that responds, with its model and window as far as known."""

    endpoint: Endpoint
    counter: TokenCounter
    window: int | None
    """Tokens that prompt and reply may use together; None if unknown."""


async def probe(endpoint: Endpoint) -> Probed:
    """Ask the server about the model. Raises `ConfigError` if it does not respond, or has no such model."""
    from remora.inference._door import http_client

    async with http_client(endpoint.root, endpoint.api_key, endpoint.deadline_s) as client:
        answers: dict[str, Any] = {"/v1/models": await _models(client, endpoint)}
        endpoint = _with_model(endpoint, models_in(answers["/v1/models"]))
        for path in _WINDOW_PATHS.get(endpoint.preset.name, ()):
            if path not in answers:
                answers[path] = await _ask(client, endpoint, endpoint.root + path)
    return Probed(endpoint, counter_for(endpoint), window_in(endpoint.preset.name, answers, endpoint.model))


def counter_for(endpoint: Endpoint) -> TokenCounter:
    """An exact counter if the server tokenizes, else the estimate."""
    if endpoint.preset.tokenizer == "none":
        return EstimatedCounter()
    model = endpoint.model if endpoint.preset.tokenizer == "vllm" else ""
    return ServerCounter(endpoint.root, api_key=endpoint.api_key, model=model)


async def _models(client: Any, endpoint: Endpoint) -> Any:
    import httpx2

    try:
        return await _ask(client, endpoint, endpoint.url + "/models")
    except (httpx2.HTTPError, TimeoutError) as error:
        raise ConfigError(
            f"No server answers at {endpoint.url}: {type(error).__name__}",
            hint=f"Start {_start_hint(endpoint)}, or name another server with `--server`",
        ) from error


async def _ask(client: Any, endpoint: Endpoint, url: str) -> Any:
    """The JSON at `url`; None if the server has none there."""
    async with asyncio.timeout(endpoint.deadline_s):
        if url.removeprefix(endpoint.root) in _POSTED:
            response = await client.post(url, json={"model": endpoint.model, "stream": False})
        else:
            response = await client.get(url)
    if response.status_code in (401, 403):
        raise ConfigError(
            f"{endpoint.url} rejects the key: HTTP {response.status_code}",
            hint="Name the environment variable that holds it in `server.api_key_env`",
        )
    try:
        return orjson.loads(response.content) if response.status_code == 200 else None
    except orjson.JSONDecodeError:
        return None


def _with_model(endpoint: Endpoint, known: tuple[str, ...]) -> Endpoint:
    """The endpoint with a model that the server has: the requested one, or the first."""
    if not endpoint.model:
        if not known:
            raise ConfigError(f"{endpoint.url} lists no model", hint="Name one with `--model`")
        return replace(endpoint, model=known[0])
    # llama.cpp serves the model it was started with, whatever the name.
    if known and endpoint.preset.name != "llamacpp" and not {endpoint.model, f"{endpoint.model}:latest"} & set(known):
        names = ", ".join(f"`{name}`" for name in known[:8])
        pull = f"`ollama pull {endpoint.model}`, or choose one of them" if endpoint.preset.name == "ollama" else None
        raise ConfigError(f"{endpoint.url} has no model `{endpoint.model}`: it has {names}", hint=pull)
    return endpoint


def _start_hint(endpoint: Endpoint) -> str:
    commands: Mapping[str, str] = {
        "ollama": "it with `ollama serve`",
        "vllm": "it with `vllm serve MODEL`",
        "llamacpp": "it with `llama-server -m FILE.gguf`",
        "lmstudio": "it with `lms server start`",
    }
    return commands.get(endpoint.preset.name, "it")
