"""Our memory, driven by recorded steps: the pure fold and the account, without streams and disk."""

from __future__ import annotations

from benchmarks.evidence.data import UserMessage
from benchmarks.evidence.rows import Count
from remora.analysis import AssistantTurn
from remora.context.evidence import (
    Entry,
    Evidence,
    agent_said,
    called,
    person_said,
    read_output,
    remember,
    words_of,
    write_account,
)


class Ours:
    """Evidence, as an account in the order of time."""

    def __init__(self, goal: str, count: Count) -> None:
        self._goal = goal
        self._words = words_of(goal)
        self._count = count
        self.evidence = Evidence()
        self._seq = 0

    def take(self, step: UserMessage | AssistantTurn) -> None:
        if isinstance(step, UserMessage):
            self._add(person_said(self._next(), step.text))
            return
        words = step.text
        for call in step.calls if step.by_text else ():
            words = words.replace(f"```\n{str(call.args.get('command', '')).strip()}\n```", "").strip()
        if words:
            self._add(agent_said(self._next(), words))
        for index, call in enumerate(step.calls):
            reading = read_output(step.results.get(index, ""), self._words, call.args)
            self._add(called(self._next(), call.tool, call.args, reading))

    def show(self, budget: int) -> str:
        return write_account(self._goal, self.evidence, budget, self._count).text

    def _add(self, entry: Entry) -> None:
        self.evidence = remember(self.evidence, entry, self._words)

    def _next(self) -> int:
        self._seq += 1
        return self._seq
