"""Reads the result of a call: its text, and images and other data as attachments."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import orjson
from mcp_types import AudioContent, CallToolResult, EmbeddedResource, ImageContent, ResourceLink, TextContent
from mcp_types import BlobResourceContents as BlobResource
from mcp_types import TextResourceContents as TextResource

from remora.context.text import one_line
from remora.errors import ToolFailed, ToolLimitExceeded
from remora.ports import ToolOutput

MAX_ERROR = 2_000
"""Most characters of an error."""


def read_result(tool: str, result: CallToolResult, max_bytes: int) -> ToolOutput:
    """What a call returned, as text. Raises `ToolError` for an error, and for more than `max_bytes`.

    The text is never read as a result of ours: a server cannot set knowledge, candidates or a summary.
    """
    texts: list[str] = []
    data: list[tuple[str, bytes]] = []
    for place, block in enumerate(result.content):
        text, attached = _read_block(block, place)
        texts.append(text)
        data += attached
    if not texts and result.structured_content is not None:
        texts.append(orjson.dumps(result.structured_content, option=orjson.OPT_NON_STR_KEYS, default=str).decode())
    text = "\n".join(texts)
    size = len(text.encode(errors="surrogatepass")) + sum(len(part) for _, part in data)
    if size > max_bytes:
        raise ToolLimitExceeded(tool, limit=f"{max_bytes:,} bytes; it returned {size:,}")
    if result.is_error:
        error = ToolFailed(text[:MAX_ERROR].strip() or "The tool failed without a message")
        error.outputs = tuple(data)
        raise error
    return ToolOutput(text, outputs=tuple(data))


def _read_block(block: Any, place: int) -> tuple[str, list[tuple[str, bytes]]]:
    """A block as text, and its data."""
    match block:
        case TextContent():
            return block.text, []
        case ImageContent() | AudioContent():
            return _attach(f"{block.type}-{place}", block.mime_type, block.data)
        case EmbeddedResource(resource=TextResource() as resource):
            return resource.text, []
        case EmbeddedResource(resource=BlobResource() as resource):
            return _attach(f"resource-{place}", resource.mime_type or "", resource.blob)
        case ResourceLink():
            return f"[link: {one_line(str(block.uri), 500)}]", []
        case _:
            return f"[{type(block).__name__}]", []


def _attach(name: str, kind: str, encoded: str) -> tuple[str, list[tuple[str, bytes]]]:
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return f"[{name}: {one_line(kind, 80)}, not base64]", []
    return f"[{name}: {one_line(kind, 80)}, {len(data):,} bytes]", [(name, data)]
