"""What a project's own linter reports about a file, by the settings that the lint agent finds."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

from remora.app._agents import bundled_agents
from remora.sandbox._allow import find_program


class ProjectLinter:
    """Counts what the linter of one project reports."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._settings = _load_settings(root)

    def count(self, path: str, text: str) -> Counter[str]:
        """The number of errors in a file with this text, by rule."""
        found: dict[str, Any] = asyncio.run(self._settings.find_settings(path))
        argv = [str(find_program("ruff")), "check", "--output-format=json", "--no-cache", "--no-fix", "--force-exclude"]
        done = subprocess.run(
            [*argv, *found["flags"], f"--stdin-filename={path}", "-"],
            cwd=self._root,
            input=text.encode(),
            capture_output=True,
            check=False,
            timeout=60,
        )
        reported = json.loads(done.stdout) if done.returncode in (0, 1) else []
        codes = [str(error["code"]) for error in reported]
        return Counter(code for code in codes if not self._settings.is_off(code, path, found))


def _load_settings(root: Path) -> ModuleType:
    """The module of the lint agent that reads settings, with files of this project."""
    path = bundled_agents() / "lint" / "tools" / "settings.py"
    spec = importlib.util.spec_from_file_location("lint_settings", path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"`{path}` cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    async def read_file(name: str) -> str:
        return (root / name).read_text(encoding="utf-8")

    module.read_file = read_file  # type: ignore[attr-defined]
    module.FOUND.clear()
    return module


def new_type_errors(root: Path, path: str, before: str, after: str) -> tuple[str, ...]:
    """What mypy, with the project's settings, reports about the project with `after` and not with `before`.

    Nothing if mypy is not installed. The file is as before afterwards.
    """
    if importlib.util.find_spec("mypy") is None:
        return ()
    file = root / path
    kept = file.read_bytes()
    try:
        found = []
        for text in (before, after):
            file.write_text(text, encoding="utf-8")
            argv = [sys.executable, "-m", "mypy", "--cache-dir=/dev/null", "--no-error-summary", "--no-pretty", path]
            done = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False, timeout=300)
            found.append(Counter(re.findall(r"^(\S+?):\d+.*?: error: (.*)$", done.stdout, re.MULTILINE)))
        return tuple(f"{name}: {said}" for name, said in found[1] - found[0])
    finally:
        file.write_bytes(kept)
