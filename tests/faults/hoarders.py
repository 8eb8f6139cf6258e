"""Scripts that try to fill our own process through its host functions; a line of JSON for each says what came of it.

A process of its own, so that its memory is what the scripts made of it: `python hoarders.py FOLDER NAME [by hand]`.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

from remora.errors import ToolError
from remora.nodes import CodeNode, LineRange, NodeType
from remora.ports import ToolOutput
from remora.scripts import ScriptPool, ScriptTools, load
from remora.subagent import SubagentDefinition, ToolEntry
from remora.workspaces import OverlayWorkspace

HEAD = """from remora.scripts import external

@external
async def write_file(path: str, content: str) -> None: ...
@external
async def read_file(path: str) -> str: ...
@external
async def run_command(argv: list[str], stdin: str = "", files: dict[str, str] | None = None) -> dict: ...
@external
async def edit_node(path: str, part: str, text: str, node: str = "") -> None: ...
@external
async def search_content(pattern: str, glob: str = "") -> list[dict]: ...

import asyncio
x = 'x' * 4000000
"""

HOARDERS = {
    "many large files": "for i in range(999): await write_file(f'{i}', x)\n1",
    "many large files, errors caught": (
        "for i in range(900):\n    try:\n        await write_file(f'{i}', x)\n    except Exception: pass\n1"
    ),
    "one large file again and again": "for i in range(990): await write_file('a', x)\n1",
    "many writes at once": "await asyncio.gather(*[write_file(f'{i}', x) for i in range(900)])\n1",
    "many reads at once": "await asyncio.gather(*[read_file('large') for i in range(900)])\n1",
    "many reads of what is too large": (
        "async def one():\n    try:\n        await read_file('huge')\n    except OSError: pass\n"
        "await asyncio.gather(*[one() for i in range(900)])\n1"
    ),
    "large files made small": "for i in range(60): await write_file(f'huge{i}', '')\n1",
    "large outputs": "for i in range(30): await run_command(['ruff', 'check', '--output-format=json'], stdin=y)\n1",
    "large outputs at once": (
        "await asyncio.gather(*[run_command(['ruff', 'check', '--output-format=json'], stdin=y) for i in range(40)])\n1"
    ),
    "files for a command": (
        "await asyncio.gather(*[run_command(['ruff', 'check'], files={'a.py': x}) for i in range(100)])\n1"
    ),
    "empty prints": "for i in range(3000000): print(end='')\n1",
    "short prints": "for i in range(3000000): print('', end='ab')\n1",
    "searches at once": "await asyncio.gather(*[search_content('x', 'huge*') for i in range(100)])\n1",
    "edits at once": (
        "z = 'x = 1\\n' * 26000\n"
        "async def one():\n    try:\n        await edit_node('code.py', 'body', z, 'f')\n    except Exception: pass\n"
        "await asyncio.gather(*[one() for i in range(8)])\n1"
    ),
    "many short lines": "await write_file('a', '\\n' * 4000000)\n1",
}
NODE = CodeNode(
    node_id="code.py:f",
    node_type=NodeType.FUNCTION,
    name="f",
    file_path=Path("code.py"),
    lines=LineRange(first=1, last=2),
    owned=(LineRange(first=1, last=2),),
    text="",
)


def peak_mb() -> float:
    return int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) / 1024  # type: ignore[index]


def make_project(root: Path) -> None:
    (root / "code.py").write_text("def f():\n    pass\n" * 1)
    (root / "large").write_text("x" * 4_000_000)
    with (root / "huge").open("wb") as file:
        file.truncate(60_000_000)
    for number in range(60):
        with (root / f"huge{number}").open("wb") as file:
            file.truncate(40_000_000)


async def attempt(root: Path, name: str, source: str) -> dict[str, Any]:
    """The script as a tool of an agent."""
    from remora.discovery import PythonCode
    from remora.sandbox import LocalSpawner

    folder = root.parent / "tools"
    folder.mkdir(exist_ok=True)
    (folder / "tool.pym").write_text(HEAD + "y = 'import os\\n' * 4000\n" + source)
    script = load(folder / "tool.pym")
    definition = SubagentDefinition(
        name="a", goal="", system_prompt="", tools=(ToolEntry(name="tool", limits="permissive"),), commands=("ruff",)
    )
    workspace = OverlayWorkspace(root, root.parent / "state" / "workspaces" / "AGENT")
    told: dict[str, Any] = {"name": name}
    async with ScriptPool(max_processes=1) as pool:
        tools = ScriptTools(
            definition,
            {"tool": script},
            node=NODE,
            agent_id="AGENT",
            workspace=workspace,
            spawner=LocalSpawner(),
            root=root,
            pool=pool,
            code=PythonCode(),
        )
        warm = await pool.run("warm", "print('x' * 100)\n1", inputs={}, externals={})
        told["start"] = peak_mb() if warm.value == 1 else 0
        output: ToolOutput | None = None
        try:
            output = await tools.call("tool", {})
        except ToolError as error:
            told |= {"error": error.message[:300], "code": error.code}
        changes = workspace.take_changes()
        told |= {"files": len(changes), "peak": peak_mb(), "value": output.value if output else None}
    return told


async def by_hand(root: Path, name: str, source: str) -> dict[str, Any]:
    """The same as `remora tool run` does it, which also makes a diff."""
    from remora.app import open_project

    (root.parent / "tool.pym").write_text(HEAD + "y = 'import os\\n' * 4000\n" + source)
    (root.parent / "warm.pym").write_text("1")
    app = open_project(root)
    await app.tools.run(root.parent / "warm.pym", {})
    start = peak_mb()
    done = await app.tools.run(root.parent / "tool.pym", {}, limits="permissive", commands=("ruff",))
    error = done.distilled.delta.error
    return {"name": name, "start": start, "peak": peak_mb(), "error": str(error), "files": len(done.changes)}


async def main(folder: str, name: str, how: str = "") -> None:
    root = Path(folder) / "project"
    root.mkdir()
    make_project(root)
    told = await (by_hand if how else attempt)(root, name, HOARDERS[name])
    written = sum(path.stat().st_size for path in (root.parent / "state").rglob("*") if path.is_file())
    print(json.dumps(told | {"growth": round(told["peak"] - told["start"], 1), "written_mb": written / 1024 / 1024}))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
