"""`remora trace`: reading the Long Track."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from remora import analysis, app
from remora.cli import _render as render
from remora.cli._console import (
    ALL_FAILED,
    HERE,
    SOME_FAILED,
    JsonFlag,
    ProjectDir,
    StateDir,
    errors_as_sentences,
    print_json,
    slow_progress,
    tell,
)
from remora.cli._indexing import shown_indexing
from remora.cli._render_transcript import transcript as render_transcript
from remora.errors import ConfigError
from remora.trace import Filter, Retention

trace = typer.Typer(help="Read the Long Track.", no_args_is_help=True, add_completion=False, rich_markup_mode=None)

StreamId = Annotated[str, typer.Argument(help="Agent or run, by the beginning or end of its id")]
Run = Annotated[str | None, typer.Option("--run", help="Only this run, by the beginning or end of its id")]
Node = Annotated[str | None, typer.Option("--node", help="Only this node, such as src/cart.py:load")]
Operation = Annotated[str | None, typer.Option("--operation", "-o", help="Only this operation, such as lint")]
Tool = Annotated[str | None, typer.Option("--tool", help="Only where this tool was used")]
Outcome = Annotated[str | None, typer.Option("--outcome", help="Only with this outcome, such as success or error")]
Since = Annotated[str | None, typer.Option("--since", help="From this moment on, such as 2026-11-15T18:00")]
Tokenizer = Annotated[
    Path | None, typer.Option(help="Count by this GGUF file or `tokenizer.json`; estimated without one")
]
SHOWN = 100
"""Streams that `ls` shows unless it is asked for more: what a person looks through."""
Until = Annotated[str | None, typer.Option("--until", help="Before this moment")]


@trace.command()
def ls(
    run: Run = None,
    node: Node = None,
    operation: Operation = None,
    tool: Tool = None,
    outcome: Outcome = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"At most this many, the newest; {SHOWN} by default, with --json all")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="However many there are")] = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """List the newest agents' streams, in the order in which they were recorded.

    \b
    Examples:
      remora trace ls
      remora trace ls --outcome error --since 2026-11-15
      remora trace ls --all
    """
    with errors_as_sentences():
        if every and limit is not None:
            raise ConfigError("`--all` and `--limit` contradict each other: expected one of them")
        wanted = Filter(run, node, operation, tool, outcome, since, until)
        opened = app.open_project(project, state_dir=state_dir)
        with shown_indexing(opened, quiet=json):
            library = opened.library
            rows = library.agents(wanted)
        tell(library.notices)
        shown = rows if every or (json and limit is None) else rows[-(limit or SHOWN) :]
        print_json(shown) if json else render.streams(shown, older=len(rows) - len(shown))


@trace.command()
def show(
    stream: StreamId,
    events: Annotated[bool, typer.Option("--events", help="Every event, one line each")] = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Show an agent's run on both tracks, turn by turn, or every event of a stream.

    Of a damaged stream, all before the damage is shown; then the damage is named, and the exit code is 1.

    \b
    Examples:
      remora trace show 7GX2KQF
      remora trace show 7GX2KQF --events
    """
    with errors_as_sentences():
        library = app.open_project(project, state_dir=state_dir).library
        found = library.intact(stream)
        if json:
            print_json([event.model_dump(exclude_defaults=True) for event in found])
        elif events or library.is_run(stream):
            for event in found:
                render.event_line(event)
        elif (summary := analysis.summarize(found)).events:
            tell(summary.notices)
            render.both_tracks(summary, {})
        if found.damage:
            raise found.damage


