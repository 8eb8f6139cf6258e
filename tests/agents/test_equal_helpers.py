"""Two agents that need the same code have a copy each, so that each folder is whole. The copies must stay the same."""

from __future__ import annotations

from pathlib import Path

import pytest

AGENTS = Path(__file__).parents[2] / "agents"


@pytest.mark.parametrize("name", ["samples.py", "places.py"])
def test_what_two_agents_share_is_the_same(name: str) -> None:
    first, second = (AGENTS / agent / "tools" / name for agent in ("test", "sample_data"))
    assert first.read_text() == second.read_text()
