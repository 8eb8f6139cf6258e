"""Live events (server-sent events). Every message has an id, so that a browser that reconnects misses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from remora.app import Viewing
from remora.trace import Outline

LOOK_AGAIN_S = 0.25
PING_S = 15.0
LOOKS = 4
"""The list is asked this many times less often than a stream."""
BATCH = 500
"""Events that are read at once for a reader who comes late."""

IsOver = Callable[[], bool]
"""Whether the server is about to end."""


def stream(messages: AsyncIterator[bytes]) -> StreamingResponse:
    """The response for a source of messages."""
    return StreamingResponse(messages, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def last_id(request: Request, default: int) -> int:
    """The last message that the reader has: the header of a reconnection, else `after` in the address."""
    given = request.headers.get("last-event-id") or request.query_params.get("after") or ""
    return int(given) if given.lstrip("-").isdigit() and len(given) < 16 else default


def message(name: str, id_: int | str, data: Any) -> bytes:
    """One message. The data is JSON in one line."""
    return b"event: %b\nid: %b\ndata: %b\n\n" % (name.encode(), str(id_).encode(), orjson.dumps(data))


async def follow(viewing: Viewing, outline: Outline, after: int, is_over: IsOver) -> AsyncIterator[bytes]:
    """A message for every event after `after`, until the stream is sealed; then `end`."""
    loop = asyncio.get_running_loop()
    said = loop.time()
    async with viewing.watch(outline, look_s=LOOK_AGAIN_S) as wait_for_news:
        while not is_over():
            found = await run_in_threadpool(viewing.briefs, outline, after + 1, BATCH)
            for brief in found:
                after = brief.seq
                facts = {"seq": brief.seq, "turn": brief.turn, "type": brief.type, "turns": len(outline)}
                yield message("event", brief.seq, facts)
            if not found and (outline.is_sealed or outline.damage):
                yield message("end", after, {"sealed": outline.is_sealed})
                return
            if found:
                said = loop.time()
                continue
            await wait_for_news()
            if loop.time() - said >= PING_S:
                said = loop.time()
                yield b": still here\n\n"
            await run_in_threadpool(viewing.extend, outline)


async def versions(ask: Callable[[], Awaitable[str]], known: str, is_over: IsOver) -> AsyncIterator[bytes]:
    """A message each time that the answer of `ask` changes; at once if it is not the one that the reader knows."""
    while not is_over():
        now = await ask()
        yield message("changed", now, {"version": now}) if now != known else b": same\n\n"
        known = now
        for _ in range(LOOKS):
            if not is_over():
                await asyncio.sleep(LOOK_AGAIN_S)
