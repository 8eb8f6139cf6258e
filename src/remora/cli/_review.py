"""The commands for agents' changes: diff, accept, reject, undo."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from remora.app import Accepted, AgentDiff
from remora.cli import _render_review as render
from remora.cli._console import (
    HERE,
    SOME_FAILED,
    JsonFlag,
    ProjectDir,
    StateDir,
    errors_as_sentences,
    out,
    print_json,
    say,
    tell,
)
from remora.cli._indexing import indexing_progress
from remora.cli._opening import open_to_read
from remora.cli._progress import delayed_progress
from remora.cli._showing import Clean, ShowSecrets, showing
from remora.errors import ConfigError

review = typer.Typer(add_completion=False, rich_markup_mode=None)

AgentId = Annotated[
    str | None,
    typer.Argument(help="Agent or run, by the start or end of its id; default: the latest run with open changes"),
]
Files = Annotated[list[str] | None, typer.Option("--file", "-f", help="Only this file; can be repeated")]
Interactive = Annotated[
    bool, typer.Option("--interactive", "-i", help="Show each file's changes and ask whether to accept")
]


@review.command()
def diff(
    agent: AgentId = None,
    file: Files = None,
    by_agent: Annotated[bool, typer.Option("--by-agent", help="One diff for each agent, not merged")] = False,
    show_secrets: ShowSecrets = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Show open changes: those that are neither accepted nor rejected.

    The changes of all agents are merged into one diff of your files as they are now, which `git apply` accepts. On a
    terminal, what looks like a secret is redacted; a patch in a file or a pipe is exact.
    An agent whose changes conflict with the others is left out and named. `--json` has each agent's own changes.

    \b
    Examples:
      remora diff
      remora diff > changes.patch && git apply changes.patch
      remora diff 7GX2KQF --file src/cart.py
      remora diff --by-agent
    """
    with errors_as_sentences(), showing(show_secrets or not _is_shown(json)) as clean:
        opened = open_to_read(project, state_dir)
        with indexing_progress(opened, quiet=json), delayed_progress(quiet=json) as progress:
            if by_agent or json:
                found = asyncio.run(opened.review.diff(agent, file or (), progress=progress))
            else:
                merged = asyncio.run(opened.review.merged_diff(agent, file or (), progress=progress))
        tell(opened.changes.notices)
        if json:
            print_json([_as_json(item) for item in found])
        elif by_agent:
            render.diffs(clean(found))
        else:
            tell(merged.left_out)
            render.merged_diff(clean(merged))


@review.command()
def accept(
    agent: AgentId = None,
    file: Files = None,
    interactive: Interactive = False,
    show_secrets: ShowSecrets = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Write agents' changes into your files. Your own edits are merged, or the agent is refused as a conflict.

    All files of an agent are written or none, even if the command is killed. `remora undo` reverts an accept.

    \b
    Examples:
      remora accept
      remora accept 7GX2KQF --file src/cart.py
      remora accept -i
    """
    with errors_as_sentences(), showing(show_secrets) as clean:
        if interactive and json:
            raise ConfigError("`--interactive` and `--json` cannot be combined: expected one of them")
        opened = open_to_read(project, state_dir)
        chosen = _choose(asyncio.run(opened.review.diff(agent, file or ())), clean) if interactive else None
        with delayed_progress(quiet=json) as progress:
            done = clean(asyncio.run(opened.review.accept(agent, file or (), chosen=chosen, progress=progress)))
        tell(opened.changes.notices)
        print_json(done) if json else render.accepted(done)
    raise typer.Exit(_exit_code(done))


@review.command()
def reject(
    agent: AgentId = None,
    file: Files = None,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Reject agents' changes, so that they are no longer open. Your files do not change.

    \b
    Examples:
      remora reject 7GX2KQF
      remora reject --file src/cart.py
    """
    with errors_as_sentences():
        opened = open_to_read(project, state_dir)
        done = asyncio.run(opened.review.reject(agent, file or ()))
        tell(opened.changes.notices)
        print_json(done) if json else render.rejected(done)


@review.command()
def undo(
    agent: Annotated[
        str | None, typer.Argument(help="Agent whose latest accept to undo; default: the latest accept of all")
    ] = None,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Undo the latest accept. Your later edits are kept, or the undo is refused as a conflict.

    \b
    Examples:
      remora undo
      remora undo 7GX2KQF
    """
    with errors_as_sentences():
        opened = open_to_read(project, state_dir)
        with delayed_progress(quiet=json) as progress:
            done = asyncio.run(opened.review.undo(agent, progress=progress))
        tell(opened.changes.notices)
        print_json(done) if json else render.undone(done)
    raise typer.Exit(_exit_code(done))


def _is_shown(json: bool) -> bool:
    """Whether a person reads the changes. A patch that a program reads stays exact, so that it can be applied."""
    return out.is_terminal and not json


def _as_json(item: AgentDiff) -> dict[str, object]:
    paths = [change.path for change in item.changes]
    summary = item.summary
    return {
        "agent_id": summary.agent_id,
        "node_id": summary.node_id,
        "operation": summary.operation,
        "verdict": summary.verdict,
        "why": summary.check.get("why", ""),
        "unsafe": summary.verdict == render.UNSAFE,
        "files": paths,
        "diff": item.text,
    }


def _exit_code(done: Sequence[Accepted]) -> int:
    return SOME_FAILED if any(item.conflict for item in done) else 0


def _choose(found: Sequence[AgentDiff], clean: Clean) -> dict[str, list[str]]:
    """Ask about each file and collect the accepted ones by agent. `q` or the end of the input leaves the rest open."""
    chosen: dict[str, list[str]] = {}
    for item, shown in zip(found, clean(found), strict=True):
        for change, text in zip(item.changes, shown.patches, strict=True):  # a redacted path would name no file
            say(render.title(shown), "bold")
            render.patch(text.rstrip("\n").split("\n"))
            answer = _ask(clean(change.path))
            if answer == "q":
                return chosen
            if answer == "y":
                chosen.setdefault(item.summary.agent_id, []).append(change.path)
    return chosen


def _ask(path: str) -> str:
    """Ask until the answer is `y`, `n` or `q`."""
    while True:
        say(f"Accept the changes of {path}? y: yes, n: not now, q: stop asking")
        answer = sys.stdin.readline()
        if not answer or answer.strip().lower() in ("y", "n", "q"):
            return answer.strip().lower() or "q"
