"""The bundled agents pass the check that we give to people who write agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from remora.scripts import check_files

AGENTS = Path(__file__).parents[2] / "agents"
NAMES = sorted(folder.name for folder in AGENTS.iterdir() if (folder / "tools").is_dir())


@pytest.mark.parametrize("agent", NAMES)
def test_every_script_of_a_bundled_agent_passes_its_check(agent: str) -> None:
    found = check_files(sorted((AGENTS / agent / "tools").glob("*.pym")), our_host=True)
    assert found
    assert {each.file: each.problems for each in found if not each.ok} == {}
