"""Texts that a model writes for an argument of a call, and the order in which they are tried."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from remora.context.cut import CUT
from remora.errors import ReplyInvalid
from remora.events import Call
from remora.inference._stream import Reply
from remora.ports import Decision, Drafting, Prompt

ENDINGS = ("ing", "ed", "es", "s", "e")
"""Endings that are ignored where words are compared."""
SMALL = ("all", "and", "any", "are", "each", "for", "from", "into", "its", "that", "the", "this", "which", "with")
"""Words that say nothing by themselves."""


def draft_request(drafting: Drafting, place: int) -> dict[str, Any]:
    """The request fields of one draft: the first is the likeliest text, the others are drawn."""
    heat = drafting.temperature if place else 0.0
    return {"temperature": heat, "seed": place, "max_tokens": drafting.max_tokens}


def decide_drafts(prompt: Prompt, drafting: Drafting, replies: Sequence[Reply]) -> Decision:
    """The calls with these texts, the best first. Raises `ReplyInvalid` if no text is whole."""
    whole = {reply.text.strip(): None for reply in replies if reply.finish != CUT and reply.text.strip()}
    first = replies[0]
    if not whole:
        raise ReplyInvalid(f"No draft ended within {drafting.max_tokens} tokens", **first.fields())
    calls = tuple(
        Call(call_id=f"call-{prompt.turn}-{place}", tool=drafting.tool, args={**drafting.args, drafting.argument: text})
        for place, text in enumerate(ranked(list(whole), prompt.text))
    )
    drafts = tuple(_record(drafting, place, reply) for place, reply in enumerate(replies))
    return Decision(calls, drafts=drafts, **first.fields())


def ranked(texts: Sequence[str], shown: str) -> list[str]:
    """The likeliest text first, then the others by how many of their words other drafts or the shown text have.

    Words that neither has count against a text: they are the model's own idea. Of equal texts, the earlier is first.
    """
    words = [_words(text) for text in texts]
    known = _words(shown)

    def support(place: int) -> float:
        others = [said for other, said in enumerate(words) if other != place]
        return sum(_support(word, others, known) for word in words[place])

    order = sorted(range(1, len(texts)), key=lambda place: (-support(place), place))
    return [*texts[:1], *(texts[place] for place in order)]


def _support(word: str, others: Sequence[set[str]], known: set[str]) -> float:
    agreed = sum(word in said for said in others) / len(others) if others else 0.0
    return agreed + 0.5 if word in known else agreed - 0.5


def _words(text: str) -> set[str]:
    """The words of a text and of the names in it, without common endings."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return {_stem(word) for word in re.findall(r"[^\W\d_]{3,}", spaced.lower()) if word not in SMALL}


def _stem(word: str) -> str:
    ending = next((end for end in ENDINGS if word.endswith(end) and len(word) - len(end) >= 3), "")
    return word.removesuffix(ending)


def _record(drafting: Drafting, place: int, reply: Reply) -> Mapping[str, Any]:
    asked = draft_request(drafting, place)
    usage = {"usage": dict(reply.usage)} if reply.usage else {}
    return {
        "text": reply.text, "seed": asked["seed"], "temperature": asked["temperature"], "finish": reply.finish, **usage
    }  # fmt: skip
