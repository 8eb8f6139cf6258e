"""`remora trace import`: convert logs of other agents to streams."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remora import app
from remora.cli._console import (
    ALL_FAILED,
    HERE,
    SOME_FAILED,
    JsonFlag,
    ProjectDir,
    StateDir,
    errors_as_sentences,
    parse_path,
    print_json,
    say,
    tell,
)
from remora.cli._filters import Tokenizer
from remora.cli._progress import delayed_progress
from remora.cli._showing import showing
from remora.context.text import number, one_line
from remora.events import short_id

if TYPE_CHECKING:
    from remora.app import Imported, Imports

SHOWN = 50
"""Imported streams that are listed."""


def import_(
    files: Annotated[
        list[Path], typer.Argument(parser=parse_path, help="Logs, or folders of logs, such as ~/.claude/projects")
    ],
    tokenizer: Tokenizer = None,
    packets: Annotated[
        bool,
        typer.Option("--packets", help="Also record the packet and its prompt at every turn; slower"),
    ] = False,
    budget: Annotated[
        int | None,
        typer.Option("--budget", min=1, help="Record packets of so many tokens, beside system text and tools"),
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            "--format", help="claude-code, codex, otel, exchanges, chat or messages; default: look at the log"
        ),
    ] = "",
    again: Annotated[bool, typer.Option("--again", help="Also import what was imported before")] = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Import logs of other agents. Each conversation becomes one sealed stream; nothing is sent anywhere.

    Reads sessions of Claude Code and Codex, OpenAI and Anthropic messages and requests, trajectories of SWE-agent,
    mini-swe-agent and ATIF, Inspect logs, tau-bench results and OpenTelemetry GenAI spans. A sub-agent's stream names
    its parent.

    `trace tokens`, `trace transcript`, `trace what-if` and `view` build packets and prompts from the stream when you
    ask for them. `--packets`, `--budget` or `--tokenizer` record them with it.

    A conversation that was imported before, from a log with the same bytes, is not imported again without `--again`.

    Exit code 1 if some conversations could not be read, 2 if none could. The others are imported.

    \b
    Examples:
      remora trace import ~/.claude/projects
      remora trace import runs/*.traj --tokenizer model.gguf --budget 1000
    """
    with errors_as_sentences(), showing(flag=False) as clean:
        streams = app.open_project(project, state_dir=state_dir).streams
        with delayed_progress(quiet=json, unit="bytes") as progress:
            work = streams.import_chats(
                files,
                tokenizer=tokenizer,
                budget=budget,
                packets=packets,
                format=format,
                again=again,
                progress=progress,
            )
            done = asyncio.run(work)
        _tell_skipped(done.problems)
        tell(done.notices)
        shown = clean(done)
        print_json(shown) if json else _print(shown)
    raise typer.Exit(0 if not done.problems else SOME_FAILED if done.streams else ALL_FAILED)


def _tell_skipped(problems: Sequence[str]) -> None:
    tell(f"skipped: {problem}" for problem in problems[:SHOWN])
    if len(problems) > SHOWN:
        tell([f"{len(problems) - SHOWN:,} more were skipped; `--json` names them all"])


def _print(done: Imports) -> None:
    """Print each imported conversation, sub-agents below the agent that started them."""
    known = {item.agent_id for item in done.streams}
    for item in done.streams[:SHOWN]:
        _print_one(item, child=item.parent in known)
    if len(done.streams) > SHOWN:
        say(f"… {len(done.streams) - SHOWN:,} more: `remora trace ls -o import --all`")
    skipped = f", {len(done.problems):,} skipped" if done.problems else ""
    say(f"{len(done.streams):,} imported{skipped}")
    if done.streams:
        longest = max(done.streams, key=lambda item: item.turns)
        say(f"Next: remora trace show {short_id(longest.agent_id)}, remora trace tokens {short_id(longest.agent_id)}")


def _print_one(item: Imported, *, child: bool) -> None:
    mark = " └" if child else "✓"
    where, what = one_line(item.source, 24), one_line(item.title or item.goal, 30)
    say(f"{mark:<2} {short_id(item.agent_id)} {number(item.turns, 'turn'):>10}  {where:<24} {what}", "green")
