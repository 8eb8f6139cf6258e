"""What the rows of a bench share."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.real import smollm2
from remora_lab.bench import bench
from remora_lab.bench.rows import ROWS, Models


async def test_weights_that_are_downloaded_later_count_the_prompts_of_later_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = smollm2()
    monkeypatch.setenv("REMORA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(bench, "_counters", {})
    assert not await counted_exactly()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / weights.name).symlink_to(weights)
    assert await counted_exactly()


async def counted_exactly() -> bool:
    async with bench.open_deciders(ROWS["first-candidate"], 1, Models()) as found:
        assert found is not None
        return found.counter.exact
