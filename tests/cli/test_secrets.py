"""Keys in the environment: never in a child, a stream, a packet, a page or a log."""

from __future__ import annotations

import base64
import gzip
import subprocess
from collections.abc import Callable
from pathlib import Path

Remora = Callable[..., subprocess.CompletedProcess[str]]

CANARY = "canary-4b1d-9f8e7d6c5b4a"


def test_a_key_in_the_environment_is_nowhere_on_the_disk_or_the_screen(shop: Path, remora: Remora) -> None:
    # The key also stands in the code, so that a linter repeats it in its messages.
    encoded = base64.b64encode(CANARY.encode()).decode()
    (shop / "leak.py").write_text(f"import {CANARY.replace('-', '_')}\nx = '{CANARY}' == None, '{encoded}' == None\n")
    environment = {"SHOP_API_KEY": CANARY, "SHOP_TOKEN": CANARY.replace("-", "_")}
    done = remora("analyze", "leak.py", env=environment)
    assert done.returncode == 0, done.stderr
    shown = done.stdout + done.stderr
    for command in (["trace", "search", "import"], ["trace", "ls"], ["diff"]):
        shown += remora(*command, env=environment).stdout
    kept = {path: _content(path) for path in (shop / ".agentfs").rglob("*") if path.is_file()}
    own_files = {data for path, data in kept.items() if "workspaces" in path.parts}
    for form in (CANARY, CANARY.replace("-", "_"), encoded):
        assert form not in shown.replace("leak.py", "")
        for path, data in kept.items():
            # A workspace keeps the user's own file as it is: it could not be accepted otherwise.
            if data in own_files or data == (shop / "leak.py").read_bytes():
                continue
            assert form.encode() not in data, path


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data
