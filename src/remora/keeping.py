"""How events hold what is large: texts, arguments and prompts, each whole or as a reference to all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from remora.context.secrets import Secrets
from remora.events import BlobRef, Call, NoticeEvent, canonical
from remora.ports import BlobStore, TokenCounter

MAX_INLINE = 32 * 1024
"""Bytes of a text or of a call's arguments that a record holds itself; larger ones lie in a blob."""
MAX_SAID = 1024
"""Bytes of an earlier chat message that a receipt holds itself: each is sent again in every later turn."""
CUT_EXACT, CUT_ESTIMATED = 0.8, 0.2
"""Shares of our count below which a server must have cut the prompt. An estimate may be far above the truth."""


class Keeper:
    """Puts the large parts of one agent's events into blobs, without secrets."""

    def __init__(self, blobs: BlobStore, secrets: Secrets) -> None:
        self._blobs = blobs
        self._secrets = secrets
        self._constant: tuple[str, BlobRef] | None = None

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


def named(counter: TokenCounter) -> dict[str, Any]:
    """Who counted, as receipts say it."""
    told = {"name": counter.name, "exact": counter.exact}
    return told | {"digest": counter.digest} if counter.digest else told


def counted_otherwise(counted: int, counter: TokenCounter, usage: Mapping[str, Any]) -> NoticeEvent | None:
    """A notice where the server read clearly less of the prompt than was sent, or more than we allowed for."""
    read = usage.get("prompt_tokens")
    if not isinstance(read, int) or isinstance(read, bool) or read <= 0:
        return None
    if read < counted * (CUT_EXACT if counter.exact else CUT_ESTIMATED):
        return NoticeEvent(code="prompt_cut", message=f"The server read {read} of {counted} prompt tokens")
    if read > counted:
        return NoticeEvent(code="counted_short", message=f"The server counted {read} prompt tokens, we {counted}")
    return None
