"""The ladder of a run: the models that the user named, each opened when an agent first needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from remora.app._catalogue import catalogue, chosen_model, needs_weights
from remora.app._deciding import EMBEDDED, NO_MODEL, Deciders, deciders
from remora.config import Config, RungConfig, ServerConfig
from remora.errors import ConfigError, RemoraError
from remora.escalation import Meter, Price, Rung

LADDER_START = "server"
"""The rung that is the model of the `server` block."""
HANDOVER_TOKENS = 8000
"""Default tokens of packet and evidence for a server of the ladder. Others have the limit of their model."""


def rung_server(rung: RungConfig, server: ServerConfig) -> ServerConfig:
    """The server of a rung. What the rung does not name is as in the `server` block. Raises `ConfigError`."""
    chosen: dict[str, object]
    if rung.model == LADDER_START:
        chosen = {"api_key_env": rung.api_key_env or server.api_key_env, "context": rung.context or server.context}
    else:
        chosen = {"api_key_env": rung.api_key_env, "context": rung.context, **_parse_model(rung.model)}
    chosen["mode"] = rung.mode or (server.mode if rung.model == LADDER_START else "auto")
    if rung.max_tokens is not None:  # a field that is set replaces the default of the model's catalogue entry
        chosen["max_tokens"] = rung.max_tokens
    return server.model_copy(update=chosen)


def _parse_model(model: str) -> dict[str, object]:
    """The settings of the `server` block that a rung's model stands for."""
    if model in NO_MODEL:
        return {"server": model, "model": "", "gguf": None}
    place, mark, name = model.partition("#")
    if mark or "://" in model:
        _check_url(model, place, name)
        return {"server": place, "model": name, "gguf": None}
    if model.endswith(".gguf"):
        return {"server": EMBEDDED, "model": "", "gguf": Path(model).expanduser()}
    if model == EMBEDDED or model in catalogue():
        return {"server": EMBEDDED, "model": "" if model == EMBEDDED else model, "gguf": None}
    names = ", ".join(f"`{name}`" for name in catalogue())
    raise ConfigError(
        f"`{model:.200}` is not a rung of a ladder: expected an embedded model ({names}), a GGUF file, `ollama#MODEL`, "
        f"`URL#MODEL`, `{LADDER_START}`, or a policy without a model",
        hint="Such as: escalation: [smollm2-135m, ollama#qwen3:4b]",
    )


def _check_url(model: str, place: str, name: str) -> None:
    """Raises `ConfigError` if the rung names no server, no model, or a key."""
    from remora.inference import preset_of

    preset_of(place)
    if not name:
        raise ConfigError(f"`{place:.200}` names no model", hint=f"Name it after a `#`: {place:.200}#MODEL")
    if "@" in urlsplit(place).netloc:
        raise ConfigError(
            "A rung's URL contains a user name or a key, and the URL is recorded",
            hint="Put the key into a variable and name it: {model: URL#MODEL, api_key_env: NAME}",
        )


def rung_name(rung: RungConfig, server: ServerConfig) -> str:
    """The name of a rung in streams and tables."""
    if rung.model != LADDER_START:
        return rung.model
    if server.server in NO_MODEL:
        return server.server
    if server.server == EMBEDDED:
        return chosen_model(server).name
    return f"{server.server}#{server.model}"


def is_local(model: str) -> bool:
    """Whether a rung stays on this machine and loads no file: a server by name, an embedded model, or a policy."""
    from remora.inference import PRESETS

    named = model in (LADDER_START, EMBEDDED, *NO_MODEL) or model in catalogue()
    return named or model.partition("#")[0] in PRESETS


def rung_names(config: Config) -> tuple[str, ...]:
    """The names of the ladder's rungs; empty without a ladder."""
    names = tuple(rung_name(rung, config.server) for rung in config.escalation)
    return names if len(names) > 1 else ()


def check_weights(name: str, server: ServerConfig) -> None:
    """Raises `ConfigError` if a rung's weights are missing: a run does not download gigabytes by itself."""
    if needs_weights(server):
        raise ConfigError(
            f"The weights of `{name}` are not downloaded", hint=f"Download them first: remora model pull {name}"
        )


