"""Models: which server stands behind a setting, started and stopped with the run, and the weights of our own."""

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
"""Tokens of prompt and reply together that the embedded model is started with, unless more are set."""


@asynccontextmanager
async def model_deciders(server: ServerConfig) -> AsyncIterator[Deciders]:
    """The model that `server` names, ready to be asked, and gone afterwards. Raises `ConfigError`."""
    found = _embedded(server) if server.server == EMBEDDED else _served(server)
    async with found as deciders:
        yield deciders


@asynccontextmanager
async def _served(server: ServerConfig) -> AsyncIterator[Deciders]:
    from remora.inference import Endpoint, ServerPolicy, preset_of, probe

    preset, url = preset_of(server.server)
    found = await probe(_asked(Endpoint(preset, url, model=server.model, api_key=api_key(server)), server))
    async with ServerPolicy(found.endpoint) as policy:
        window = server.context or found.window
        told = {"server": preset.name, "url": url, "window": window, "cuts_silently": preset.cuts_silently}
        yield _deciders(policy, found.counter, window, found.endpoint, told)


@asynccontextmanager
async def _embedded(server: ServerConfig) -> AsyncIterator[Deciders]:
    from remora.app._adapters import Adapters
    from remora.inference import PRESETS, EmbeddedPolicy, EmbeddedServer, Endpoint, sha256_of

    gguf = await asyncio.to_thread(ensure_weights, server)
    served = await asyncio.to_thread(served_weights, server)
    digest = await asyncio.to_thread(sha256_of, gguf)
    base = digest if served == gguf else await asyncio.to_thread(sha256_of, served)
    adapters = await asyncio.to_thread(Adapters.of, server, base)
    like = _asked(Endpoint(PRESETS["llamacpp"], "", model=gguf.stem, mode="json"), server)
    window = server.context or EMBEDDED_WINDOW
    child = EmbeddedServer(served, context=window, threads=server.threads, adapters=adapters.paths)
    async with EmbeddedPolicy(child, like, adapter=adapters.numbered("")) as policy:
        told = {"server": EMBEDDED, "window": window, "sha256": digest, "served": served.name, **adapters.told()}
        found = _deciders(policy, _counter(gguf), window, like, told)
        trained = TRAINED_LIMIT if server.gguf is None else None
        yield replace(found, policy=adapters.chosen(policy), trained_limit=trained)


def ensure_weights(server: ServerConfig, progress: Progress | None = None) -> Path:
    """The GGUF file of the embedded model, fetched if it is ours and not there. Blocking."""
    from remora.inference import check_gguf, present, pull

    gguf = server.gguf or present(cache_dir(os.environ)) or pull(cache_dir(os.environ), progress=progress)
    check_gguf(gguf)
    return gguf


def served_weights(server: ServerConfig) -> Path:
    """The GGUF file that the embedded model decides with: ours in the faster encoding, another as it is. Blocking."""
    from remora.inference import encode

    gguf = ensure_weights(server)
    # Looked at by its digest: with a damaged file the bundled adapter would be left out without a word.
    return gguf if server.gguf is not None else encode(cache_dir(os.environ), gguf)


def needs_weights(server: ServerConfig) -> bool:
    """Whether a run with these settings would first fetch weights."""
    from remora.inference import present

    return server.server == EMBEDDED and server.gguf is None and present(cache_dir(os.environ)) is None


def pull_model(progress: Progress | None = None) -> Path:
    """The default model in the user's cache, ready to be served: fetched if it is not there or damaged. Blocking."""
    from remora.inference import encode, pull

    return encode(cache_dir(os.environ), pull(cache_dir(os.environ), progress=progress))


def list_models() -> list[Kept]:
    """The default model as it is fetched and as it is served, and whether they are there."""
    from remora.inference import SERVED, SMOLLM2, look

    return [look(cache_dir(os.environ), weights) for weights in (SMOLLM2, SERVED)]


def cache_dir(environment: Mapping[str, str]) -> Path:
    """Where weights are kept."""
    if environment.get(CACHE_DIR_VARIABLE):
        return Path(environment[CACHE_DIR_VARIABLE])
    from platformdirs import user_cache_path

    return user_cache_path("remora", appauthor=False)


def api_key(server: ServerConfig) -> str:
    """The key in the variable that the user named. Raises `ConfigError` if it is empty."""
    if not server.api_key_env:
        return ""
    key = os.environ.get(server.api_key_env, "").strip()
    if not key:
        raise ConfigError(
            f"`server.api_key_env` names `{server.api_key_env}`, which is not set",
            hint=f"Set it, such as with `export {server.api_key_env}=…`, or leave the setting out",
        )
    return key


def _asked(endpoint: Endpoint, server: ServerConfig) -> Endpoint:
    """The endpoint, asked as the settings say."""
    return replace(
        endpoint,
        mode=endpoint.mode if server.mode == "auto" else server.mode,
        timeout_s=server.timeout_s,
        deadline_s=server.deadline_s,
        max_tokens=server.max_tokens,
        temperature=server.temperature,
        seed=server.seed,
    )


def _deciders(
    policy: Policy, counter: TokenCounter, window: int | None, endpoint: Endpoint, told: dict[str, Any]
) -> Deciders:
    mode, said = endpoint.asks_for, ("temperature", "seed", "max_tokens")
    return Deciders(
        lambda _: policy,
        counter,
        window=window,
        reserve=endpoint.max_tokens,
        calling="native" if mode == "tools" else "text",
        told={"policy": policy.name, "model": endpoint.model, **told, "mode": mode}
        | {name: getattr(endpoint, name) for name in said},
    )


def weights_counter(server: ServerConfig) -> TokenCounter | None:
    """The tokenizer of the embedded model's weights, where they are there."""
    from remora.inference import present

    gguf = server.gguf or present(cache_dir(os.environ))
    return _counter(gguf) if gguf is not None and gguf.is_file() else None


def _counter(gguf: Path) -> TokenCounter:
    """Exact by the file's own tokenizer; estimated, and called so, for a kind that cannot be rebuilt."""
    from remora.inference import EstimatedCounter, GgufCounter

    try:
        return GgufCounter(gguf)
    except ConfigError:
        return EstimatedCounter()
