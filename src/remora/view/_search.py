"""Searches one stream for words: its lines, and the blobs of its results."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from remora.app import Viewing, outputs_of
from remora.context.text import one_line
from remora.errors import TraceError
from remora.events import BlobRef, Event, decode, readable
from remora.trace import Outline, read_lines
from remora.view._cards import LEAD
from remora.view._words import clean

MAX_HITS = 100
AROUND = 80


@dataclass(frozen=True)
class FoundText:
    """An event that contains the words."""

    seq: int
    turn: int
    type: str
    excerpt: str
    part: int
    at: int
    """Where in its output; -1 if it is elsewhere."""


def search_agent(viewing: Viewing, outline: Outline, words: str) -> list[FoundText]:
    """The first events of a stream that contain `words`, whatever their case."""
    needle = orjson.dumps(words.lower())[1:-1]
    found: list[FoundText] = []
    for line in read_lines(outline.path, end=outline.here.offset):
        if len(found) >= MAX_HITS:
            break
        if needle in line.lower() or b'_ref":{' in line or b'"ref":{' in line:
            event = decode(line.rstrip(b"\n"))
            if event.type != "model_request" and (hit := _hit(viewing, event, words)):
                found.append(hit)
    return found


def _hit(viewing: Viewing, event: Event, words: str) -> FoundText | None:
    for part, (_, value) in enumerate(outputs_of(event)):
        try:
            at = viewing.find(event, part, words, 0)
        except TraceError:
            at = None  # pruned or damaged: nothing can be found in it
        if at is not None:
            window = viewing.output(event, part, max(at - LEAD, 0), min(LEAD, at) + 2 * AROUND + len(words.encode()))
            return FoundText(event.seq, event.turn, event.type, excerpt(clean(window.text), words), part, at)
        if isinstance(value, BlobRef):
            continue
    text = clean(readable(event.body()))
    if words.lower() not in text.lower():
        return None
    return FoundText(event.seq, event.turn, event.type, excerpt(text, words), 0, -1)


def excerpt(text: str, words: str) -> str:
    """One line around the last place of the words in a text that is already clean."""
    place = max(text.lower().rfind(words.lower()), 0)
    return one_line(text[max(place - AROUND, 0) :], 240)
