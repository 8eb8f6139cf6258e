"""Renders the prompt of a draft: a text in plain words, written about the packet's excerpts.

Instructions and examples come first and are byte-identical in every prompt, so that a server reads them once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from remora.context.candidates import by_rules
from remora.context.evidence import MESSAGE_OVERHEAD, Message
from remora.context.models import FOR_DRAFTS, DecisionPacket
from remora.context.render import Rendered
from remora.context.text import one_line
from remora.subagent import DraftRule

RENDERER = "draft-1"
LEAST_LINES = 3
"""A prompt that would show fewer lines of its first excerpt is not made."""


def choose_rule(rules: Sequence[DraftRule], packet: DecisionPacket, offered: Sequence[str]) -> DraftRule | None:
    """The first rule that matches the packet's knowledge and whose tool is offered."""
    known = {name: entry.value for name, entry in packet.knowledge.items()}
    return next((rule for rule in rules if rule.tool in offered and by_rules([rule], known)), None)


def other_arguments(rule: DraftRule, packet: DecisionPacket) -> dict[str, Any]:
    """The arguments of the call that the model does not write, with knowledge filled in."""
    known = {name: entry.value for name, entry in packet.knowledge.items()}
    return dict(by_rules([rule], known)[0].args)


def render_draft(packet: DecisionPacket, rule: DraftRule, limit: int, count: Callable[[str], int]) -> Rendered | None:
    """The prompt for a draft, at most `limit` tokens; None if it cannot show enough of an excerpt.

    Later excerpts are left out first, then the last lines of the first one.
    """
    examples: list[Message] = []
    for example in rule.examples:
        examples += [_user(example.shown), {"role": "assistant", "content": example.written.strip()}]
    system = rule.system_prompt.strip()
    texts = [system, *(str(message["content"]) for message in examples)]
    fixed = sum(count(text) + MESSAGE_OVERHEAD for text in texts) + 2 * MESSAGE_OVERHEAD
    excerpts = [(one.label, one.text.split("\n")) for one in packet.excerpts if _is_shown(one.label, rule)]
    every = sum(len(lines) for _, lines in excerpts)
    while excerpts:
        shown = _text(packet, excerpts)
        if (total := fixed + count(shown)) <= limit:
            left = every - sum(len(lines) for _, lines in excerpts)
            tokens = {"system": fixed, "excerpts": total - fixed, "total": total}
            return Rendered(system, (*examples, _user(shown)), tokens, {"excerpt lines": left} if left else {})
        if len(excerpts) > 1:
            excerpts.pop()
            continue
        label, lines = excerpts[0]
        fewer = min(len(lines) - 1, len(lines) * max(0, limit - fixed) // max(1, total - fixed))
        if fewer < LEAST_LINES:
            return None
        excerpts = [(label, lines[:fewer])]
    return None


def _is_shown(label: str, rule: DraftRule) -> bool:
    return not rule.excerpts or label in rule.excerpts


def _text(packet: DecisionPacket, excerpts: Sequence[tuple[str, Sequence[str]]]) -> str:
    parts = []
    for place, (label, lines) in enumerate(excerpts):
        of = f" of {one_line(packet.node_id)}" if place == 0 and packet.node_id else ""
        parts.append("\n".join([f"{one_line(label.removeprefix(FOR_DRAFTS)).capitalize()}{of}:", *lines]))
    return "\n\n".join(parts)


def _user(text: str) -> Message:
    return {"role": "user", "content": text.strip()}
