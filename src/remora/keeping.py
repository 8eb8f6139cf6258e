"""Whose events they are, and how they hold what is large: each text, argument or prompt whole, or as a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remora.context.secrets import Secrets
from remora.events import BlobRef, Call, Event, canonical, from_record, json_value
from remora.ports import BlobStore

MAX_INLINE = 32 * 1024
"""Bytes of a text or of a call's arguments that a record holds itself; larger ones lie in a blob."""
MAX_SAID = 1024
"""Bytes of an earlier chat message that a receipt holds itself: each is sent again in every later turn."""


@dataclass(frozen=True)
class Identity:
    """Whose stream it is: the part of every record's envelope that never changes."""

    agent_id: str
    run_id: str = ""
    operation: str = ""
    node_id: str = ""

    @property
    def stream_id(self) -> str:
        return f"traces/{self.agent_id}"

    def fields(self) -> dict[str, str]:
        return {
            "agent_id": self.agent_id,
            "run_id": self.run_id,
            "operation": self.operation,
            "node_id": self.node_id,
        }


class Keeper:
    """Puts the large parts of one agent's events into blobs, and keeps secrets out of all of them."""

    def __init__(self, blobs: BlobStore, secrets: Secrets) -> None:
        self._blobs = blobs
        self._secrets = secrets
        self._constant: tuple[str, BlobRef] | None = None

    def cleaned(self, draft: Event) -> Event:
        """The event without registered secrets, wherever in it they stood."""
        if not self._secrets:
            return draft
        record = json_value(draft)
        safe = self._secrets.redact(record["data"])
        return from_record(record | {"data": safe.value}) if safe.count else draft

    async def text(self, text: str) -> dict[str, Any]:
        """A text as an event holds it: whole, or its beginning and a reference to all of it."""
        data = self._secrets.clean(text).encode(errors="backslashreplace")
        if len(data) <= MAX_INLINE:
            return {"text": data.decode()}
        return {"text": data[: MAX_INLINE // 8].decode(errors="ignore"), "text_ref": await self._reference(data)}

    async def call(self, call: Call) -> Call:
        """The call as an event holds it: arguments that are too large for one are named, and lie in a blob."""
        data = canonical(call.args)
        if len(data) <= MAX_INLINE:
            return call
        blob = await self._blobs.put(self._secrets.clean(data))
        return call.model_copy(update={"args": {"too_large": len(data), "blob": blob}})

    async def messages(self, messages: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
        """A prompt as a receipt holds it: the constant first message by reference, the newest one as it is."""
        first, *said, last = messages
        return (
            {"role": first["role"], "content_ref": (await self._kept(first["content"])).model_dump()},
            *[await self._said(message) for message in said],
            dict(last),
        )

    async def _kept(self, text: str) -> BlobRef:
        """The reference to a text that is the same in every turn, so that it is written once."""
        if self._constant is None or self._constant[0] != text:
            self._constant = (text, await self._reference(text.encode()))
        return self._constant[1]

    async def _said(self, message: Mapping[str, Any]) -> dict[str, Any]:
        data = str(message.get("content") or "").encode(errors="backslashreplace")
        if len(data) <= MAX_SAID:
            return dict(message)
        return {**message, "content": None, "content_ref": (await self._reference(data)).model_dump()}

    async def _reference(self, data: bytes) -> BlobRef:
        return BlobRef(blob=await self._blobs.put(data), size=len(data), encoding="utf-8")
