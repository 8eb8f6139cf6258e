"""Policies without a model: for tests, baselines, and a first run without weights."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from remora.errors import DecisionError
from remora.events import Call
from remora.ports import Decision, Prompt
from remora.subagent import FOLLOW_CANDIDATES, SUBMIT_RESULT_TOOL


class ScriptedPolicy:
    """Plays a script: each step is a tool to call, or `candidates`, which takes the first one while there is one."""

    name = "scripted"

    def __init__(self, script: Sequence[str]) -> None:
        self._steps = list(script)

    async def decide(self, prompt: Prompt) -> Decision:
        """The script's next call. Raises `DecisionError` at the end of the script."""
        while self._steps:
            if self._steps[0] == FOLLOW_CANDIDATES:
                working = [action for action in prompt.candidates if action.tool != SUBMIT_RESULT_TOOL]
                if working:
                    return _choose(prompt, working[0].tool, working[0].args)
                self._steps.pop(0)
            else:
                tool = self._steps.pop(0)
                return _choose(prompt, tool, _closing_args(prompt) if tool == SUBMIT_RESULT_TOOL else {})
        raise DecisionError("The script ended without `submit_result`")


class FirstCandidatePolicy:
    """Takes the first candidate, and submits when there is none."""

    name = "first-candidate"

    async def decide(self, prompt: Prompt) -> Decision:
        """The first candidate's call."""
        for action in prompt.candidates:
            return _choose(prompt, action.tool, action.args)
        return _choose(prompt, SUBMIT_RESULT_TOOL, _closing_args(prompt))


class RandomPolicy:
    """Takes a random candidate, reproducible by seed, and submits when there is none."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose

    async def decide(self, prompt: Prompt) -> Decision:
        """A random candidate's call."""
        if not prompt.candidates:
            return _choose(prompt, SUBMIT_RESULT_TOOL, _closing_args(prompt))
        action = self._random.choice(prompt.candidates)
        return _choose(prompt, action.tool, action.args)


def _choose(prompt: Prompt, tool: str, args: Mapping[str, Any]) -> Decision:
    return Decision(calls=(Call(call_id=f"call-{prompt.turn}", tool=tool, args=dict(args)),), finish="tool_calls")


def _closing_args(prompt: Prompt) -> dict[str, Any]:
    offered = [action.args for action in prompt.candidates if action.tool == SUBMIT_RESULT_TOOL]
    return dict(offered[0]) if offered else {"summary": "Nothing more to do"}
