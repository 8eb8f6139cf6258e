"""Strands' sliding window. When a prompt is too long, it truncates outputs and drops messages until it fits.

The model's refusal is played here: a prompt over the budget raises the overflow that a model's server would.
"""

from __future__ import annotations

import json
from copy import deepcopy
from types import SimpleNamespace

from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.types.exceptions import ContextWindowOverflowException


def text_of(message) -> str:
    parts = []
    for block in message["content"]:
        if "toolUse" in block:
            parts.append(f"{block['toolUse']['name']}({json.dumps(block['toolUse']['input'])})")
        elif "toolResult" in block:
            parts += [item["text"] for item in block["toolResult"]["content"]]
        else:
            parts.append(block["text"])
    return "\n".join(parts)


def to_strands(message):
    if message["role"] == "tool":
        result = {"toolUseId": message["tool_call_id"], "status": "success", "content": [{"text": message["content"]}]}
        return {"role": "user", "content": [{"toolResult": result}]}
    content = [{"text": message["content"]}] if message["content"] else []
    content += [
        {
            "toolUse": {
                "toolUseId": call["id"],
                "name": call["function"]["name"],
                "input": json.loads(call["function"]["arguments"]),
            }
        }
        for call in message.get("tool_calls") or ()
    ]
    return {"role": message["role"], "content": content}


class SlidingWindow:
    """The task pinned, the default window of 40 messages, and overflow recovery. Each budget is a run of its own."""

    def __init__(self, goal, count):
        self._count = count
        self._goal = goal
        self._history = []
        self._runs = {}

    def take(self, messages):
        new = [to_strands(message) for message in messages]
        self._history += new
        for agent, _ in self._runs.values():
            agent.messages.extend(deepcopy(new))

    def show(self, budget):
        if budget not in self._runs:
            task = {"role": "user", "content": [{"text": self._goal}]}
            agent = SimpleNamespace(messages=[task, *deepcopy(self._history)])
            self._runs[budget] = (agent, SlidingWindowConversationManager(pin_first=1, per_turn=True))
        agent, manager = self._runs[budget]
        manager.apply_management(agent)
        while sum(self._count(text_of(message)) for message in agent.messages) > budget:
            try:
                manager.reduce_context(agent, e=ContextWindowOverflowException("too long"))
            except ContextWindowOverflowException:
                break
        return [text_of(message) for message in agent.messages]


MEMORIES = {"Strands sliding window": SlidingWindow}
