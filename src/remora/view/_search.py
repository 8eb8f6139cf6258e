"""Searches one stream for words: its lines, and the blobs of its results."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from remora.app import Viewing, outputs_of
from remora.context.text import one_line
from remora.errors import TraceError
from remora.events import BlobRef, Event, decode, readable
from remora.trace import Outline, read_lines

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
            window = viewing.output(event, part, max(at - AROUND, 0), 2 * AROUND + len(words.encode()))
            return FoundText(event.seq, event.turn, event.type, one_line(window.text, 240), part, at)
        if isinstance(value, BlobRef):
            continue
    text = readable(event.body())
    place = text.lower().find(words.lower())
    if place < 0:
        return None
    return FoundText(event.seq, event.turn, event.type, one_line(text[max(place - AROUND, 0) :], 240), 0, -1)
