"""Rendering: the packet as messages for a model, within the budget, with a receipt of what was shown.

Constant parts come first and are the same bytes in every turn, so that a server can reuse its prefix cache: the system
message holds the agent's text and its tools; the user message holds the packet as JSON, newest parts last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import orjson

from remora.context.budget import fit
from remora.context.contracts import ToolSpec
from remora.context.models import DecisionPacket
from remora.context.text import one_line
from remora.ports import TokenCounter

Style = Literal["json", "markdown"]
Calling = Literal["text", "native"]
"""How a model is to call: by JSON in its answer, tools listed in the prompt; or by its server's tool calling."""
RENDERERS: dict[Style, str] = {"json": "json-3", "markdown": "markdown-3"}
"""The version of each style, as receipts name it."""

MESSAGE_OVERHEAD = 8
"""Tokens that a chat template adds around each message, generously."""

WIDEST = 32
"""Characters a token, beyond which a text is over its limit without being counted: megabytes would take seconds."""
WIDE = 5
"""Characters a token that few texts have: of a longer text, its beginning is counted first."""
SEAM = 16
"""Tokens by which a beginning may take more than the same characters within the whole."""

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
    packet: DecisionPacket,
    *,
    system_prompt: str,
    tools: Sequence[ToolSpec],
    limit: int,
    counter: TokenCounter,
    style: Style = "json",
    calling: Calling = "text",
) -> Rendered:
    """The prompt for this packet, at most `limit` tokens by `counter`. Raises `BudgetError` if that cannot be."""
    system = system_text(system_prompt, tools, calling)
    fixed = fixed_tokens(system, counter, tools if calling == "native" else ())
    text = _json if style == "json" else _markdown

    count = cache(counter.count)

    def measure(sections: dict[str, Any]) -> int:
        shown, room = text(sections), limit - fixed
        if len(shown) > limit * WIDEST or (len(shown) > room * WIDE and count(shown[: room * WIDE]) > room + SEAM):
            return limit + 1
        return fixed + count(shown)

    fitted = fit(packet, measure, limit, count)
    user = text(fitted.sections)
    tokens = {name: count(text({name: part})) for name, part in fitted.sections.items()}
    total = fixed + count(user)
    return Rendered(system, user, {"system": fixed, **tokens, "total": total}, fitted.left_out)


def fixed_tokens(system: str, counter: TokenCounter, sent_beside: Sequence[ToolSpec] = ()) -> int:
    """What every prompt of a run takes beside its packet, tools that are sent beside the messages included."""
    tools = counter.count(_json([tool.openai() for tool in sent_beside])) if sent_beside else 0
    return counter.count(system) + tools + 2 * MESSAGE_OVERHEAD


def system_text(system_prompt: str, tools: Sequence[ToolSpec], calling: Calling = "text") -> str:
    """The part that never changes during a run."""
    if calling == "native":
        return system_prompt.strip()
    lines = [_json({"name": tool.name, "description": tool.description, "args": _args(tool)}) for tool in tools]
    return "\n".join([system_prompt.strip(), "", "Tools:", *lines, "", _ANSWER])


def _args(tool: ToolSpec) -> dict[str, Any]:
    properties = tool.parameters.get("properties", {})
    return {name: {key: item for key, item in schema.items() if key != "title"} for name, schema in properties.items()}


def _markdown(sections: dict[str, Any]) -> str:
    """The sections under headings: lists as lists, excerpts as code, everything else as it would be in JSON."""
    return "\n".join(line for name, part in sections.items() for line in _section(name, part))


def _section(name: str, part: Any) -> Iterator[str]:
    title = name.replace("_", " ").capitalize()
    if name == "excerpts":
        for excerpt in part:
            fence = _fence(excerpt["text"])
            yield from (f"## {one_line(excerpt['label'])} from line {excerpt['start_line']}", fence)
            yield from (excerpt["text"], fence)
    elif isinstance(part, dict):
        yield from (f"## {title}", *(f"- {_plain(key)}: {_plain(value)}" for key, value in part.items()))
    elif isinstance(part, list):
        yield from (f"## {title}", *(f"- {_plain(item)}" for item in part))
    else:
        yield f"{title}: {_plain(part)}"


def _fence(text: str) -> str:
    """What no line of the text can be taken for."""
    return "`" * max(3, 1 + max((len(ticks) for ticks in re.findall("`+", text)), default=0))


def _plain(value: Any) -> str:
    """One line, whatever the value is: a text that would break it stands there as in JSON."""
    return value if isinstance(value, str) and value.isprintable() else _json(value)


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
