"""The rungs of a ladder, and the meter of what goes to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from remora.analysis import tokens_in
from remora.context.contracts import ToolSpec
from remora.events import Event, ModelRequestEvent, ModelResponseEvent
from remora.ports import Policy, TokenCounter
from remora.twotrack import PromptSettings


@dataclass(frozen=True)
class Price:
    """The price of a million tokens."""

    prompt: float = 0.0
    reply: float = 0.0

    def of(self, prompt_tokens: int, reply_tokens: int) -> float:
        """The price of one decision."""
        return (prompt_tokens * self.prompt + reply_tokens * self.reply) / 1_000_000


@dataclass(frozen=True)
class Rung:
    """One model of the ladder, ready to be asked."""

    name: str
    policy: Policy
    prompts: PromptSettings
    counter: TokenCounter
    tools: tuple[ToolSpec, ...]
    """The tools that it is told about. The last rung has no `escalate`."""
    model: Mapping[str, Any] = field(default_factory=dict)
    """Facts about the model that the stream records."""
    reply_tokens: int = 0
    """Most tokens of a reply."""
    price: Price = field(default_factory=Price)

    @property
    def highest_price(self) -> float:
        """The most that one decision can cost."""
        return self.price.of(self.prompts.limit, self.reply_tokens)


class Ladder(Protocol):
    """The rungs that the user named, first to last. Opens each one when it is first needed."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rungs."""
        ...

    @property
    def meter(self) -> Meter:
        """Counts what all agents of the run ask above their first rung."""
        ...

    async def open(self, name: str) -> Rung:
        """Open a rung. Raises `RemoraError` if its model cannot be used."""
        ...


class Meter:
    """Limits the number and the price of the decisions that a run asks of larger models."""

    def __init__(self, max_decisions: int | None = None, max_price: float | None = None) -> None:
        self.decisions = 0
        self.price = 0.0
        """Spent and reserved, by the prices of the rungs."""
        self._max_decisions = max_decisions
        self._max_price = max_price

    def problem(self, price: float) -> tuple[str, str] | None:
        """The limit that one more decision of at most `price` would exceed, and a sentence about it."""
        if self._max_decisions is not None and self.decisions >= self._max_decisions:
            return "max_run_decisions", f"the run has used its {self._max_decisions} decisions of larger models"
        if self._max_price is not None and self.price + price > self._max_price:
            left = max(0.0, self._max_price - self.price)
            return "max_price", f"the next decision may cost {price:.4g}, and {left:.4g} of {self._max_price:g} is left"
        return None

    def reserve(self, price: float) -> None:
        """Count a decision that is about to be asked for, at its highest price."""
        self.decisions += 1
        self.price += price

    def settle(self, reserved: float, price: float) -> None:
        """Replace the reserved price by the real one."""
        self.price += price - reserved

    def add_past(self, events: list[Event], prices: Mapping[str, Price], first: str) -> None:
        """Count the decisions of an earlier part of the run."""
        asked: ModelRequestEvent | None = None
        for event in events:
            if isinstance(event, ModelRequestEvent):
                asked = event if event.rung and event.rung != first else None
            elif isinstance(event, ModelResponseEvent) and asked is not None:
                self.decisions += 1
                self.price += prices.get(asked.rung, Price()).of(*tokens_used(asked, event.usage))
                asked = None


def tokens_used(asked: ModelRequestEvent, usage: Mapping[str, Any]) -> tuple[int, int]:
    """Prompt and reply tokens of a decision: the server's own numbers, else our count of the prompt."""
    return tokens_in(usage, "prompt_tokens") or asked.tokens.get("total", 0), tokens_in(usage, "completion_tokens")
