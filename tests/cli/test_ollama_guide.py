"""The guide to Ollama, followed literally, against a server that speaks Ollama's protocol."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cli.warm import WarmCommand
from inference.fakes import DONE, FakeServer, LikeOllama, Wire, chunk, stream

GUIDE = Path(__file__).parents[2] / "docs/guides/your-code-with-ollama.md"
ELSEWHERE = """
import dataclasses
from remora.inference import PRESETS
PRESETS["ollama"] = dataclasses.replace(PRESETS["ollama"], url={url!r})
"""


@dataclass
class SensibleModel(LikeOllama):
    """Takes the packet's first candidate, and submits where there is none."""

    def _complete(self, wire: Wire) -> None:
        packet, _ = json.JSONDecoder().raw_decode(wire.request.body["messages"][-1]["content"])
        offered = packet.get("candidate_actions") or [{"tool": "submit_result", "args": {"summary": "Done"}}]
        chosen = {"tool": offered[0]["tool"], "args": offered[0].get("args", {})}
        usage = {"prompt_tokens": 300, "completion_tokens": 9, "total_tokens": 309}
        stream(chunk(json.dumps(chosen)), chunk(finish="stop"), chunk(choices=[], usage=usage), DONE)(wire)


def commands() -> list[str]:
    shells = re.findall(r"^```console\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [line.removeprefix("$ remora ") for text in shells for line in text.splitlines() if "$ remora " in line]


def test_every_command_of_the_guide_works_as_written_up_to_an_accepted_change(
    tmp_path: Path, warm: WarmCommand
) -> None:
    file = tmp_path / "src" / "cart.py"
    file.parent.mkdir()
    file.write_text("import os\n\n\ndef total(prices):\n    import sys\n    return sum(prices)\n")
    (tmp_path / ".git").mkdir()
    texts = [file.read_text()]
    with FakeServer(SensibleModel(reply=lambda wire: None)) as ollama:
        for command in commands():
            done = run(warm, command, ollama.url, tmp_path)
            assert done.returncode == 0, (command, done.stderr)
            assert done.stdout, command
            texts += [file.read_text()] if file.read_text() != texts[-1] else []
    asked = [request for request in ollama.asked if request.path == "/v1/chat/completions"]
    assert {request.body["model"] for request in asked} == {"qwen3:4b"}
    assert len(texts) == 4, "accept of one agent, undo, accept of all"
    assert texts[0] == texts[2]
    assert "import" not in texts[-1]


def run(warm: WarmCommand, command: str, url: str, project: Path) -> subprocess.CompletedProcess[str]:
    argv = shlex.split(command)
    if "AGENT" in argv:
        argv[argv.index("AGENT")] = max((project / ".agentfs" / "traces").glob("*.jsonl")).stem
    settings = os.environ | {"REMORA_CONFIG_DIR": str(project / "settings")}
    return warm.run(tuple(argv), project, settings, "", before=ELSEWHERE.format(url=url))
