from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given

from remora.errors import TraceError
from remora.events import Event, Reference, UnknownEvent, decode, encode, new_id, references_of, timestamp
from strategies import events


@given(events)
def test_an_event_comes_back_from_its_line_as_it_was(event: Event) -> None:
    recorded = event.model_copy(update={"seq": 3, "ts": "2026-11-15T18:20:45.123456Z", "prev": "sha256:00"})
    back = decode(encode(recorded))
    assert encode(back) == encode(recorded)
    if not isinstance(event, UnknownEvent):
        assert back == recorded


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"[1]",
        b"{}",
        b'{"v":1}',
        b'{"v":1,"seq":"0","type":"notice"}',
        b"[" * 100_000 + b"]" * 100_000,
        b'{"v":1,"seq":' + b"9" * 5_000 + b',"type":"notice"}',
        b'{"v":1,"seq":0,"type":"notice","data":{"x":NaN}}',
        b'\xff{"v":1}',
    ],
)
def test_a_line_that_is_no_record_is_a_typed_error(line: bytes) -> None:
    with pytest.raises(TraceError):
        decode(line)


def test_a_record_of_an_unknown_type_or_version_is_kept_whole() -> None:
    line = b'{"v":7,"seq":0,"type":"dream","data":{"a":[1,{"b":null}]}}'
    event = decode(line)
    assert isinstance(event, UnknownEvent)
    assert (event.v, event.type, event.data) == (7, "dream", {"a": [1, {"b": None}]})


def test_times_are_utc_with_six_digits() -> None:
    moment = datetime(2026, 11, 15, 20, 20, 45, tzinfo=timezone(timedelta(hours=2)))
    assert timestamp(moment) == "2026-11-15T18:20:45.000000Z"


def test_ids_sort_by_the_time_they_were_made() -> None:
    start = datetime(2026, 11, 15, tzinfo=UTC)
    ids = [new_id(start + timedelta(milliseconds=step)) for step in range(50)]
    assert ids == sorted(ids)
    assert {len(id_) for id_ in ids} == {26}


def test_a_reference_inside_raw_is_a_tools_words_and_no_reference() -> None:
    ours = {"blob": "sha256:ours", "size": 1}
    data = {"raw": {"raw_ref": {"blob": "sha256:evil", "size": 1}}, "raw_ref": ours}
    assert list(references_of("tool_result", data)) == [Reference("sha256:ours", 1)]


def test_a_reference_among_a_models_words_is_not_called_ours() -> None:
    args = {"too_large": 70_000, "blob": "sha256:args"}
    assert list(references_of("tool_call", {"tool": "t", "args": args})) == [Reference("sha256:args", ours=False)]
    assert list(references_of("model_response", {"calls": [{"args": args}]})) == [Reference("sha256:args", ours=False)]
    assert not list(references_of("tool_call", {"tool": "t", "args": args | {"more": 1}}))
