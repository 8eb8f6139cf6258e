"""The guide to reviewing, followed literally."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remora.trace import claim

GUIDE = Path(__file__).parents[2] / "docs/guides/review-changes.md"


def test_every_command_of_the_guide_works_as_written(
    shop: Path, remora: Callable[..., Any], remora_json: Callable[..., Any], analyzed: Callable[..., Any]
) -> None:
    analyzed("shop")
    agent = next(item["agent_id"] for item in remora_json("diff") if "shop/cart.py" in item["files"])
    commands = re.findall(r"^\$ remora (.*)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) >= 10
    for number, command in enumerate(commands):
        argv = [agent[-7:] if word == "7GX2KQF" else word for word in shlex.split(command, comments=True)]
        here = shop.parent / f"copy{number}"
        shutil.copytree(shop, here)
        claim(here / ".agentfs")
        done = remora(*argv, cwd=here, text="y\nq\n")
        assert done.returncode == 0, (command, done.stderr)
        assert done.stdout, command
