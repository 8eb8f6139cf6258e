"""`remora trace report`: what agents were asked, what they did, and how they were judged."""

from __future__ import annotations

import asyncio
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from remora import analysis
from remora.cli._console import (
    HERE,
    SOME_FAILED,
    JsonFlag,
    ProjectDir,
    StateDir,
    errors_as_sentences,
    json_text,
    out,
    plain,
    slow_progress,
    tell,
    whole_file,
)
from remora.cli._filters import Node, Operation, Outcome, Since, Until
from remora.cli._indexing import indexing_progress
from remora.cli._opening import open_to_read
from remora.context.text import number, visible
from remora.events import short_id
from remora.trace import Filter


class Format(StrEnum):
    """The formats of a report."""

    MD = "md"
    HTML = "html"
    JSON = "json"
    SARIF = "sarif"


class FailOn(StrEnum):
    """When the exit code is 1."""

    NEVER = "never"
    FAILED = "failed"
    LEFT = "left"
    PROPOSED = "proposed"


Ids = Annotated[
    list[str] | None, typer.Argument(help="Agents or runs, by the start or end of their ids; default: the latest run")
]
Output = Annotated[Path | None, typer.Option("--output", "-O", help="Write to this file instead of stdout")]


def report(
    ids: Ids = None,
    operation: Operation = None,
    node: Node = None,
    outcome: Outcome = None,
    since: Since = None,
    until: Until = None,
    kind: Annotated[Format, typer.Option("--format", help="Format of the report")] = Format.MD,
    output: Output = None,
    losses: Annotated[
        bool, typer.Option(help="Search for values that calls used although prompts no longer contained them")
    ] = True,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            help="Exit with 1 if an agent failed, or also if it left problems, or also if it proposes changes"
        ),
    ] = FailOn.NEVER,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Report what agents were asked, what they did, and what their checks say about the files.

    Over many agents: success by operation and model, usual failures, slow tools, and what summaries lost. Text that
    looks like a secret is redacted. The exit code is 0 unless `--fail-on` says otherwise.

    \b
    Examples:
      remora trace report
      remora trace report 7GX2KQF --format html -O report.html
      remora trace report --since 2026-11-01 --format json
      remora trace report --format sarif -O remora.sarif --fail-on failed
    """
    with errors_as_sentences():
        opened = open_to_read(project, state_dir)
        wanted = Filter(operation=operation, node=node, outcome=outcome, since=since, until=until)
        wanted_kind = Format.JSON if json else kind
        with indexing_progress(opened), slow_progress("agents", quiet=False) as progress:
            found = asyncio.run(opened.streams.report(ids or (), wanted, losses=losses, progress=progress))
        tell(f"agent {short_id(agent.agent_id)}: {agent.damage}" for agent in found.agents if agent.damage)
        _write(_rendered(found, wanted_kind), output)
        if output is not None:
            tell([f"{number(len(found.agents), 'agent')}: written to {output}"])
    raise typer.Exit(_exit_code(found, fail_on))


def _rendered(found: analysis.Report, kind: Format) -> str:
    match kind:
        case Format.MD:
            return analysis.markdown(found)
        case Format.HTML:
            return analysis.html(found)
        case Format.SARIF:
            return _json(analysis.sarif(found))
        case Format.JSON:
            return _json(analysis.report_json(found))


def _json(value: Any) -> str:
    return json_text(orjson.dumps(value, default=plain, option=orjson.OPT_INDENT_2)) + "\n"


def _write(text: str, output: Path | None) -> None:
    if output is not None:
        with whole_file(output) as file:
            file.write(text)
    else:
        sys.stdout.write(visible(text) if out.is_terminal else text)


def _exit_code(found: analysis.Report, fail_on: FailOn) -> int:
    left = any(status not in ("done", "imported") for status in found.statuses)
    proposed = left or any(file.decision == "open" for agent in found.agents for file in agent.files)
    failed = "failed" in found.statuses
    bad = {FailOn.NEVER: False, FailOn.FAILED: failed, FailOn.LEFT: left, FailOn.PROPOSED: proposed}
    return SOME_FAILED if bad[fail_on] else 0
