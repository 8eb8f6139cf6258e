"""Rendering: the packet as messages for a model, within the budget, with a receipt of what was shown.

Constant parts come first and are the same bytes in every turn, so that a server can reuse its prefix cache: the system
message holds the agent's text and its tools; the user message holds the packet as JSON, newest parts last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from remora.context.budget import fit
from remora.context.contracts import ToolSpec
from remora.context.models import DecisionPacket
from remora.ports import TokenCounter

RENDERER = "json-1"

MESSAGE_OVERHEAD = 8
"""Tokens that a chat template adds around each message, generously."""

_ANSWER = 'Answer with one JSON object and nothing else: {"tool": NAME, "args": {…}}'


@dataclass(frozen=True)
class Rendered:
    """A prompt within its limit, and where its tokens went."""

    system: str
    user: str
    tokens: dict[str, int]
    """By field, and `total`."""
    left_out: dict[str, int]

    @property
    def messages(self) -> tuple[dict[str, str], ...]:
        return ({"role": "system", "content": self.system}, {"role": "user", "content": self.user})


def render(
    packet: DecisionPacket, *, system_prompt: str, tools: Sequence[ToolSpec], limit: int, counter: TokenCounter
) -> Rendered:
    """The prompt for this packet, at most `limit` tokens by `counter`. Raises `BudgetError` if that cannot be."""
    system = system_text(system_prompt, tools)
    fixed = fixed_tokens(system, counter)
    fitted = fit(packet, lambda sections: fixed + counter.count(_json(sections)), limit, counter.count)
    user = _json(fitted.sections)
    tokens = {name: counter.count(_json({name: part})) for name, part in fitted.sections.items()}
    total = fixed + counter.count(user)
    return Rendered(system, user, {"system": fixed, **tokens, "total": total}, fitted.left_out)


def fixed_tokens(system: str, counter: TokenCounter) -> int:
    """What every prompt of a run takes beside its packet."""
    return counter.count(system) + 2 * MESSAGE_OVERHEAD


def system_text(system_prompt: str, tools: Sequence[ToolSpec]) -> str:
    """The part that never changes during a run."""
    lines = [_json({"name": tool.name, "description": tool.description, "args": _args(tool)}) for tool in tools]
    return "\n".join([system_prompt.strip(), "", "Tools:", *lines, "", _ANSWER])


def _args(tool: ToolSpec) -> dict[str, Any]:
    properties = tool.parameters.get("properties", {})
    return {name: {key: item for key, item in schema.items() if key != "title"} for name, schema in properties.items()}


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
