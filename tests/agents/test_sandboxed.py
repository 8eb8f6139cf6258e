"""An agent of a project uses what the bundled agents use: shared modules, and code of its own in the sandbox."""

from __future__ import annotations

from pathlib import Path

import remora

DEFINITION = """
name: probe
goal: Look at {node}
system_prompt: Look.
tools: [{name: probe, effects: none}]
commands: [pytest]
"""
PROBE = '''
"""Call a function of the project."""
from remora.scripts import Input, external
from remora.scripts.shared.sandbox import pytest_files, read_report

name: str = Input("name")


@external
async def run_command(argv: list[str], stdin: str = "", files: dict = {}) -> dict: ...


path = "tests/test_probe.py"
files = await pytest_files(path, ["."], "probe.test_probe", ["probe", "calls"], {"name": name})
done = await run_command(["pytest", "-q", "-s", path], files=files)
{"summary": read_report(done["stdout"]) or done["stdout"] + done["stderr"]}
'''
SANDBOXED = """
import json
from pathlib import Path

from .calls import call

SPEC = json.loads(Path(__file__).with_name("spec.json").read_text())


def test_probe():
    print(SPEC["mark"] + json.dumps(call(SPEC["name"])) + SPEC["mark"])
"""
CALLS = "import shop\n\n\ndef call(name):\n    return getattr(shop, name)()\n"


async def test_an_own_agent_runs_its_sandboxed_code_and_leaves_nothing_in_the_project(tmp_path: Path) -> None:
    agent = tmp_path / "agents" / "probe"
    for name, text in {
        "subagent.yaml": DEFINITION,
        "tools/probe.pym": PROBE,
        "sandboxed/probe.py": SANDBOXED,
        "sandboxed/calls.py": CALLS,
        "../../shop.py": "def greet():\n    return 'hello from the project'\n",
        "../../remora.yaml": "",
    }.items():
        (agent / name).parent.mkdir(parents=True, exist_ok=True)
        (agent / name).write_text(text)
    done = await remora.open_project(tmp_path).tools.run(agent / "tools" / "probe.pym", {"name": "greet"})
    assert done.value["summary"] == "hello from the project"
    assert done.changes == ()
    assert not list(tmp_path.rglob("*_remora_sandboxed*"))
