"""Decides with the embedded model: the same client as for any server, with a child that may be replaced."""

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
"""A request that hit a dying child before any output is sent to the next one."""


@dataclass(frozen=True)
class Adapter:
    """An adapter of the server, by its number, with its scale."""

    number: int
    scale: float = 1.0


class EmbeddedPolicy:
    """Decides with an `EmbeddedServer`. Requests are served in order, one slot each.

    `like` has the request settings; address, key and model name come from the server.
    """

    def __init__(self, server: EmbeddedServer, like: Endpoint | None = None, *, adapter: Adapter | None = None) -> None:
        self._server = server
        self._like = like or Endpoint(PRESETS["llamacpp"], "", mode="json")
        self._adapter = _check_adapter(server, adapter)
        self.name = f"embedded:{server.gguf.stem}"
        self._slots = asyncio.Semaphore(server.slots)
        self._client: tuple[Child, ServerPolicy] | None = None
        self._siblings: list[EmbeddedPolicy] = []
        self._writer: EmbeddedPolicy | None = None
        """The same server without an adapter."""

    def using(self, adapter: Adapter | None) -> EmbeddedPolicy:
        """The same server with another adapter, or none. It is closed together with this policy."""
        other = EmbeddedPolicy(self._server, self._like, adapter=adapter)
        other._slots = self._slots
        self._siblings.append(other)
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections and the child."""
        for policy in (self, *self._siblings):
            if policy._client is not None:
                await policy._client[1].close()
        await self._server.close()

    async def decide(self, prompt: Prompt) -> Decision:
        """The model's call. Raises a `DecisionError`; a child that crashed or hung is gone by then.

        An adapter that was trained on calls does not help with plain words: drafts are written without one.
        """
        if prompt.drafting is not None and self._adapter is not None:
            self._writer = self._writer or self.using(None)
            return await self._writer.decide(prompt)
        async with self._slots:
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
            self._server.kill(child)  # the server may still respond, but the model does not
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
        if self._client is None or self._client[0] is not child:
            before, self._client = self._client, (child, ServerPolicy(self._endpoint(child), label="embedded"))
            if before is not None:
                await before[1].close()
        return self._client[1]

    def _endpoint(self, child: Child) -> Endpoint:
        return replace(
            self._like,
            url=f"{child.url}/v1",
            api_key=child.key,
            model=self._server.gguf.stem,
            attempts=1,
            timeout_s=self._like.deadline_s,  # no output arrives while a long prompt is processed
            extra={**self._like.extra, **self._adapters()},
            checks_fit=self._like.checks_fit and self._adapter is None,
        )

    def _adapters(self) -> dict[str, list[dict[str, float]]]:
        """The scale of every adapter.

        All are listed: otherwise the prompt cache could keep results of an unlisted one.
        """
        chosen = {self._adapter.number: self._adapter.scale} if self._adapter else {}
        named = [{"id": place, "scale": chosen.get(place, 0.0)} for place in range(len(self._server.adapters))]
        return {"lora": named} if named else {}


def _check_adapter(server: EmbeddedServer, adapter: Adapter | None) -> Adapter | None:
    """Check that the server has the adapter: llama.cpp would silently answer with the base model."""
    if adapter is not None and not 0 <= adapter.number < len(server.adapters):
        raise ConfigError(f"Adapter {adapter.number} is not loaded: the embedded server has {len(server.adapters)}")
    return adapter
