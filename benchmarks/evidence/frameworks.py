"""Rows of real frameworks: each runs in an environment of its own, made on demand and cached outside the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.evidence.messages import step_messages
from benchmarks.evidence.rows import Count, Memory
from benchmarks.measure import ROOT, say
from remora.analysis import AssistantTurn, UserMessage

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "remora-benchmarks"
WITH = ("orjson", "pydantic>=2", "tokenizers")
"""Needed to count tokens with our tokenizer."""


@dataclass(frozen=True)
class Framework:
    """A framework: its module in `peers`, its pinned package, and its rows."""

    module: str
    package: str
    rows: tuple[str, ...]


FRAMEWORKS = (
    Framework("langchain", "langchain-core==1.7.0", ("LangChain trim_messages", "LangChain, task as system text")),
    Framework("pydantic_ai", "pydantic-ai-slim==2.66.0", ("Pydantic AI history processor",)),
    Framework("openai_agents", "openai-agents==0.24.0", ("OpenAI Agents ToolOutputTrimmer",)),
    Framework("strands", "strands-agents==1.62.0", ("Strands sliding window",)),
)


class FrameworkMemory:
    """One run's memory, kept by a framework in a child process."""

    def __init__(self, child: subprocess.Popen[str], variant: str, goal: str, count: Count) -> None:
        self._child, self._variant, self._number = child, variant, 0
        self._tell({"do": "start", "goal": goal})

    def take(self, step: UserMessage | AssistantTurn) -> None:
        self._number += 1
        self._tell({"do": "take", "messages": step_messages(step, self._number)})

    def show(self, budget: int) -> str:
        self._tell({"do": "show", "variant": self._variant, "budget": budget})
        assert self._child.stdin and self._child.stdout
        self._child.stdin.flush()
        answer = self._child.stdout.readline()
        if not answer:
            raise SystemExit(f"{self._variant}: the framework's process ended; its output is above")
        return str(json.loads(answer)["text"])

    def _tell(self, message: dict[str, object]) -> None:
        assert self._child.stdin
        self._child.stdin.write(json.dumps(message) + "\n")


def framework_rows(tokenizer: Path | None, wanted: list[str] | None) -> dict[str, Callable[[str, Count], Memory]]:
    """The rows of all frameworks that are wanted, with their processes started."""
    rows: dict[str, Callable[[str, Count], Memory]] = {}
    for framework in FRAMEWORKS:
        names = [name for name in framework.rows if wanted is None or name in wanted]
        if names:
            child = _start(framework, tokenizer)
            rows |= {name: partial(FrameworkMemory, child, name) for name in names}
    return rows


def _start(framework: Framework, tokenizer: Path | None) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [_python(framework), "-m", "benchmarks.evidence.peers.child", framework.module, str(tokenizer or "")]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )


def _python(framework: Framework) -> Path:
    """The interpreter of the framework's environment, which is made if it is missing."""
    folder = CACHE / f"{framework.package}-py{sys.version_info.major}.{sys.version_info.minor}"
    python, ready = folder / "bin" / "python", folder / ".ready"
    if not ready.exists():
        say(f"installing {framework.package} into {folder}, once")
        venv.create(folder, clear=True, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", framework.package, *WITH]
        subprocess.run(pip, check=True)
        ready.touch()
    return python
