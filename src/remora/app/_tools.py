"""For authors of tools: checks scripts, runs them on a temporary workspace, and writes type stubs."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remora.app._changes import BY_HAND
from remora.app._project import Project
from remora.app._target import Target, pin_target
from remora.context.contracts import ToolSpec, make_error_result
from remora.context.summarizers import Distilled, distill
from remora.errors import ConfigError, ToolError
from remora.events import new_id
from remora.files import MAX_BYTES, read_plain
from remora.nodes import CodeNode, LineRange, NodeType
from remora.ports import ToolOutput
from remora.subagent import SubagentDefinition, ToolEntry, parse_definition

if TYPE_CHECKING:
    from remora.scripts import CheckResult, Script, ScriptTools
    from remora.workspaces import Change, OverlayWorkspace

SUFFIX = ".pym"
MAX_DIFF_LINES = 50_000
MAX_DIFF_BYTES = 2 * 1024 * 1024
"""Limits on the input of a diff, for all files together. A file beyond them is only named."""
NEEDS_NODE = ("node_text", "target_file", "node_lines")


@dataclass(frozen=True)
class ToolRun:
    """The result of running one tool by hand."""

    tool: str
    value: Any
    """The tool's result, or the error that a model would see."""
    distilled: Distilled
    """What would go into the packet."""
    code: str = ""
    """The error code if the tool failed."""
    prints: str = ""
    outputs: tuple[str, ...] = ()
    """The names of the command outputs that it returned."""
    changes: tuple[Change, ...] = ()
    diff: str = ""
    """A unified diff of the files it changed, with secrets removed."""
    written: bool = False
    """Whether the changes were written into the project."""


