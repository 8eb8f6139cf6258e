"""A search of a Postgres store finds what a search of the same streams in files finds, also in long values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from postgres import Server
from remora.app import copy_store
from remora.events import BlobRef, ToolResultEvent
from remora.trace import FileBlobs, FileTrace, Library, PostgresStore, parse_address

EDGE = 4096
"""Only so many characters of a value are indexed."""


def result(**more: Any) -> ToolResultEvent:
    return ToolResultEvent(call_id="1", tool="look", outcome="success", **more)


@pytest.fixture
def values() -> dict[str, Any]:
    """Values of which a search finds some words only if both indexes cut them at the same place."""
    return {
        "keys in an order of their own": {"zulu": "first", "a": "x" * EDGE, "b": "never", "list": [1, {"deep": 2.5}]},
        "beyond the edge in both": {"a": "x " * (EDGE // 2), "zulu": "never"},
        "not in ASCII": {"b": ["Übung macht", "日本語"], "a": None, "zulu": True},
        "a number": 42.5,
        "a list": ["zulu", {"b": 1, "aa": 2}],
    }


async def test_long_values_are_found_by_the_same_words_on_either_store(
    postgres: Server, state_dir: Path, tmp_path: Path, clock: Any, values: dict[str, Any]
) -> None:
    text = "x" + "Übung " * EDGE  # a character lies across the last byte that is read
    blob = await FileBlobs(state_dir).put(text.encode())
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        for number, raw in enumerate(values.values()):
            await trace.append(f"traces/01V{number}", [result(raw=raw)])
        reference = BlobRef(blob=blob, size=len(text.encode()), encoding="utf-8")
        await trace.append("traces/01BLOB", [result(raw_ref=reference)])
    url = postgres.new_url()
    copy_store(str(state_dir), url, lambda _done, _total: None)
    files, stored = Library(state_dir), PostgresStore(parse_address(url), tmp_path / "cache").library()
    for words in (
        "first",
        "zulu first",
        "never",
        "deep",
        "macht",
        "Übung",
        "日本語",
        "42",
        "42.5",
        "zulu",
        "b 1",
        "aa",
    ):
        assert stored.search(words) == files.search(words), words
    assert files.search("zulu first") and files.search("Übung"), "nothing was compared"


SIGNS = "“quoted” ten→four one—two │cell│ …cut •point a×b «said» 10€each 日本、語 ½half"
"""Signs that stand beside words without a space."""


async def test_signs_divide_words_on_either_store(
    postgres: Server, state_dir: Path, tmp_path: Path, clock: Any
) -> None:
    async with FileTrace(state_dir, clock=clock, sync="off") as trace:
        await trace.append("traces/01SIGNS", [result(raw=SIGNS)])
    url = postgres.new_url()
    copy_store(str(state_dir), url, lambda _done, _total: None)
    files, stored = Library(state_dir), PostgresStore(parse_address(url), tmp_path / "cache").library()
    for words in ("quoted", "four", "two", "cell", "cut", "point", "b", "said", "each", "10", "日本", "half"):
        assert stored.search(words) == files.search(words), words
    assert files.search("four") and files.search("cell"), "nothing was compared"
