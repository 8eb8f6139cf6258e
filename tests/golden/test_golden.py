from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson
import pytest

from remora.analysis import replay
from remora.context.projection import EMPTY, apply
from remora.errors import TraceDamaged
from remora.events import ModelRequestEvent, canonical, digest
from remora.trace import read_events, verify

HERE = Path(__file__).parent
STREAM = HERE / "format-1-lint.jsonl"
FIRST = HERE / "format-1-lint.projector-1.jsonl"
"""The same run as projector 1 recorded it, without evidence."""
SECOND = HERE / "format-1-lint.delta-2.jsonl"
"""The same run with evidence that lacks the arguments of calls."""
THIRD = HERE / "format-1-lint.projector-2.jsonl"
"""The same run as projector 2 recorded it."""
FOURTH = HERE / "format-1-lint.reading-1.jsonl"
"""The same run with a long line that was cut in the middle instead of split."""
OLDER = ("json-1", "json-2")
"""Earlier renderers, of each of which the same run is kept."""
EDITED = HERE / "refused-edited.jsonl"


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_make", HERE / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_golden_stream_gives_its_packets_at_every_turn(
    make: ModuleType, record_property: Callable[[str, object], None]
) -> None:
    expected = orjson.loads((HERE / "format-1-lint.packets.json").read_bytes())
    assert list(make.packets(STREAM)) == expected
    assert len(expected) == 7
    record_property("row 16", f"{STREAM.name}: {len(expected)} of {len(expected)} packets are the same")


@pytest.mark.parametrize("stream", [FIRST, SECOND, THIRD, FOURTH])
def test_a_stream_of_an_earlier_version_still_gives_its_packets(make: ModuleType, stream: Path) -> None:
    expected = orjson.loads(stream.with_suffix(".packets.json").read_bytes())
    assert list(make.packets(stream)) == expected


@pytest.mark.parametrize("renderer", OLDER)
def test_a_stream_whose_prompts_an_earlier_renderer_made_gives_the_same_packets(
    make: ModuleType, renderer: str
) -> None:
    assert list(make.packets(HERE / f"format-1-lint.{renderer}.jsonl")) == list(make.packets(FIRST))


@pytest.mark.parametrize("stream", [STREAM, FIRST, SECOND, THIRD, FOURTH])
def test_every_receipt_names_the_packet_that_was_shown(stream: Path) -> None:
    packet, checked = EMPTY, 0
    for event in read_events(stream):
        if isinstance(event, ModelRequestEvent):
            assert event.packet_sha256 == digest(canonical(packet))
            checked += 1
        packet = apply(packet, event)
    assert checked == 6


@pytest.mark.parametrize("name", ["lint", "docstring", "test", "sample_data"])
def test_a_run_of_every_bundled_agent_gives_its_packets_and_matches_its_receipts(make: ModuleType, name: str) -> None:
    stream = make.agent_stream(name)
    assert list(make.packets(stream)) == orjson.loads(make.agent_packets(name).read_bytes())
    replayed = replay(read_events(stream))
    assert (replayed.first_difference, replayed.packet.operation) == (None, name)
    assert replayed.receipts >= 2
    assert verify(stream).status == "sealed"


def test_the_golden_stream_is_sealed_and_whole() -> None:
    report = verify(STREAM)
    assert (report.status, report.events, report.problem) == ("sealed", 36, None)


async def test_todays_code_writes_the_same_bytes(make: ModuleType, tmp_path: Path) -> None:
    # A change here is a change of what streams hold: fine within format 1 if readers of old streams do not mind.
    made: Any = await make.record(tmp_path)
    assert made.read_bytes() == STREAM.read_bytes()


def test_a_stream_with_one_edited_word_is_refused_and_the_place_is_named() -> None:
    seen = []
    with pytest.raises(TraceDamaged) as refused:
        seen.extend(read_events(EDITED))
    assert refused.value.seq in (11, 12)
    assert [event.seq for event in seen] == list(range(len(seen)))
    assert len(seen) >= 11
    assert verify(EDITED).status == "damaged"