@trace.command()
def tail(
    stream: StreamId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is still to come")] = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Show a stream's events as they come, until it is sealed or you stop it.

    \b
    Examples:
      remora trace tail 7GX2KQF -f
    """

    async def follow_it() -> None:
        async for event in app.open_project(project, state_dir=state_dir).library.tail(stream, follow=follow):
            render.event_json(event) if json else render.event_line(event)

    with errors_as_sentences():
        asyncio.run(follow_it())


@trace.command()
def search(
    words: Annotated[list[str], typer.Argument(help="Words that an event's texts must all hold")],
    run: Run = None,
    node: Node = None,
    operation: Operation = None,
    tool: Tool = None,
    outcome: Outcome = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, help="At most this many")] = 50,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Find events by the words in their summaries and in the beginning of their raw results, newest stream first.

    \b
    Examples:
      remora trace search unused import
      remora trace search timeout --tool run_linter --outcome error
    """
    with errors_as_sentences():
        wanted = Filter(run, node, operation, tool, outcome, since, until)
        opened = app.open_project(project, state_dir=state_dir)
        with shown_indexing(opened, quiet=json):
            library = opened.library
            hits = library.search(" ".join(words), wanted, limit=limit)
        tell(library.notices)
        print_json(hits) if json else render.hits(hits)


@trace.command()
def replay(
    stream: StreamId,
    to: Annotated[
        int | None, typer.Option("--to", help="The packet after this turn; after the last one if left out")
    ] = None,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Fold a stream again: the packet at any turn, held against what each receipt says was shown.

    Exit code 1 if a receipt names another packet than the one folded now.

    \b
    Examples:
      remora trace replay 7GX2KQF --to 2
    """
    with errors_as_sentences():
        result = analysis.replay(app.open_project(project, state_dir=state_dir).library.events(stream), to)
        print_json(result) if json else render.replayed(result)
    raise typer.Exit(0 if result.first_difference is None else SOME_FAILED)


@trace.command()
def explain(
    key: Annotated[str, typer.Argument(help="A knowledge key, an extension, or a field such as last_error")],
    stream: StreamId,
    at: Annotated[int | None, typer.Option("--at", help="As of this turn; the last one if left out")] = None,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Why did it believe this? From the packet to the event to the raw result.

    \b
    Examples:
      remora trace explain lint_errors_remaining 7GX2KQF --at 2
    """
    with errors_as_sentences():
        found, raw = asyncio.run(app.open_project(project, state_dir=state_dir).streams.explain(key, stream, at))
        print_json({"explanation": found, "raw": raw}) if json else render.explained(found, raw)
    raise typer.Exit(0 if found.known else SOME_FAILED)


@trace.command()
def verify(
    stream: Annotated[str | None, typer.Argument(help="Agent or run; all of them if left out")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Look whether blobs are there, and do not read them")] = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Prove from the bytes that streams are whole, with every blob that they name. Exit code 1 if one is damaged.

    Every line is held against the next, the last ones against the heads that were noted in `heads.log` when a stream
    was closed. A stream without its last event is called unsealed, never intact.

    What is not found: changes that were made by someone with your own rights who also rewrote `heads.log`, and a
    change in the very last line of a stream that nobody has closed yet. What else could not be checked is said at the
    end.

    \b
    Examples:
      remora trace verify
      remora trace verify 7GX2KQF
      remora trace verify --quick
    """
    with errors_as_sentences():
        library = app.open_project(project, state_dir=state_dir).library
        with slow_progress("streams", quiet=json) as progress:
            found = library.verify(stream, quick=quick, progress=progress)
        print_json(found) if json else render.verified(found)
    raise typer.Exit(SOME_FAILED if found.damaged else 0)


@trace.command()
def prune(
    older_than: Annotated[float | None, typer.Option(metavar="DAYS", help="Streams older than this go")] = None,
    max_bytes: Annotated[int | None, typer.Option(help="The oldest go until all together take no more")] = None,
    keep_last: Annotated[
        int | None, typer.Option(help="The newest of each operation stay; alone, the rest goes")
    ] = None,
    keep_failed: Annotated[bool, typer.Option(help="Failed runs stay")] = True,
    blobs_only: Annotated[
        bool, typer.Option("--blobs-only", help="Only large values go; streams still verify")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go")] = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Delete whole sealed streams that the rules let go, and the blobs that no other stream names.

    \b
    Examples:
      remora trace prune --older-than 30 --dry-run
      remora trace prune --keep-last 100
    """
    with errors_as_sentences():
        library = app.open_project(project, state_dir=state_dir).library
        rules = Retention(older_than, max_bytes, keep_last, keep_failed)
        plan = library.plan_prune(rules, datetime.now(UTC), blobs_only=blobs_only)
        result = None if dry_run else library.prune(plan)
        print_json({"plan": plan, "result": result}) if json else render.pruned(plan, result)


@trace.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(help="Chat logs (JSON, JSONL) or SWE-agent trajectories")],
    tokenizer: Tokenizer = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", min=1, help="Tokens of the packet beside system text and tools; 3,000 by default"),
    ] = None,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Turn chat logs of other programs into streams: one conversation, one sealed stream.

    Exit code 1 if a conversation could not be read, 2 if none could; those that could are kept.

    \b
    Examples:
      remora trace import chats.jsonl
      remora trace import runs/*.traj --tokenizer model.gguf --budget 1000
    """
    with errors_as_sentences():
        streams = app.open_project(project, state_dir=state_dir).streams
        done = asyncio.run(streams.import_chats(files, tokenizer=tokenizer, budget=budget))
        tell(f"skipped: {problem}" for problem in done.problems)
        print_json(done) if json else render.imports(done)
    raise typer.Exit(0 if not done.problems else SOME_FAILED if done.streams else ALL_FAILED)


@trace.command()
def tokens(
    stream: StreamId,
    tokenizer: Tokenizer = None,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Show what each turn sent, and what chat history would have sent in its place.

    \b
    Examples:
      remora trace tokens 7GX2KQF
      remora trace tokens 7GX2KQF --tokenizer model.gguf --json
    """
    with errors_as_sentences():
        report = asyncio.run(app.open_project(project, state_dir=state_dir).streams.tokens(stream, tokenizer=tokenizer))
        print_json(report) if json else render.tokens(report)


@trace.command()
def transcript(
    stream: StreamId,
    full: Annotated[bool, typer.Option("--full", help="Results whole, however long")] = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Show a run as a conversation: each prompt exactly as sent, each reply, each call and what came back.

    The system text stands where it is first sent, and again only where it changes.

    \b
    Examples:
      remora trace transcript 7GX2KQF
      remora trace transcript 7GX2KQF --full --json
    """
    with errors_as_sentences():
        entries = asyncio.run(app.open_project(project, state_dir=state_dir).streams.transcript(stream, full=full))
        print_json(entries) if json else render_transcript(entries)
