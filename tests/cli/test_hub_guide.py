"""The Hub's guide: its commands work as written, and say what the guide says that they say."""

from __future__ import annotations

import re
from pathlib import Path

from cli.conftest import Remora

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "facts-from-other-files.md"


def test_the_guide_is_true(shop: Path, remora: Remora) -> None:
    text, said = GUIDE.read_text(encoding="utf-8"), ""
    commands = re.findall(r"^    ((?:REMORA_\S+ )?remora .*)$", text, re.MULTILINE)
    assert len(commands) >= 8
    for command in commands:
        words = command.split()
        settings = dict(word.split("=") for word in words if word.startswith("REMORA_"))
        argv = words[words.index("remora") + 1 :]
        if "AGENT" in argv:
            argv[argv.index("AGENT")] = next((shop / ".agentfs" / "traces").glob("*.jsonl")).stem
        done = remora(*argv, env=settings)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        said += done.stdout
    for block in re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        assert block in said