class ProjectTools:
    """Checks and runs single tools, for their authors."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def check(self, paths: Sequence[Path]) -> list[CheckResult]:
        """List every problem of every script at or below `paths`. Raises `ConfigError` if there is no script."""
        from remora.scripts import check_files

        return check_files(_scripts(paths), our_host=True)

    def write_stubs(self, paths: Sequence[Path], folder: Path) -> list[Path]:
        """Write the stubs of every script at or below `paths` into `folder`. Returns one folder for each script."""
        from remora.scripts import load

        return [folder / load(path, grail_dir=folder).name for path in _scripts(paths)]

    async def mcp(self, words: Sequence[str]) -> dict[str, ToolSpec | str]:
        """The tools of an MCP server by name: as a model would see them, or why one cannot be offered.

        `words` is the name of a server in your settings, a URL, or a command.
        """
        from remora.app._mcp import list_mcp_tools

        return await list_mcp_tools(self._project, words)

    async def run(
        self,
        path: Path,
        inputs: Mapping[str, Any],
        *,
        node: str | None = None,
        file: str | None = None,
        limits: str | None = None,
        commands: Sequence[str] = (),
        write: bool = False,
    ) -> ToolRun:
        """Run the script at `path` with real host functions. Its changes are discarded unless `write` is set."""
        from remora.scripts import load

        script = load(path)
        definition = _definition(script, limits, commands)
        target = self._target(script, node, file)
        async with self._open_tool(definition, script, target) as (tools, workspace):
            try:
                output, code = await tools.call(definition.tools[0].name, inputs), ""
            except ToolError as error:
                output, code = _error_output(error), error.code
            changes = _changes(workspace)
            return await self._finish(script.name, output, code, changes, write=write)

    async def _finish(
        self, tool: str, output: ToolOutput, code: str, changes: tuple[Change, ...], *, write: bool
    ) -> ToolRun:
        written = write and not code and bool(changes)
        if written:
            await self._write(changes)
        value = self._project.secrets.clean(output.value)
        return ToolRun(
            tool=tool,
            value=value,
            distilled=distill(tool, value),
            code=code,
            prints=self._project.secrets.clean(output.prints),
            outputs=tuple(name for name, _ in output.outputs),
            changes=changes,
            diff=self._project.secrets.clean(_diff(changes)),
            written=written,
        )

    async def _write(self, changes: tuple[Change, ...]) -> None:
        """Write the changes into the project, all or none even if killed. They are not recorded in any run."""
        from remora.workspaces import forget, take

        async with self._project.changes.locked_writer():
            await asyncio.to_thread(
                take, self._project.root, self._project.journal_dir, changes, note={"kind": BY_HAND}
            )
            forget(self._project.journal_dir)

    @asynccontextmanager
    async def _open_tool(
        self, definition: SubagentDefinition, script: Script, node: CodeNode
    ) -> AsyncIterator[tuple[ScriptTools, OverlayWorkspace]]:
        """Open the tool as an agent would, on a temporary workspace."""
        from remora.discovery import PythonCode
        from remora.sandbox import LocalSpawner
        from remora.scripts import ScriptPool, ScriptTools, Survey
        from remora.workspaces import OverlayWorkspace, workspace_folder

        agent_id = new_id(self._project.clock.now())
        with tempfile.TemporaryDirectory(prefix="remora-") as folder:
            workspace = OverlayWorkspace(self._project.root, workspace_folder(Path(folder), agent_id))
            target = await pin_target(workspace, node, self._project.discovery) if node.digest else Target(node, None)
            async with ScriptPool(max_processes=1) as pool:
                yield (
                    ScriptTools(
                        definition,
                        {definition.tools[0].name: script},
                        node=target.node,
                        agent_id=agent_id,
                        workspace=workspace,
                        spawner=LocalSpawner(allow_unsandboxed=self._project.config.sandbox.allow_unsandboxed),
                        root=self._project.root,
                        pool=pool,
                        code=PythonCode(),
                        base=target.base,
                        survey=Survey(LocalSpawner(), self._project.root),
                    ),
                    workspace,
                )

    def _target(self, script: Script, node: str | None, file: str | None) -> CodeNode:
        """The node that the tool works on. Raises `ConfigError` if the tool needs one and none is named."""
        wanted = node or file
        if wanted is None:
            needs = [item.name for item in script.inputs if item.name in NEEDS_NODE]
            if needs:
                raise ConfigError(
                    f"`{script.path.name}` needs `{needs[0]}`, which comes from the code it works on",
                    hint="Name the code with `--node path:qualified.name` or `--file path`",
                )
            return _empty_node()
        found = self._project.discovery().find([self._project.root / wanted.partition(":")[0]])
        names = [each.node_id for each in found]
        if wanted not in names:
            known = ", ".join(f"`{name}`" for name in names[:20]) or "none"
            raise ConfigError(f"There is no code named `{wanted}`: expected one of {known}")
        return found[names.index(wanted)]


def _scripts(paths: Sequence[Path]) -> list[Path]:
    """The scripts among `paths` and below their folders. Raises `ConfigError` if there is none."""
    found = [each for path in paths for each in (_scripts_below(path) if path.is_dir() else [path])]
    if not found:
        names = ", ".join(f"`{path}`" for path in paths)
        raise ConfigError(
            f"There is no `{SUFFIX}` file in {names}", hint="Name a script, or a folder that contains scripts"
        )
    return list(dict.fromkeys(found))


def _scripts_below(folder: Path) -> list[Path]:
    """The scripts below a folder, without links: a link may point to a file outside it."""
    return sorted(path for path in folder.rglob(f"*{SUFFIX}") if not path.is_symlink())


def _definition(script: Script, limits: str | None, commands: Sequence[str]) -> SubagentDefinition:
    """The definition of the script's agent with only this tool, or a minimal one for a script without an agent."""
    from remora.scripts import LIMITS

    if limits is not None and limits not in LIMITS:
        known = ", ".join(f"`{name}`" for name in LIMITS)
        raise ConfigError(f"There are no limits `{limits}`: expected one of {known}")
    file = script.path.absolute().parent.parent / "subagent.yaml"
    own = parse_definition(read_plain(file, MAX_BYTES).decode("utf-8-sig"), file) if file.is_file() else None
    entry = next((tool for tool in own.tools if tool.name == script.name), None) if own else None
    allowed = tuple(dict.fromkeys([*(own.programs if own else ()), *commands]))
    try:
        entry = entry or ToolEntry(name=script.name)
    except ValueError as error:
        raise ConfigError(
            f"`{script.name}` is not a valid tool name: expected lowercase letters, digits and `_`",
            hint=f"Rename `{script.path.name}`",
        ) from error
    if limits is not None:
        entry = entry.model_copy(update={"limits": limits})
    return SubagentDefinition(name="by_hand", goal="", system_prompt="", tools=(entry,), commands=allowed)


def _changes(workspace: OverlayWorkspace) -> tuple[Change, ...]:
    from remora.workspaces import Change

    return tuple(Change(each.path, each.before, each.after, each.mode) for each in workspace.take_changes())


def _diff(changes: Sequence[Change]) -> str:
    """A unified diff of the changes. Files beyond the limits are only named."""
    from remora.workspaces import unified

    lines, size, shown = MAX_DIFF_LINES, MAX_DIFF_BYTES, []
    for change in changes:
        sides = [side for side in (change.base, change.after) if side is not None]
        more, larger = sum(side.count(b"\n") + 1 for side in sides), sum(map(len, sides))
        if more > lines or larger > size:
            shown.append(f"File {change.path!a} differs: too much to show\n")
        else:
            lines, size = lines - more, size - larger
            shown.append(unified([change]))
    return "".join(shown)


def _error_output(error: ToolError) -> ToolOutput:
    return ToolOutput(make_error_result(error.message), error.prints, error.outputs)


def _empty_node() -> CodeNode:
    whole = LineRange(first=1, last=1)
    return CodeNode(
        node_id="", node_type=NodeType.FILE, name="", file_path=Path(), lines=whole, owned=(whole,), text=""
    )