def missing_weights(config: Config) -> list[str]:
    """A sentence for each rung above the first whose weights are missing."""
    named = [(rung_name(rung, config.server), rung_server(rung, config.server)) for rung in config.escalation[1:]]
    return [
        f"`{name}` has no weights here, so no agent can move up to it: remora model pull {name}"
        for name, server in named
        if needs_weights(server)
    ]


def servers_of(config: Config) -> tuple[str, ...]:
    """The servers that a run may ask, by name or URL, without policies and the embedded model."""
    used = [rung_server(rung, config.server).server for rung in config.escalation] or [config.server.server]
    return tuple(dict.fromkeys(server for server in used if server not in (*NO_MODEL, EMBEDDED)))


def first_server(config: Config) -> ServerConfig:
    """The server that agents start on: the first rung of the ladder, or the `server` block without one."""
    return rung_server(config.escalation[0], config.server) if config.escalation else config.server


def check_ladder(config: Config) -> None:
    """Raises `ConfigError` for a ladder that cannot work, before anything runs."""
    names = [rung_name(rung, config.server) for rung in config.escalation]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"`escalation` names `{twice[0]:.200}` twice: expected different models")
    if len(names) > 1 and not config.runner.memory.enabled:
        raise ConfigError(
            "A ladder needs the packet: chat history cannot be handed to another model",
            hint="Leave out `--no-memory`, or the ladder",
        )
    for rung in config.escalation[1:]:
        server = rung_server(rung, config.server).server
        unpriced = not (rung.price_in or rung.price_out) and server not in (EMBEDDED, *NO_MODEL)
        if config.runner.escalation.max_price is not None and unpriced and "://" in server:
            raise ConfigError(
                f"`runner.escalation.max_price` is set, and `{rung.model:.200}` has no price",
                hint="Add `price_in` and `price_out` (for a million tokens) to the rung, or remove the limit",
            )


class Rungs:
    """The models of one run's ladder. Each is opened once, and closed with the run."""

    def __init__(self, config: Config, first: Deciders, stack: AsyncExitStack, given: Sequence[Deciders] = ()) -> None:
        """`given` are opened deciders for the rungs above the first, to be used instead of opening them."""
        check_ladder(config)
        self._config = config
        self._stack = stack
        self._by_name = {rung_name(rung, config.server): rung for rung in config.escalation}
        self.names = tuple(self._by_name)
        self._opened: dict[str, Deciders | RemoraError] = dict(zip(self.names, [first, *given], strict=False))
        self._opening = asyncio.Lock()
        limits = config.runner.escalation
        self.meter = Meter(limits.max_run_decisions, limits.max_price)

    async def open(self, name: str) -> Deciders:
        """Open a rung's model. Raises `RemoraError` if it cannot be used, also the next time."""
        async with self._opening:
            if name not in self._opened:
                try:
                    server = rung_server(self._by_name[name], self._config.server)
                    check_weights(name, server)
                    self._opened[name] = await self._stack.enter_async_context(deciders(server))
                except RemoraError as error:
                    self._opened[name] = error
        found = self._opened[name]
        if isinstance(found, RemoraError):
            raise found
        return found

    def limit(self, name: str, found: Deciders, fixed: int) -> int:
        """The prompt limit of a rung. `fixed` is the number of tokens of system text and tools."""
        rung = self._by_name[name]
        is_server = rung_server(rung, self._config.server).server not in (EMBEDDED, *NO_MODEL)
        default = fixed + HANDOVER_TOKENS if is_server else found.default_limit(fixed)
        return found.limit(rung.prompt_tokens or default)

    def price(self, name: str) -> Price:
        """The price of a rung's tokens."""
        rung = self._by_name[name]
        return Price(rung.price_in, rung.price_out)

    @property
    def prices(self) -> Mapping[str, Price]:
        """The price of every rung."""
        return {name: self.price(name) for name in self.names}


@dataclass(frozen=True)
class AgentLadder:
    """The ladder of one agent: rungs with its own tools and prompts."""

    rungs: Rungs
    build: Callable[[str, Deciders], Awaitable[Rung]]
    """Builds a rung of this agent from its opened model."""
    _built: dict[str, Rung] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return self.rungs.names

    @property
    def meter(self) -> Meter:
        return self.rungs.meter

    async def open(self, name: str) -> Rung:
        """Open a rung. A policy keeps its state when the agent comes back to it."""
        if name not in self._built:
            self._built[name] = await self.build(name, await self.rungs.open(name))
        return self._built[name]
