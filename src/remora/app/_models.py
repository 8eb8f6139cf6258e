"""Model servers: connects to the one that the settings name, or starts the embedded one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remora.app._catalogue import Chosen, chosen_model, ensure_weights, present_weights, served_weights
from remora.app._deciding import EMBEDDED, Deciders
from remora.config import ServerConfig
from remora.errors import ConfigError

if TYPE_CHECKING:
    from remora.inference import Endpoint
    from remora.ports import Policy, TokenCounter

FUNCTIONGEMMA: dict[str, Any] = {"system_role": "developer", "extra": {"stop": ["<start_function_response>"]}}
"""What FunctionGemma's documentation asks for: its own role for instructions, and a stop where tools would answer."""


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
    window = server.context or found.window
    endpoint = _with_longer_reply(found.endpoint, window)
    async with ServerPolicy(endpoint) as policy:
        kind = endpoint.preset
        info: dict[str, Any] = {"server": kind.name, "url": url, "window": window, "cuts_silently": kind.cuts_silently}
        info |= {"cannot": list(found.cannot)} if found.cannot else {}
        yield replace(_make_deciders(policy, found.counter, window, endpoint, info), trained=False, writes=True)


@asynccontextmanager
async def _start_embedded(server: ServerConfig) -> AsyncIterator[Deciders]:
    from remora.app._adapters import Adapters
    from remora.inference import EmbeddedPolicy, EmbeddedServer, sha256_of

    chosen = chosen_model(server)
    gguf = await asyncio.to_thread(ensure_weights, server)
    served = await asyncio.to_thread(served_weights, server)
    digest = await asyncio.to_thread(sha256_of, gguf)
    base = digest if served == gguf else await asyncio.to_thread(sha256_of, served)
    adapters = await asyncio.to_thread(Adapters.of, _with_own_adapter(server, chosen), base)
    window = server.context or chosen.entry.window
    endpoint = _with_longer_reply(_embedded_endpoint(server, chosen), window)
    # An adapter was trained to answer with the call alone.
    endpoint = replace(endpoint, reasoned=endpoint.reasoned and not adapters.paths)
    child = EmbeddedServer(
        served,
        context=window,
        threads=server.threads,
        adapters=adapters.paths,
        special=chosen.entry.calls == "functiongemma",
    )
    async with EmbeddedPolicy(child, endpoint, adapter=adapters.for_operation("")) as policy:
        info = {"server": EMBEDDED, "window": window, "sha256": digest, "served": served.name, **adapters.describe()}
        found = _make_deciders(policy, _gguf_counter(gguf), window, endpoint, info)
        yield replace(
            found,
            policy=adapters.choose_policy(policy),
            trained_limit=chosen.entry.prompt_limit,
            packet_tokens=chosen.entry.packet_tokens,
            trained=adapters.by_operation[""] is not None,
            # A model that was trained on short packets chooses among candidates and writes nothing.
            writes=chosen.entry.calls == "json" and chosen.entry.prompt_limit is None,
        )


def _embedded_endpoint(server: ServerConfig, chosen: Chosen) -> Endpoint:
    """Request settings: the user's own, else those of the catalogue."""
    from remora.inference import PRESETS, Endpoint

    entry, given = chosen.entry, server.model_fields_set
    own = Endpoint(PRESETS["llamacpp"], "", model=chosen.name, mode="json" if entry.calls == "json" else "tools")
    endpoint = _configure(own, server)
    return replace(
        endpoint,
        deadline_s=server.deadline_s if "deadline_s" in given else entry.deadline_s,
        max_tokens=server.max_tokens if "max_tokens" in given else entry.reply_tokens,
        reasoned=entry.reasons if server.reasons is None else server.reasons,
        **(FUNCTIONGEMMA if entry.calls == "functiongemma" else {}),
    )


def _with_longer_reply(endpoint: Endpoint, window: int | None) -> Endpoint:
    """Allow twice as many tokens for the reply after one that was cut, if they take at most a quarter of the window."""
    longer = 2 * endpoint.max_tokens
    fits = window is None or longer <= window // 4
    return replace(endpoint, longer_reply=longer) if fits else endpoint


def _with_own_adapter(server: ServerConfig, chosen: Chosen) -> ServerConfig:
    """The settings with the adapter of the catalogue, unless the user sets another."""
    if server.adapter != "bundled":
        return server
    return server.model_copy(update={"adapter": chosen.entry.adapter})


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
        reasoned=bool(server.reasons),
        checks_fit=server.checks_fit,
    )


def _make_deciders(
    policy: Policy, counter: TokenCounter, window: int | None, endpoint: Endpoint, info: dict[str, Any]
) -> Deciders:
    mode, recorded = endpoint.asks_for, ("temperature", "seed", "max_tokens")
    return Deciders(
        lambda _: policy,
        counter,
        window=window,
        reserve=endpoint.reply_limit(after_cut=True),
        calling="native" if mode == "tools" else "reasoned" if endpoint.reasoned else "text",
        constrained=mode == "json" and endpoint.constrained,
        record={"policy": policy.name, "model": endpoint.model, **info, "mode": mode}
        | {name: getattr(endpoint, name) for name in recorded},
    )


def weights_counter(server: ServerConfig) -> TokenCounter | None:
    """The tokenizer of the embedded model's weights. None if they are missing."""
    chosen = chosen_model(server if server.server == EMBEDDED else ServerConfig(gguf=server.gguf))
    gguf = chosen.file or present_weights(chosen.entry)
    return _gguf_counter(gguf) if gguf is not None and gguf.is_file() else None


def _gguf_counter(gguf: Path) -> TokenCounter:
    """Count with the file's tokenizer, or estimate if its type is not supported. The counter says which."""
    from remora.inference import EstimatedCounter, GgufCounter

    try:
        return GgufCounter(gguf)
    except ConfigError:
        return EstimatedCounter()
