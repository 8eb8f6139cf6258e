"""Model servers: connects to the one that the settings name, or starts the embedded one; manages its weights."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remora.app._deciding import EMBEDDED, TRAINED_LIMIT, Deciders
from remora.config import ServerConfig
from remora.errors import ConfigError

if TYPE_CHECKING:
    from remora.inference import Endpoint, Kept, Progress
    from remora.ports import Policy, TokenCounter

CACHE_DIR_VARIABLE = "REMORA_CACHE_DIR"
EMBEDDED_WINDOW = 4096
"""Default context window of the embedded model: tokens of prompt and reply together."""


@asynccontextmanager
async def model_deciders(server: ServerConfig) -> AsyncIterator[Deciders]:
    """Open the model that `server` names, and close it at the end. Raises `ConfigError`."""
    found = _start_embedded(server) if server.server == EMBEDDED else _connect(server)
    async with found as deciders:
        yield deciders


@asynccontextmanager
async def _connect(server: ServerConfig) -> AsyncIterator[Deciders]:
    from remora.inference import Endpoint, ServerPolicy, preset_of, probe

    preset, url = preset_of(server.server)
    found = await probe(_configure(Endpoint(preset, url, model=server.model, api_key=api_key(server)), server))
    async with ServerPolicy(found.endpoint) as policy:
        window = server.context or found.window
        info = {"server": preset.name, "url": url, "window": window, "cuts_silently": preset.cuts_silently}
        yield _make_deciders(policy, found.counter, window, found.endpoint, info)


@asynccontextmanager
async def _start_embedded(server: ServerConfig) -> AsyncIterator[Deciders]:
    from remora.app._adapters import Adapters
    from remora.inference import PRESETS, EmbeddedPolicy, EmbeddedServer, Endpoint, sha256_of

    gguf = await asyncio.to_thread(ensure_weights, server)
    served = await asyncio.to_thread(served_weights, server)
    digest = await asyncio.to_thread(sha256_of, gguf)
    base = digest if served == gguf else await asyncio.to_thread(sha256_of, served)
    adapters = await asyncio.to_thread(Adapters.of, server, base)
    endpoint = _configure(Endpoint(PRESETS["llamacpp"], "", model=gguf.stem, mode="json"), server)
    window = server.context or EMBEDDED_WINDOW
    child = EmbeddedServer(served, context=window, threads=server.threads, adapters=adapters.paths)
    async with EmbeddedPolicy(child, endpoint, adapter=adapters.for_operation("")) as policy:
        info = {"server": EMBEDDED, "window": window, "sha256": digest, "served": served.name, **adapters.describe()}
        found = _make_deciders(policy, _gguf_counter(gguf), window, endpoint, info)
        trained = TRAINED_LIMIT if server.gguf is None else None
        yield replace(found, policy=adapters.choose_policy(policy), trained_limit=trained)


def ensure_weights(server: ServerConfig, progress: Progress | None = None) -> Path:
    """The GGUF file of the embedded model. Downloads the default one if it is missing. Blocking."""
    from remora.inference import check_gguf, present, pull

    gguf = server.gguf or present(cache_dir(os.environ)) or pull(cache_dir(os.environ), progress=progress)
    check_gguf(gguf)
    return gguf


def served_weights(server: ServerConfig) -> Path:
    """The GGUF file to serve. The default model is re-encoded for speed; others are used unchanged. Blocking."""
    from remora.inference import encode

    gguf = ensure_weights(server)
    # `encode` checks the digest. With a damaged file the bundled adapter would be skipped silently.
    return gguf if server.gguf is not None else encode(cache_dir(os.environ), gguf)


def needs_weights(server: ServerConfig) -> bool:
    """Whether a run with these settings must download weights first."""
    from remora.inference import present

    return server.server == EMBEDDED and server.gguf is None and present(cache_dir(os.environ)) is None


def pull_model(progress: Progress | None = None) -> Path:
    """Download the default model into the user's cache if it is missing or damaged, and encode it. Blocking."""
    from remora.inference import encode, pull

    return encode(cache_dir(os.environ), pull(cache_dir(os.environ), progress=progress))


def list_models() -> list[Kept]:
    """List the default model, as downloaded and as served, with the state of each file."""
    from remora.inference import SERVED, SMOLLM2, look

    return [look(cache_dir(os.environ), weights) for weights in (SMOLLM2, SERVED)]


def cache_dir(environment: Mapping[str, str]) -> Path:
    """The folder for weights."""
    if environment.get(CACHE_DIR_VARIABLE):
        return Path(environment[CACHE_DIR_VARIABLE])
    from platformdirs import user_cache_path

    return user_cache_path("remora", appauthor=False)


def api_key(server: ServerConfig) -> str:
    """Read the API key from the variable that the user named. Raises `ConfigError` if it is empty."""
    if not server.api_key_env:
        return ""
    key = os.environ.get(server.api_key_env, "").strip()
    if not key:
        raise ConfigError(
            f"`server.api_key_env` names `{server.api_key_env}`, which is not set",
            hint=f"Set it, such as with `export {server.api_key_env}=…`, or remove the setting",
        )
    return key


def _configure(endpoint: Endpoint, server: ServerConfig) -> Endpoint:
    """Apply the request settings to an endpoint."""
    return replace(
        endpoint,
        mode=endpoint.mode if server.mode == "auto" else server.mode,
        timeout_s=server.timeout_s,
        deadline_s=server.deadline_s,
        max_tokens=server.max_tokens,
        temperature=server.temperature,
        seed=server.seed,
    )


def _make_deciders(
    policy: Policy, counter: TokenCounter, window: int | None, endpoint: Endpoint, info: dict[str, Any]
) -> Deciders:
    mode, recorded = endpoint.asks_for, ("temperature", "seed", "max_tokens")
    return Deciders(
        lambda _: policy,
        counter,
        window=window,
        reserve=endpoint.max_tokens,
        calling="native" if mode == "tools" else "text",
        told={"policy": policy.name, "model": endpoint.model, **info, "mode": mode}
        | {name: getattr(endpoint, name) for name in recorded},
    )


def weights_counter(server: ServerConfig) -> TokenCounter | None:
    """The tokenizer of the embedded model's weights. None if they are missing."""
    from remora.inference import present

    gguf = server.gguf or present(cache_dir(os.environ))
    return _gguf_counter(gguf) if gguf is not None and gguf.is_file() else None


def _gguf_counter(gguf: Path) -> TokenCounter:
    """Count with the file's tokenizer, or estimate if its type is not supported. The counter says which."""
    from remora.inference import EstimatedCounter, GgufCounter

    try:
        return GgufCounter(gguf)
    except ConfigError:
        return EstimatedCounter()
