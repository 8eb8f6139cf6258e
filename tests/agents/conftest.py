from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from pathlib import Path

import pytest
import pytest_asyncio

from remora.discovery import PythonCode, TreeSitterDiscovery
from remora.nodes import CodeNode, LineRange, NodeType
from remora.sandbox import LocalSpawner, SandboxReport
from remora.scripts import Script, ScriptPool, ScriptTools, Survey, load_scripts
from remora.subagent import SubagentDefinition, parse_definition
from remora.workspaces import OverlayWorkspace
from sandbox.boxes import no_plugins

AGENTS = Path(__file__).parents[2] / "agents"
NO_SANDBOX = SandboxReport(bwrap_problem="not found", own_problem="not tried")


def definition_of(agent: str) -> SubagentDefinition:
    file = AGENTS / agent / "subagent.yaml"
    return parse_definition(file.read_text(), file)


@cache
def scripts_of(agent: str) -> Mapping[str, Script]:
    return load_scripts(AGENTS / agent / "tools", definition_of(agent))


@pytest.fixture
def lint() -> SubagentDefinition:
    return definition_of("lint")


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[ScriptPool]:
    async with ScriptPool(max_processes=2) as opened:
        yield opened


@pytest.fixture
def lint_tools(lint: SubagentDefinition, tmp_path: Path, pool: ScriptPool) -> Callable[..., ScriptTools]:
    """Makes the lint agent's real tools for a file of the given bytes, whose node owns the given lines."""
    (tmp_path / "ruff.toml").write_text('lint.select = ["E", "F", "W"]\n')
    (tmp_path / "pytest.ini").write_text(no_plugins("xdist"))

    def make(data: bytes, *owned: tuple[int, int], strict: bool = False) -> ScriptTools:
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
        return _tools("lint", tmp_path, node, pool, strict=strict)

    return make


@pytest.fixture
def agent_tools(tmp_path: Path, pool: ScriptPool) -> Callable[..., ScriptTools]:
    """Makes an agent's real tools for one definition, such as `pkg/a.py:f`, of a project with the given files."""

    def make(
        agent: str, files: Mapping[str, str | bytes], node_id: str, *, sandbox: bool = True, strict: bool = False
    ) -> ScriptTools:
        settings = (
            {} if {"pyproject.toml", "tox.ini", "setup.cfg"} & set(files) else {"pytest.ini": no_plugins("xdist")}
        )
        for name, text in (settings | dict(files)).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        found = TreeSitterDiscovery(tmp_path, state_dir=tmp_path / ".agentfs").find([tmp_path])
        node = next(node for node in found if node.node_id == node_id)
        return _tools(agent, tmp_path, node, pool, None if sandbox else NO_SANDBOX, strict=strict)

    return make


def _tools(
    agent: str,
    root: Path,
    node: CodeNode,
    pool: ScriptPool,
    report: SandboxReport | None = None,
    *,
    strict: bool = False,
) -> ScriptTools:
    definition = definition_of(agent)
    return ScriptTools(
        definition,
        scripts_of(agent),
        node=node,
        agent_id="AGENT",
        workspace=OverlayWorkspace(root, root / ".agentfs/workspaces/AGENT"),
        spawner=LocalSpawner(
            report=report, extra={item.name: item.flags for item in definition.commands if not isinstance(item, str)}
        ),
        root=root,
        pool=pool,
        code=PythonCode(),
        survey=None if strict else Survey(LocalSpawner(), root),
    )
