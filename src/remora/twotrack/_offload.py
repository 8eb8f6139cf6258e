"""Blob offload: large texts, arguments and prompts leave their event, which keeps a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from remora.context.contracts import ToolSpec
from remora.context.secrets import Secrets
from remora.events import BlobRef, Call, Event, canonical, from_record, json_value
from remora.ports import BlobStore

MAX_INLINE = 32 * 1024
"""Bytes of a text or of a call's arguments that a record holds inline; larger ones go to a blob."""
MAX_EARLIER = 1024
"""Bytes of an earlier chat message that a receipt holds inline: each is sent again in every later turn."""


class Offloader:
    """Moves the large parts of one agent's events into blobs and redacts secrets in all of them."""

    def __init__(self, blobs: BlobStore, secrets: Secrets) -> None:
        self._blobs = blobs
        self._secrets = secrets
        self._constant: tuple[str, BlobRef] | None = None

    def redact(self, draft: Event) -> Event:
        """Redact every registered secret in the event."""
        if not self._secrets:
            return draft
        record = json_value(draft)
        safe = self._secrets.redact(record["data"])
        return from_record(record | {"data": safe.value}) if safe.count else draft

    async def text(self, text: str) -> dict[str, Any]:
        """The fields of an event for `text`: the whole text, or its beginning and a reference to all of it."""
        data = self._secrets.clean(text).encode(errors="backslashreplace")
        if len(data) <= MAX_INLINE:
            return {"text": data.decode()}
        return {"text": data[: MAX_INLINE // 8].decode(errors="ignore"), "text_ref": await self._reference(data)}

    async def call(self, call: Call) -> Call:
        """The call as an event holds it.

        Arguments too large for a record are replaced by their size and blob; those that JSON cannot represent, such as
        a lone surrogate, by a text.
        """
        try:
            data = canonical(call.args)
        except (TypeError, ValueError, RecursionError):
            return call.model_copy(update={"args": {"not_json": self._secrets.clean(_described(call.args))}})
        if len(data) <= MAX_INLINE:
            return call
        blob = await self._blobs.put(self._secrets.clean(data))
        return call.model_copy(update={"args": {"too_large": len(data), "blob": blob}})

    async def tools(self, tools: Sequence[ToolSpec]) -> dict[str, Any]:
        """The fields of a receipt for the schemas of its tools: inline, or a reference."""
        specs = tuple(tool.model_dump() for tool in tools)
        data = canonical(specs)
        if len(data) <= MAX_INLINE:
            return {"tools": specs}
        blob = await self._blobs.put(self._secrets.clean(data))
        return {"tools_ref": BlobRef(blob=blob, size=len(data), encoding="json")}

    async def messages(self, messages: Sequence[Mapping[str, Any]], *, bounded: bool) -> tuple[dict[str, Any], ...]:
        """The messages of a receipt: the constant first one by reference, the newest one inline.

        With `bounded`, the others are inline too: they are a packet, not a history that grows.
        """
        first, *earlier, last = messages
        return (
            {"role": first["role"], "content_ref": (await self._constant_reference(first["content"])).model_dump()},
            *[dict(message) if bounded else await self._earlier(message) for message in earlier],
            dict(last),
        )

    async def _constant_reference(self, text: str) -> BlobRef:
        """The reference to a text that is the same in every turn. It is written once."""
        if self._constant is None or self._constant[0] != text:
            self._constant = (text, await self._reference(text.encode()))
        return self._constant[1]

    async def _earlier(self, message: Mapping[str, Any]) -> dict[str, Any]:
        data = str(message.get("content") or "").encode(errors="backslashreplace")
        if len(data) <= MAX_EARLIER:
            return dict(message)
        return {**message, "content": None, "content_ref": (await self._reference(data)).model_dump()}

    async def _reference(self, data: bytes) -> BlobRef:
        return BlobRef(blob=await self._blobs.put(data), size=len(data), encoding="utf-8")


def _described(args: Mapping[str, Any]) -> str:
    """Arguments that JSON cannot represent, as a text of bounded size."""
    try:
        text = repr(args)
    except Exception as error:  # noqa: BLE001 - foreign code: a value's `repr` may raise anything
        text = f"<arguments without a text: {type(error).__name__}>"
    return text[: MAX_INLINE // 8].encode(errors="backslashreplace").decode()
