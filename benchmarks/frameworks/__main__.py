"""Tokens and evidence of the same agent in four frameworks: `python -m benchmarks.frameworks`.

Runs `examples/frameworks` with a scripted model, each in an environment with its framework, and reads the streams.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import remora
from remora.analysis import TokenReport
from remora.trace import find_streams

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))

from integrations.environments import FRAMEWORKS, python_with  # noqa: E402


def measure(framework: str, folder: Path) -> TokenReport:
    """Run the framework's example in `folder` and count what its stream recorded."""
    example = ROOT / "examples" / "frameworks"
    env = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{example}"}
    subprocess.run(
        [python_with(framework), example / f"with_{framework}.py"], cwd=folder, env=env, check=True, capture_output=True
    )
    (stream,) = find_streams(folder / ".agentfs", "traces")
    project = remora.open_project(folder, state_dir=folder / ".agentfs")
    return asyncio.run(project.streams.tokens(stream.stem))


def main() -> None:
    print(
        "| framework | turns | largest prompt, history | largest prompt, packet | all turns, history | packet |", end=""
    )
    print(" used next, shown |\n|---|---|---|---|---|---|---|")
    for framework in sorted(FRAMEWORKS):
        with tempfile.TemporaryDirectory() as folder:
            report = measure(framework, Path(folder))
        figures = (report.largest_history, report.largest_packet, report.history_sent, report.sent)
        cells = " | ".join(f"{figure:,}" for figure in figures)
        print(f"| {framework} | {len(report.rows)} | {cells} | {report.recall or 0:.0%} |")


main()
