"""Finds the value that a tool's result stands for: parsed JSON, JSON lines, blocks of text, or text for bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import orjson

MAX_NESTED = 4
"""Levels of a value in which texts that are JSON are parsed."""
MIN_NESTED = 20
"""Characters of the shortest text that is parsed inside a value: shorter ones are as readable as text."""
MAX_BLOCK = 2_000_000
"""Most characters of a text in which JSON is looked for."""
BLOCK_SHARE = 0.6
"""The share of a text that is JSON, if it is read as JSON with a few lines around it."""
MAX_STARTS = 3
"""Lines that may begin the JSON of a text: this many are tried."""
SHOWN_BYTES = 16
"""Bytes of binary data that are shown as numbers."""
_BLOCK = re.compile(r"^(?=[\[{])", re.MULTILINE)
_DECODER = json.JSONDecoder()
_BLOCKS = frozenset({"text", "image", "audio", "resource", "resource_link", "json"})
"""Types of content blocks, as MCP and the APIs of chat models name them."""
_BESIDE_BLOCKS = frozenset({"isError", "is_error", "structuredContent", "structured_content", "_meta", "meta", "type"})
"""Fields that a result of content blocks may have beside `content`."""


def parsed(value: Any) -> Any:
    """The value, or the value of the JSON text or the content blocks that it is, with JSON texts in it parsed."""
    value = parsed_text(value)
    blocks = content_blocks(value)
    if blocks is not None:
        value = _of_text("\n".join(map(_block_text, blocks)))
    return value if isinstance(value, str) else _unnested(value, MAX_NESTED)


def parsed_text(value: Any) -> Any:
    """The value, or the value of the JSON text that it is. Bytes are text."""
    if isinstance(value, bytes | bytearray | memoryview):
        value = _decoded(bytes(value))
    return _of_text(value) if isinstance(value, str) else value


def _unnested(value: Any, depth: int) -> Any:
    """The value with texts that are JSON objects or lists replaced by their values."""
    if isinstance(value, str):
        if len(value) < MIN_NESTED or value[0] not in "{[" or value[-1] not in "}]":
            return value
        found = _of_text(value)
        return value if isinstance(found, str) else _unnested(found, depth - 1)
    if depth > 0 and isinstance(value, dict):
        return {name: _unnested(item, depth - 1) for name, item in value.items()}
    if depth > 0 and isinstance(value, list):
        return [_unnested(item, depth - 1) for item in value]
    return value


def json_block(text: str) -> tuple[str, Any, str] | None:
    """The object or list that a text consists of for the most part, and the text before and after it.

    Such as the body of an HTTP response, or the report of a program that also prints warnings.
    """
    if len(text) > MAX_BLOCK or not (text[:1] in ("{", "[") or "\n{" in text or "\n[" in text):
        return None
    for start in islice(_BLOCK.finditer(text), MAX_STARTS):
        if len(text) - start.end() < len(text) * BLOCK_SHARE:
            return None
        try:
            value, end = _DECODER.raw_decode(text, start.end())
        except (ValueError, RecursionError):
            continue
        if end - start.end() >= len(text) * BLOCK_SHARE and value:
            return text[: start.end()].strip("\n"), _unnested(value, MAX_NESTED), text[end:].strip("\n")
    return None


def content_blocks(value: Any) -> Sequence[Mapping[str, Any]] | None:
    """The content blocks of a result. None if it is no such result."""
    if isinstance(value, Mapping):
        return content_blocks(value["content"]) if value.keys() - _BESIDE_BLOCKS == {"content"} else None
    if not isinstance(value, list | tuple) or not value:
        return None
    return value if all(isinstance(item, Mapping) and item.get("type") in _BLOCKS for item in value) else None


def _block_text(block: Mapping[str, Any]) -> str:
    text = block.get("text")
    if isinstance(text, str):
        return text
    if isinstance(resource := block.get("resource"), Mapping) and isinstance(resource.get("text"), str):
        return str(resource["text"])
    kind = block.get("mimeType") or block.get("mime_type") or block.get("uri")
    return f"[{block['type']}{f', {kind}' if kind else ''}]"


@lru_cache(maxsize=2)
def _of_text(text: str) -> Any:
    """The parsed value of a JSON text. Cached, because an output is distilled first and then read as evidence."""
    stripped = text.strip()
    if stripped[:1] in ("{", "[") and stripped[-1:] in ("}", "]"):
        try:
            return orjson.loads(stripped)
        except orjson.JSONDecodeError:
            return _json_lines(stripped) or text
    return text


def _json_lines(text: str) -> list[Any] | None:
    """The records of a text with one in each line."""
    if not text.startswith("{") or "}\n" not in text:
        return None
    try:
        records = [orjson.loads(line) for line in text.split("\n") if line.strip()]
    except orjson.JSONDecodeError:
        return None
    return records if all(isinstance(record, dict) for record in records) else None


def _decoded(data: bytes) -> str:
    if b"\0" not in data:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    start = data[:SHOWN_BYTES].hex(" ")
    return f"binary data, {len(data):,} bytes: {start}{' …' if len(data) > SHOWN_BYTES else ''}"
