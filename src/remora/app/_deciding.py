"""Who decides in a run: a model's server, our own, or a policy without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from remora.config import ServerConfig
from remora.context.render import Calling
from remora.events import Event
from remora.ports import Policy, TokenCounter
from remora.subagent import SubagentDefinition
from remora.twotrack import past_prompts

EMBEDDED = "embedded"
PACKET_TOKENS = 3000
"""What a packet may take beside system text and tools, where neither the user nor the model says otherwise."""
TRAINED_LIMIT = 1000
"""Tokens of the whole prompts that the embedded model was trained on. Policies without a model keep to it too."""
NO_MODEL = ("scripted", "first-candidate", "random")


@dataclass(frozen=True)
class Deciders:
    """What the agents of one run decide by, and what their prompts are counted by."""

    policy: Callable[[SubagentDefinition], Policy]
    """The policy for an agent: one for all, or where it remembers what it did, one for each."""
    counter: TokenCounter
    window: int | None = None
    """Tokens that prompt and reply may take together, where that is known."""
    reserve: int = 0
    """Tokens of the window that a reply needs."""
    calling: Calling = "text"
    told: dict[str, Any] = field(default_factory=dict)
    """What a stream should say about the model."""

    trained_limit: int | None = None
    """Tokens of the prompts that the model was trained on, where longer ones make it worse."""

    def default_limit(self, fixed: int) -> int:
        """The tokens of a prompt where the user sets none: a packet of its own beside `fixed` tokens of tools."""
        return self.trained_limit or fixed + PACKET_TOKENS

    def limit(self, wanted: int) -> int:
        """The tokens that a prompt may take: as set, or less where the model has no room for that."""
        return wanted if self.window is None else min(wanted, self.window - self.reserve)

    async def caught_up(self, definition: SubagentDefinition, past: Sequence[Event]) -> Policy:
        """The policy for an agent that goes on: one without a model is asked again all that it was asked before."""
        policy = self.policy(definition)
        if policy.name in NO_MODEL:
            for prompt in past_prompts(past):
                await policy.decide(prompt)
        return policy


@asynccontextmanager
async def deciders(server: ServerConfig) -> AsyncIterator[Deciders]:
    """Who decides, ready to be asked, and gone afterwards. Raises `ConfigError` or `DecisionError` if nobody can."""
    if server.server in NO_MODEL:
        from remora.inference import EstimatedCounter

        policy = partial(_without_model, server)
        yield Deciders(policy, EstimatedCounter(), trained_limit=TRAINED_LIMIT)
        return
    from remora.app._models import model_deciders

    async with model_deciders(server) as found:
        yield found


def _without_model(server: ServerConfig, definition: SubagentDefinition) -> Policy:
    from remora.inference import FirstCandidatePolicy, RandomPolicy, ScriptedPolicy

    if server.server == "scripted":
        return ScriptedPolicy(definition.script)
    return RandomPolicy(server.seed) if server.server == "random" else FirstCandidatePolicy()
