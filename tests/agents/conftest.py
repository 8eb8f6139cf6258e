from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from remora.nodes import CodeNode, LineRange, NodeType
from remora.sandbox import LocalSpawner
from remora.scripts import ScriptPool, ScriptTools, load_scripts
from remora.subagent import SubagentDefinition, parse_definition
from remora.workspaces import OverlayWorkspace

AGENTS = Path(__file__).parents[2] / "agents"


@pytest.fixture
def lint() -> SubagentDefinition:
    file = AGENTS / "lint/subagent.yaml"
    return parse_definition(file.read_text(), file)


@pytest_asyncio.fixture
async def lint_tools(lint: SubagentDefinition, tmp_path: Path) -> AsyncIterator[Callable[..., ScriptTools]]:
    """Makes the lint agent's real tools for a file of the given bytes, whose node owns the given lines."""
    (tmp_path / "ruff.toml").write_text('lint.select = ["E", "F", "W"]\n')
    scripts = load_scripts(AGENTS / "lint/tools", lint)
    async with ScriptPool(max_processes=2) as pool:

        def make(data: bytes, *owned: tuple[int, int]) -> ScriptTools:
            (tmp_path / "a.py").write_bytes(data)
            stretches = tuple(LineRange(first=first, last=last) for first, last in owned or [(1, data.count(b"\n"))])
            node = CodeNode(
                node_id="a.py",
                node_type=NodeType.FILE,
                name="a.py",
                file_path=Path("a.py"),
                lines=LineRange(first=stretches[0].first, last=stretches[-1].last),
                owned=stretches,
                text="",
            )
            workspace = OverlayWorkspace(tmp_path, tmp_path / ".agentfs/workspaces/AGENT")
            return ScriptTools(
                lint,
                scripts,
                node=node,
                agent_id="AGENT",
                workspace=workspace,
                spawner=LocalSpawner(),
                root=tmp_path,
                pool=pool,
            )

        yield make
