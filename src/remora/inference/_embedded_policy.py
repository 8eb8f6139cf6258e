"""Decides with the embedded model: the same client as for any server, over a child that may have to be replaced."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Self

from remora.errors import ConfigError, DecisionLate, ReplyBroken, ReplyInvalid, ReplyTooLarge, ServerUnreachable
from remora.inference._embedded import Child, EmbeddedServer
from remora.inference._server_policy import ServerPolicy
from remora.inference._servers import PRESETS, Endpoint
from remora.ports import Decision, Prompt

_TRIES = 2
"""A request that met a dying child before it said anything is sent to the next one."""


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter of the server, by its number, and how strongly it works."""

    number: int
    scale: float = 1.0


class EmbeddedPolicy:
    """Decides with an `EmbeddedServer`. Its requests are served in the order in which they came, a slot each.

    `like` says how the model is asked; address, key and name are the server's own.
    """

    def __init__(self, server: EmbeddedServer, like: Endpoint | None = None, *, adapter: Adapter | None = None) -> None:
        self._server = server
        self._like = like or Endpoint(PRESETS["llamacpp"], "", mode="json")
        self._adapter = _known(server, adapter)
        self.name = f"embedded:{server.gguf.stem}"
        self._places = asyncio.Semaphore(server.slots)
        self._asked: tuple[Child, ServerPolicy] | None = None
        self._beside: list[EmbeddedPolicy] = []

    def using(self, adapter: Adapter | None) -> EmbeddedPolicy:
        """The same server, asked with another adapter or with none. It is closed with this policy."""
        other = EmbeddedPolicy(self._server, self._like, adapter=adapter)
        other._places = self._places
        self._beside.append(other)
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """No connection and no child is left."""
        for policy in (self, *self._beside):
            if policy._asked is not None:
                await policy._asked[1].close()
        await self._server.close()

    async def decide(self, prompt: Prompt) -> Decision:
        """The model's call. Raises a `DecisionError`; a child that crashed or hung meanwhile is gone by then."""
        async with self._places:
            for left in reversed(range(_TRIES)):
                child = await self._server.ready()
                try:
                    return await self._once(child, prompt)
                except ServerUnreachable:
                    if not left:
                        raise
        raise AssertionError("a request is answered or fails")

    async def _once(self, child: Child, prompt: Prompt) -> Decision:
        policy = await self._policy(child)
        try:
            decision = await policy.decide(prompt)
        except DecisionLate:
            self._server.kill(child)  # whatever still answers, the model in it does not
            raise
        except (ServerUnreachable, ReplyBroken):
            await self._server.check(child)
            raise
        except (ReplyInvalid, ReplyTooLarge):
            self._server.worked()
            raise
        self._server.worked()
        return decision

    async def _policy(self, child: Child) -> ServerPolicy:
        if self._asked is None or self._asked[0] is not child:
            before, self._asked = self._asked, (child, ServerPolicy(self._endpoint(child), label="embedded"))
            if before is not None:
                await before[1].close()
        return self._asked[1]

    def _endpoint(self, child: Child) -> Endpoint:
        return replace(
            self._like,
            url=f"{child.url}/v1",
            api_key=child.key,
            model=self._server.gguf.stem,
            attempts=1,
            timeout_s=self._like.deadline_s,  # a long prompt is read in silence
            extra={**self._like.extra, **self._adapters()},
        )

    def _adapters(self) -> dict[str, list[dict[str, float]]]:
        """How strongly each adapter works. All are named: what was read with an unnamed one would stay in the cache."""
        chosen = {self._adapter.number: self._adapter.scale} if self._adapter else {}
        named = [{"id": place, "scale": chosen.get(place, 0.0)} for place in range(len(self._server.adapters))]
        return {"lora": named} if named else {}


def _known(server: EmbeddedServer, adapter: Adapter | None) -> Adapter | None:
    """The adapter, if the server has it: llama.cpp would answer with the base model, and say nothing."""
    if adapter is not None and not 0 <= adapter.number < len(server.adapters):
        raise ConfigError(f"Adapter {adapter.number} is not loaded: the embedded server has {len(server.adapters)}")
    return adapter
