"""A trusted agent's tools may be Python functions, recorded like any other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import remora
from remora.errors import ConfigError
from remora.events import ToolResultEvent

DEFINITION = """
name: words
goal: Count the words of {node}
system_prompt: Count them.
tools:
  - name: count_words
    effects: none
    python: counting.py:count_words
script: [count_words, submit_result]
"""
COUNTING = '''
import remora


@remora.tool
def count_words(text: str = "to be or not"):
    """Count the words of a text."""
    return {"summary": f"{len(text.split())} words", "knowledge_delta": {"words": len(text.split())}}
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "own"))
    root = tmp_path / "project"
    folder = root / "agents" / "words"
    folder.mkdir(parents=True)
    (root / "remora.yaml").touch()
    (root / "a.py").write_text("def f():\n    return 1\n")
    (folder / "subagent.yaml").write_text(DEFINITION)
    (folder / "counting.py").write_text(COUNTING)
    return root


def test_it_is_refused_until_it_is_trusted_and_then_it_runs(project: Path) -> None:
    opened = remora.open_project(project, {"server.server": "scripted"})
    with pytest.raises(ConfigError, match=r"tools\[0\].python: needs trust"):
        opened.runs.plan([project / "a.py"], ["words"])
    opened.agents.trust(project / "agents")
    (result,) = asyncio.run(opened.runs.analyze([project / "a.py"], ["words"]))
    assert result.reason == "submitted"
    (told,) = [event for event in opened.library.events(result.agent_id) if isinstance(event, ToolResultEvent)]
    assert told.raw["summary"] == "4 words"


def test_a_function_that_is_no_tool_is_named(project: Path) -> None:
    (project / "agents" / "words" / "counting.py").write_text("def count_words():\n    pass\n")
    opened = remora.open_project(project, {"server.server": "scripted"})
    opened.agents.trust(project / "agents")
    with pytest.raises(ConfigError, match="above it"):
        asyncio.run(opened.runs.analyze([project / "a.py"], ["words"]))
