"""Agents of four frameworks' own examples, with and without Remora: `python -m benchmarks.frameworks`.

Each runs with the same scripted model, in an environment of its own that is made on first use: as it is, and with the
adapter. What the model was sent is counted by the same tokenizer for both. `--write` puts the figures into the page.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, machine
from remora.analysis import words_in
from remora.inference import EstimatedCounter, GgufCounter
from remora.ports import TokenCounter
from remora_lab.marks import between_marks

sys.path.append(str(ROOT / "tests"))

from integrations.environments import python_with

AGENTS = {
    "rag": ("Pydantic AI: RAG over documentation", "pydantic-ai-slim"),
    "sql_agent": ("LangChain: SQL agent", "langchain"),
    "customer_service": ("OpenAI Agents: airline customer service", "openai-agents"),
    "text_to_sql": ("smolagents: text to SQL, in code", "smolagents"),
}
BUDGETS = {"rag": 1_500, "sql_agent": 2_500, "customer_service": 1_800, "text_to_sql": 4_500}
"""A smaller `budget` for the whole prompt. The code agent's system text alone takes about 3,400 by the estimate."""
PAGE = ROOT / "docs" / "benchmarks" / "frameworks.md"
RESULTS = ROOT / "benchmarks" / "results" / "frameworks.json"
BEGIN = "<!-- figures: `python -m benchmarks.frameworks --write` -->"
HEAD = "| agent | budget | requests | tokens a request | largest request | evidence | newest history instead |"


@dataclass(frozen=True)
class Row:
    """One agent: tokens of a request, and what its calls took from the past, before and after."""

    agent: str
    budget: int
    """0: the default."""
    requests: int
    mean_before: int
    mean_after: int
    largest_before: int
    largest_after: int
    scored: int
    """Requests whose calls used something from the past."""
    recall_before: float
    recall_after: float
    grounded_after: float
    recall_cut: float
    """The newest part of the history, with as many tokens as the adapter sent."""
    grounded_cut: float

    def line(self) -> str:
        cells = (
            "" if self.budget else AGENTS[self.agent][0],
            f"{self.budget:,}" if self.budget else "default",
            self.requests,
            f"{self.mean_before:,} → {self.mean_after:,}",
            f"{self.largest_before:,} → {self.largest_after:,}",
            f"{self.recall_after:.3f} / {self.grounded_after:.0%}",
            f"{self.recall_cut:.3f} / {self.grounded_cut:.0%}",
        )
        return "".join(f"| {cell} " for cell in cells) + "|"


def run(agent: str, folder: Path, *options: str) -> list[dict[str, Any]]:
    """Run an agent, and return its requests."""
    script = Path(__file__).parent / "agents" / f"{agent}.py"
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT / "src")}
    env |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    command = [python_with(agent), script, folder, *options]
    done = subprocess.run(command, cwd=folder, env=env, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{agent} failed:\n{done.stderr[-3000:]}")
    requests: list[dict[str, Any]] = json.loads((folder / "requests.json").read_text())
    return requests


Requests = Sequence[dict[str, Any]]


def compare(agent: str, budget: int, before: Requests, after: Requests, counter: TokenCounter) -> Row:
    """Compare the two runs, request by request. Their calls are the same."""
    assert [each["calls"] for each in before] == [each["calls"] for each in after], f"{agent}: the runs differ"
    sent = [[_tokens(each, counter) for each in several] for several in (before, after)]
    shares: dict[str, list[float]] = {"before": [], "after": [], "cut": []}
    for plain, packed in zip(before, after, strict=True):
        fixed = words_in(f"{plain['system']}\n{plain['tools']}")
        needed = (words_in(json.dumps(plain["calls"])) & words_in(plain["messages"])) - fixed
        if not needed:
            continue
        cut = _newest(plain["messages"], counter.count(packed["messages"]), counter)
        for name, text in (("before", plain["messages"]), ("after", packed["messages"]), ("cut", cut)):
            shares[name].append(len(needed & words_in(text)) / len(needed))
    means = {name: sum(several) / len(several) for name, several in shares.items()}
    whole = {name: sum(share == 1 for share in several) / len(several) for name, several in shares.items()}
    return Row(
        agent,
        budget,
        requests=len(before),
        mean_before=sum(sent[0]) // len(before),
        mean_after=sum(sent[1]) // len(after),
        largest_before=max(sent[0]),
        largest_after=max(sent[1]),
        scored=len(shares["after"]),
        recall_before=means["before"],
        recall_after=means["after"],
        grounded_after=whole["after"],
        recall_cut=means["cut"],
        grounded_cut=whole["cut"],
    )


def _tokens(request: dict[str, Any], counter: TokenCounter) -> int:
    return sum(counter.count(request[part]) for part in ("system", "messages", "tools"))


def _newest(text: str, tokens: int, counter: TokenCounter) -> str:
    """The last lines of a text, as many as the tokens allow."""
    kept: list[str] = []
    for line in reversed(text.splitlines()):
        tokens -= counter.count(line) + 1
        if tokens < 0:
            break
        kept.append(line)
    return "\n".join(reversed(kept))


def facts(counter: TokenCounter) -> str:
    """When, where and with what the figures were taken."""
    found = machine()
    code = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"
    versions = [
        f"{package} {subprocess.check_output([python_with(agent), '-c', code, package], text=True).strip()}"
        for agent, (_, package) in AGENTS.items()
    ]
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f"Measured on {when}: {found['cpu']}, {found['cores']} cores, {found['system']}, {', '.join(versions)}. "
        f"Tokens are counted by `{counter.name}`."
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frameworks")
    parser.add_argument("agents", nargs="*", help=f"of {', '.join(AGENTS)}; all of them by default")
    parser.add_argument("--tokenizer", type=Path, help="a GGUF file; without one, tokens are estimated")
    parser.add_argument("--write", action="store_true", help="write the figures into the page")
    options = parser.parse_args()
    counter: TokenCounter = GgufCounter(options.tokenizer) if options.tokenizer else EstimatedCounter()
    rows = []
    for agent in options.agents or AGENTS:
        with tempfile.TemporaryDirectory() as folder:
            before = run(agent, Path(folder))
        for budget in (0, BUDGETS[agent]):
            with tempfile.TemporaryDirectory() as folder:
                after = run(agent, Path(folder), "--tracks", *(["--budget", str(budget)] if budget else []))
            rows.append(compare(agent, budget, before, after, counter))
            print(rows[-1], file=sys.stderr)
    table = "\n".join([facts(counter), "", HEAD, "|---" * 7 + "|", *(row.line() for row in rows)])
    print(table)
    if options.write:
        RESULTS.write_text(json.dumps({"rows": [asdict(row) for row in rows]}, indent=1) + "\n")
        PAGE.write_text(between_marks(PAGE.read_text(), BEGIN, table))


main()
