"""Where the lines of an agent are in the project's files as they are now."""

from __future__ import annotations

import hashlib
from pathlib import Path

from remora.analysis import AgentReport
from remora.app._places import Places
from remora.trace import FileBlobs


async def test_lines_behind_the_end_of_a_file_are_not_looked_up(tmp_path: Path) -> None:
    """A stream may name any number, and to look up 10**12 lines would fill the memory."""
    (tmp_path / "a.py").write_bytes(b"x = 1\ny = 2\n")
    node = {"file": "a.py", "lines": [2, 3_000_000], "sha256": hashlib.sha256(b"x = 1\ny = 2\n").hexdigest()}
    row = {"code": "E1", "message": "wrong", "row": 3_000_000, "column": 1}
    agent = AgentReport(agent_id="A", operation="lint", node=node, outcome="partial", problems=(row,))
    found = await Places(tmp_path, FileBlobs(tmp_path / ".agentfs")).locate(agent, None)
    assert found.place is not None
    assert found.place.lines == (2, 3)
    assert [each["line"] for each in found.problems] == [None]
