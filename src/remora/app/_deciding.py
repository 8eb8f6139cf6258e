"""Opens what decides in a run: a model server, the embedded model, or a policy without a model."""

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
"""Default budget of the packet, without system text and tools."""
TRAINED_LIMIT = 1000
"""Tokens of the prompts that the embedded model was trained on. Policies without a model use the same limit."""
NO_MODEL = ("scripted", "first-candidate", "random")


@dataclass(frozen=True)
class Deciders:
    """The policies and the token counter of one run."""

    policy: Callable[[SubagentDefinition], Policy]
    """Returns the policy of an agent. Stateful policies are created for each agent; others are shared."""
    counter: TokenCounter
    window: int | None = None
    """Context window: tokens of prompt and reply together, if known."""
    reserve: int = 0
    """Tokens of the window that are reserved for the reply."""
    calling: Calling = "text"
    record: dict[str, Any] = field(default_factory=dict)
    """Facts about the model that the stream records."""

    trained_limit: int | None = None
    """Tokens of the prompts that the model was trained on, if longer ones make its choices worse."""

    packet_tokens: int = PACKET_TOKENS
    """Default budget of the packet, without system text and tools."""

    trained: bool = True
    """Whether it was trained on packets, or needs no explanation. If not, prompts say when the work is done."""

    writes: bool = False
    """Whether it can write a text in plain words, as the `drafts` of a definition ask for."""

    constrained: bool = False
    """Whether a reply can only be a call of an offered tool."""

    def done_key(self, definition: SubagentDefinition) -> str:
        """The knowledge key that prompts name when it is 0; empty if they do not."""
        return definition.check.count if definition.check and not self.trained else ""

    def check_tool(self, definition: SubagentDefinition) -> str:
        """The tool that is not offered again before a file changes; empty if there is none.

        A model that is not constrained would call it all the same, and lose a turn.
        """
        return definition.check.tool if definition.check and self.constrained and not self.trained else ""

    def default_limit(self, fixed: int) -> int:
        """The default prompt limit. `fixed` is the number of tokens of system text and tools."""
        return self.trained_limit or fixed + self.packet_tokens

    def limit(self, wanted: int) -> int:
        """The prompt limit: `wanted`, or less if the context window is smaller."""
        return wanted if self.window is None else min(wanted, self.window - self.reserve)

    async def resumed_policy(self, definition: SubagentDefinition, past: Sequence[Event], rung: str = "") -> Policy:
        """The policy of a resumed agent. A policy without a model gets its past prompts again, to restore its state."""
        policy = self.policy(definition)
        if policy.name in NO_MODEL:
            for prompt in past_prompts(past, rung):
                await policy.decide(prompt)
        return policy


@asynccontextmanager
async def deciders(server: ServerConfig) -> AsyncIterator[Deciders]:
    """Open the policy that the settings name, and close it at the end. Raises `ConfigError` or `DecisionError`."""
    if server.server in NO_MODEL:
        from remora.inference import EstimatedCounter

        policy = partial(_policy_without_model, server)
        yield Deciders(policy, EstimatedCounter(), trained_limit=TRAINED_LIMIT)
        return
    from remora.app._models import model_deciders

    async with model_deciders(server) as found:
        yield found


def _policy_without_model(server: ServerConfig, definition: SubagentDefinition) -> Policy:
    from remora.inference import FirstCandidatePolicy, RandomPolicy, ScriptedPolicy

    if server.server == "scripted":
        return ScriptedPolicy(definition.script)
    return RandomPolicy(server.seed) if server.server == "random" else FirstCandidatePolicy()
