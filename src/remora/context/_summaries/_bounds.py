"""The size limit of deltas. Values that do not fit stay in the stream, and a diagnostic names them."""

from __future__ import annotations

from remora.context.text import one_line
from remora.events import KnowledgeDelta, PacketDelta, canonical

MAX_DELTA_BYTES = 64 * 1024
WORTH_A_HANDLE = 1024
"""A value of at least this many bytes is replaced by a handle instead of being dropped."""
MAX_NOTES = 8

_ROOM = 4 * 1024
"""Bytes reserved for the notes."""


def bounded(delta: PacketDelta) -> tuple[PacketDelta, bytes]:
    """The delta and its encoding, without the knowledge that does not fit into `MAX_DELTA_BYTES`.

    Drops the largest values first. A handle, `{"recall": KEY, "bytes": …}`, replaces a large value, so that the tool
    `recall` can find it. A delta that is too large even without knowledge is returned unchanged.
    """
    encoded = canonical(delta)
    if len(encoded) <= MAX_DELTA_BYTES:
        return delta, encoded
    smaller = _drop_knowledge(delta)
    return smaller, encoded if smaller is delta else canonical(smaller)


def _drop_knowledge(delta: PacketDelta) -> PacketDelta:
    rest = len(canonical(delta.model_copy(update={"knowledge": {}})))
    if rest > MAX_DELTA_BYTES - _ROOM:
        return delta
    sizes = {key: len(canonical({key: item})) for key, item in delta.knowledge.items()}
    total, known, dropped = rest + sum(sizes.values()), dict(delta.knowledge), []
    for key in sorted(sizes, key=lambda each: -sizes[each]):
        if total <= MAX_DELTA_BYTES - _ROOM:
            break
        total -= sizes[key]
        item = known.pop(key)
        dropped.append(key)
        if sizes[key] >= WORTH_A_HANDLE:
            handle = KnowledgeDelta(value={"recall": key, "bytes": sizes[key]}, supersedes=item.supersedes)
            total += len(canonical({key: handle}))
            known[key] = handle
    in_order = {key: known[key] for key in delta.knowledge if key in known}
    return delta.model_copy(update={"knowledge": in_order, "diagnostics": (*delta.diagnostics, *_notes(dropped))})


def _notes(dropped: list[str]) -> list[str]:
    notes = [
        f"{one_line(key, 80)} is too large for the packet; its value is in the stream" for key in dropped[:MAX_NOTES]
    ]
    more = len(dropped) - MAX_NOTES
    return [*notes, f"{more} more values are too many for the packet; they are in the stream"] if more > 0 else notes
