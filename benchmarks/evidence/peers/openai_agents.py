"""OpenAI Agents' `ToolOutputTrimmer`, which knows characters and turns, and no token limit."""

from __future__ import annotations

from agents.extensions import ToolOutputTrimmer
from agents.run_config import CallModelData, ModelInputData

SETTINGS = ((2, 500, 200), (1, 500, 200), (1, 200, 100), (1, 100, 50), (1, 1, 0))
"""`recent_turns`, `max_output_chars`, `preview_chars`: the default first, then less and less."""


def text_of(item) -> str:
    match item.get("type"):
        case "function_call":
            return f"{item['name']}({item['arguments']})"
        case "function_call_output":
            return item["output"]
        case _:
            return item["content"]


def to_items(message):
    if message["role"] == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}]
    said = [{"role": message["role"], "content": message["content"]}] if message["content"] else []
    return said + [
        {"type": "function_call", "call_id": call["id"], **call["function"]} for call in message.get("tool_calls") or ()
    ]


class Trimmed:
    """The mildest of some settings with which everything fits, else the strictest."""

    settings = SETTINGS

    def __init__(self, goal, count):
        self._count = count
        self._items = [{"role": "user", "content": goal}]

    def take(self, messages):
        self._items += [item for message in messages for item in to_items(message)]

    def show(self, budget):
        for turns, most, preview in self.settings:
            trimmer = ToolOutputTrimmer(recent_turns=turns, max_output_chars=most, preview_chars=preview)
            data = ModelInputData(input=list(self._items), instructions=None)
            texts = list(map(text_of, trimmer(CallModelData(data, None, None)).input))
            if sum(map(self._count, texts)) <= budget:
                break
        return texts


MEMORIES = {"OpenAI Agents ToolOutputTrimmer": Trimmed}
