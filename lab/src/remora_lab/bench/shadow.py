"""Runs the oracle beside a policy and compares their calls turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from remora.errors import DecisionError
from remora.events import Call
from remora.ports import Decision, Policy, Prompt
from remora_lab.bench.results import Choice
from remora_lab.bench.unfamiliar import Renaming


class TaskOracle(Protocol):
    """Knows the task: decides rightly, and names every call that would be right."""

    @property
    def name(self) -> str: ...

    async def decide(self, prompt: Prompt) -> Decision:
        """A right call."""
        ...

    def choices(self, prompt: Prompt) -> tuple[Call, ...]:
        """All right calls at this point; none where it cannot say."""
        ...

    def asked(self, calls: Sequence[Call]) -> None:
        """Whoever decides has asked for these calls."""
        ...


@dataclass(frozen=True)
class TurnComparison:
    """One turn: what was called, and what the oracle would have called."""

    turn: int
    call: Choice | None
    choices: tuple[Choice, ...]

    @property
    def right_tool(self) -> bool:
        return self.call is not None and self.call.tool in {choice.tool for choice in self.choices}

    @property
    def right_call(self) -> bool:
        return self.call is not None and is_among(self.call, self.choices)


class Shadowed:
    """Decides as `policy` does, and keeps what the oracle would have called."""

    def __init__(self, policy: Policy, oracle: TaskOracle, names: Renaming | None = None) -> None:
        self._policy = policy
        self._oracle = oracle
        self._names = names
        self.turns: list[TurnComparison] = []
        self.error: DecisionError | None = None
        """Why there was no decision, if the last one failed."""

    @property
    def name(self) -> str:
        return self._policy.name

    async def decide(self, prompt: Prompt) -> Decision:
        """What the policy decides. Raises `DecisionError`."""
        asked = self._names.prompt(prompt) if self._names else prompt
        choices = [self._names.call(call) if self._names else call for call in self._oracle.choices(asked)]
        decided: Decision | None = None
        self.error = None
        try:
            decided = await self._policy.decide(prompt)
            self._oracle.asked(self._names.calls_back(decided.calls) if self._names else decided.calls)
            return decided
        except DecisionError as error:
            self.error = error
            raise
        finally:
            first = decided.calls[0] if decided and decided.calls else None
            if choices:
                self.turns.append(
                    TurnComparison(prompt.turn, plain(first) if first else None, tuple(map(plain, choices)))
                )


def plain(call: Call) -> Choice:
    """The call without its number."""
    return Choice(tool=call.tool, args=call.args)


def is_among(call: Choice, choices: Sequence[Choice]) -> bool:
    """Whether the call is one of these. Texts in words may differ: there are many ways to say the same."""
    return any(call.tool == choice.tool and _same(call.args, choice.args) for choice in choices)


def _same(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    fixed = {name: value for name, value in wanted.items() if not _is_wording(value)}
    return all(name in given and given[name] == value for name, value in fixed.items())


def _is_wording(value: Any) -> bool:
    return isinstance(value, str) and len(value.split()) > 1
