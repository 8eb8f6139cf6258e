"""Finding streams by what a person types."""

from __future__ import annotations

from pathlib import Path

import pytest

from remora.errors import TraceError, TraceNotFound
from remora.trace import find_streams, resolve

IDS = ("01JAAAAAAA1111", "01JBBBBBBB2222", "01JBBBBBBB3333")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    for kind, ids in (("traces", IDS), ("runs", ("01JRRRRRRR4444",))):
        (tmp_path / kind).mkdir()
        for id_ in reversed(ids):
            (tmp_path / kind / f"{id_}.jsonl").touch()
    (tmp_path / "traces" / "01JAAAAAAA1111.torn").touch()
    return tmp_path


def test_streams_are_found_oldest_first(state: Path) -> None:
    assert tuple(path.stem for path in find_streams(state, "traces")) == IDS
    assert [path.stem for path in find_streams(state, "runs")] == ["01JRRRRRRR4444"]


def test_where_nothing_was_recorded_nothing_is_found(tmp_path: Path) -> None:
    assert find_streams(tmp_path / "none", "traces") == []
    with pytest.raises(TraceNotFound) as error:
        resolve(tmp_path / "none", "x")
    assert "Nothing is recorded" in str(error.value.hint)


@pytest.mark.parametrize("fragment", ["2222", "01jbbbbbbb2", "01JBBBBBBB2222", "bbb2222"])
def test_the_start_or_the_end_of_an_id_is_enough(state: Path, fragment: str) -> None:
    assert resolve(state, fragment).stem == "01JBBBBBBB2222"


def test_runs_are_found_too_unless_only_traces_are_wanted(state: Path) -> None:
    assert resolve(state, "4444") == state / "runs" / "01JRRRRRRR4444.jsonl"
    with pytest.raises(TraceNotFound):
        resolve(state, "4444", "traces")


def test_several_candidates_are_named(state: Path) -> None:
    with pytest.raises(TraceError, match="matches 2 streams: `01JBBBBBBB2222`, `01JBBBBBBB3333`"):
        resolve(state, "01JB")


def test_a_whole_id_wins_over_longer_ones(state: Path) -> None:
    (state / "traces" / "01JB.jsonl").touch()
    assert resolve(state, "01jb").stem == "01JB"


@pytest.mark.parametrize("fragment", ["nope", "", "*", "../traces/01JA", "AAAA"])
def test_no_match_names_the_newest(state: Path, fragment: str) -> None:
    with pytest.raises(TraceNotFound) as error:
        resolve(state, fragment)
    assert str(error.value.hint).startswith("The newest are `01JRRRRRRR4444`, `01JBBBBBBB3333`")
