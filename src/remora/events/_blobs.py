"""Which blobs an event names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from remora.events._types import (
    AcceptUndoneEvent,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    ToolResultEvent,
    UserInputEvent,
    WorkspaceAcceptedEvent,
)


def blobs_of(event: Event) -> Iterator[str]:
    """Digests of the blobs that the event refers to. A reference inside `raw` is a tool's words, and none of ours."""
    if isinstance(event, ToolResultEvent):
        if event.raw_ref is not None:
            yield event.raw_ref.blob
        for attachment in event.attachments:
            yield from _reference(attachment.get("ref"))
    if isinstance(event, ModelResponseEvent | UserInputEvent) and event.text_ref is not None:
        yield event.text_ref.blob
    if isinstance(event, ModelRequestEvent):
        for message in event.messages:
            yield from _reference(message.get("content_ref"))
    if isinstance(event, ToolResultEvent | WorkspaceAcceptedEvent | AcceptUndoneEvent):
        for change in event.files:
            yield from (digest for digest in (change.before, change.after) if digest is not None)


def _reference(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(value.get("blob"), str):
        yield value["blob"]
