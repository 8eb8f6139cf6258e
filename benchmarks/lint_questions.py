"""Functions of other people's packages with one error that has no fix, each in a project of its own.

    python -m benchmarks.lint_questions FOLDER [--set 3]

`lint_questions.json` names them. Wheels are downloaded and never installed or imported. Each project selects one rule.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

QUESTIONS = Path(__file__).with_name("lint_questions.json")
PROJECT = """[project]
name = "x"
version = "1"
requires-python = ">=3.11"

[tool.ruff]
line-length = 100
lint.select = ["{rule}"]
"""
STRICT = "operations:\n  lint:\n    strict: true\n"


def main() -> None:
    """Write the projects, and a line for each: its folder and the definition to analyze."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", type=int, choices=(1, 2, 3))
    options = parser.parse_args()
    questions = [one for one in json.loads(QUESTIONS.read_text()) if options.set in (None, one["set"])]
    with tempfile.TemporaryDirectory() as wheels:
        _download({one["wheel"] for one in questions}, Path(wheels))
        for place, question in enumerate(questions):
            folder = options.folder / str(question["set"]) / f"{place % 25:02d}-{question['rule']}"
            _write(folder, question, Path(wheels) / question["wheel"])
            print(folder, f"{PurePosixPath(question['file']).name}:{question['node']}")


def _download(wheels: Iterable[str], folder: Path) -> None:
    pins = ["==".join(name.split("-")[:2]) for name in sorted(wheels)]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*pip, "-d", str(folder), *pins], check=True)


def _write(folder: Path, question: Mapping[str, Any], wheel: Path) -> None:
    folder.mkdir(parents=True)
    with zipfile.ZipFile(wheel) as packed:
        (folder / PurePosixPath(question["file"]).name).write_bytes(packed.read(question["file"]))
    (folder / "pyproject.toml").write_text(PROJECT.format(rule=question["rule"]))
    (folder / "remora.yaml").write_text(STRICT)


if __name__ == "__main__":
    main()
