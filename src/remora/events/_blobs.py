"""The blobs that an event references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

MAX_BLOB = 64 * 1024 * 1024
"""Bytes of one blob that are held in memory, unless the reader sets another limit: the limit of a workspace's file."""

_FILES = ("tool_result", "workspace_accepted", "accept_undone")
_TEXTS = ("model_response", "user_input")


class Reference(NamedTuple):
    """A reference to a blob."""

    digest: str
    size: int | None = None
    """Uncompressed bytes, as the event says; None if it does not, such as for a file's content."""
    ours: bool = True
    """Whether Remora wrote the reference. False inside a model's words, which can name anything."""


def references_of(kind: str, data: Any) -> Iterator[Reference]:
    """The blobs that a parsed record of type `kind` references in its `data`. Values of the wrong type are ignored.

    A reference inside `raw` comes from a tool, and does not count.
    """
    if not isinstance(data, dict):
        return
    if kind == "tool_result":
        yield from _reference(data.get("raw_ref"))
        for attachment in _objects(data.get("attachments")):
            yield from _reference(attachment.get("ref"))
    if kind in _TEXTS:
        yield from _reference(data.get("text_ref"))
    if kind == "model_request":
        for message in _objects(data.get("messages")):
            yield from _reference(message.get("content_ref"))
    if kind in _FILES:
        for change in _objects(data.get("files")):
            found = (change.get("before"), change.get("after"))
            yield from (Reference(digest) for digest in found if isinstance(digest, str))
    if kind in ("tool_call", "model_response"):
        yield from _arguments(data)


def _arguments(data: dict[str, Any]) -> Iterator[Reference]:
    """Arguments that were too large for an event. A model could write the same words, so they are not `ours`."""
    for call in (data, *_objects(data.get("calls"))):
        args = call.get("args")
        if isinstance(args, dict) and args.keys() == {"too_large", "blob"} and isinstance(args["blob"], str):
            yield Reference(args["blob"], ours=False)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))


def _reference(value: Any) -> Iterator[Reference]:
    if isinstance(value, dict) and isinstance(value.get("blob"), str):
        size = value.get("size")
        yield Reference(value["blob"], size if type(size) is int and size >= 0 else None)
