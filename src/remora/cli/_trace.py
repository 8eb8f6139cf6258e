"""`remora trace`: read, check and prune streams."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from remora import analysis
from remora.cli import _render as render
from remora.cli._console import (
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
from remora.cli._escalate import escalate
from remora.cli._filters import Node, Operation, Outcome, Run, Since, StreamId, Tokenizer, Tool, Until
from remora.cli._import import import_
from remora.cli._indexing import indexing_progress
from remora.cli._opening import open_to_read
from remora.cli._render_transcript import transcript as render_transcript
from remora.cli._show import show
from remora.cli._showing import ShowSecrets, showing
from remora.cli._what_if import what_if
from remora.errors import ConfigError
from remora.trace import Filter, Retention

if TYPE_CHECKING:
    from remora.cli._showing import Clean
    from remora.trace import TraceEntry

trace = typer.Typer(
    help="Read, check and prune streams (the Long Track).",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
trace.command("import")(import_)

SHOWN = 100
"""Streams that `ls` shows by default."""

trace.command("what-if")(what_if)


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
        int | None, typer.Option(min=1, help=f"Show this many of the newest; default: {SHOWN}, or all with --json")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show all streams")] = False,
    show_secrets: ShowSecrets = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """List the newest agent streams in the order of recording.

    \b
    Examples:
      remora trace ls
      remora trace ls --outcome error --since 2026-11-15
      remora trace ls --all
    """
    with errors_as_sentences(), showing(show_secrets) as clean:
        if every and limit is not None:
            raise ConfigError("`--all` and `--limit` cannot be combined: expected one of them")
        wanted = Filter(run, node, operation, tool, outcome, since, until)
        opened = open_to_read(project, state_dir, lists=True)
        with indexing_progress(opened, quiet=json):
            library = opened.library
            if every or (json and limit is None):
                rows = library.agents(wanted)
                total = len(rows)
            else:
                rows, total = library.newest_agents(wanted, limit=limit or SHOWN)
            rows = clean(sorted(rows, key=lambda row: (row.started, row.stream_id)))
        tell(library.notices)
        print_json(rows) if json else render.streams(rows, older=total - len(rows))


trace.command()(show)


@trace.command()
def tail(
    stream: StreamId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for new events")] = False,
    show_secrets: ShowSecrets = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Print a stream's events; with `-f`, also new ones until the stream is sealed or you press Ctrl-C.

    \b
    Examples:
      remora trace tail 7GX2KQF -f
    """

    async def follow_it(clean: Clean) -> None:
        async for event in open_to_read(project, state_dir).library.tail(stream, follow=follow):
            render.event_json(clean(event)) if json else render.event_line(clean(event))

    with errors_as_sentences(), showing(show_secrets) as clean:
        asyncio.run(follow_it(clean))


@trace.command()
def search(
    words: Annotated[list[str], typer.Argument(help="Words that an event must contain")],
    run: Run = None,
    node: Node = None,
    operation: Operation = None,
    tool: Tool = None,
    outcome: Outcome = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results")] = 50,
    show_secrets: ShowSecrets = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Search summaries and the first part of raw results. The newest stream comes first.

    \b
    Examples:
      remora trace search unused import
      remora trace search timeout --tool run_linter --outcome error
    """
    with errors_as_sentences(), showing(show_secrets) as clean:
        wanted = Filter(run, node, operation, tool, outcome, since, until)
        opened = open_to_read(project, state_dir)
        with indexing_progress(opened, quiet=json):
            library = opened.library
            hits = clean(library.search(" ".join(words), wanted, limit=limit, clean=clean))
        tell(library.notices)
        print_json(hits) if json else render.hits(hits)


@trace.command()
def get(
    key: Annotated[str, typer.Argument(help="trace:RUN:OPERATION:NODE:TURN, or index:node:NODE, index:run:RUN, …")],
    show_secrets: ShowSecrets = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Read a key of the trace store: the tool calls of one turn, or the keys of all turns of a node, run or operation.

    Searches print the keys of turns with `--json`.

    \b
    Examples:
      remora trace get index:node:src/cart.py:load
      remora trace get trace:01J9ZQ3W5T8B2M4N6P7R9S1V3X:lint:src/cart.py%3Aload:2
    """

    async def read_key() -> list[TraceEntry] | list[str]:
        async with open_to_read(project, state_dir).trace_store() as store:
            return await store.read(key)

    with errors_as_sentences(), showing(show_secrets) as clean:
        found = clean(asyncio.run(read_key()))
        print_json(found) if json else render.trace_entries(found)
    raise typer.Exit(0 if found else SOME_FAILED)


@trace.command()
def replay(
    stream: StreamId,
    to: Annotated[
        int | None, typer.Option("--to", min=0, help="The packet after this turn; default: after the last")
    ] = None,
    show_secrets: ShowSecrets = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Fold a stream again, print the packet at any turn, and check it against every receipt.

    Exit code 1 if the digest in a receipt differs from the digest of the folded packet.

    \b
    Examples:
      remora trace replay 7GX2KQF --to 2
    """
    with errors_as_sentences(), showing(show_secrets) as clean:
        result = analysis.replay(open_to_read(project, state_dir).library.events(stream), to)
        _check_turn(to, result.packet.turn)
        shown = clean(result)
        print_json(shown) if json else render.replayed(shown)
    raise typer.Exit(0 if result.first_difference is None else SOME_FAILED)


def _check_turn(wanted: int | None, last: int) -> None:
    """Raise `ConfigError` if the stream ends before the wanted turn, which would show another one."""
    if wanted is not None and last < wanted:
        raise ConfigError(f"There is no turn {wanted}: the last one is {last}")


@trace.command()
def explain(
    key: Annotated[str, typer.Argument(help="A knowledge key, an extension, or a field such as last_error")],
    stream: StreamId,
    at: Annotated[int | None, typer.Option("--at", min=0, help="At this turn; default: the last")] = None,
    show_secrets: ShowSecrets = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Show why the packet contains a value: the events that set it and the raw result behind the last one.

    \b
    Examples:
      remora trace explain lint_errors_remaining 7GX2KQF --at 2
    """
    with errors_as_sentences(), showing(show_secrets) as clean:
        found, raw = clean(asyncio.run(open_to_read(project, state_dir).streams.explain(key, stream, at)))
        _check_turn(at, found.turn)
        print_json({"explanation": found, "raw": raw}) if json else render.explained(found, raw)
    raise typer.Exit(0 if found.known else SOME_FAILED)


@trace.command()
def verify(
    stream: Annotated[str | None, typer.Argument(help="Agent or run; default: all")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Check that blobs exist, without reading them")] = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Verify the hash chain of streams and the digest of every blob they reference. Exit code 1 if one is damaged.

    Each line is checked against the next one. The last lines are checked against the heads that `heads.log` recorded
    when a stream was closed. A stream without `agent_end` is reported as unsealed, never as intact.

    Not detected: changes by someone with your own rights who also rewrote `heads.log`, and a change in the last line
    of a stream that is not closed yet. The output ends with everything that could not be checked.

    \b
    Examples:
      remora trace verify
      remora trace verify 7GX2KQF
      remora trace verify --quick
    """
    with errors_as_sentences():
        opened = open_to_read(project, state_dir)
        with slow_progress("streams", quiet=json) as progress:
            found = opened.library.verify(stream, quick=quick, progress=progress)
        store = str(opened.store.address) if opened.store else ""
        print_json(found.by_ids() if store else found) if json else render.verified(found, store)
    raise typer.Exit(SOME_FAILED if found.damaged else 0)


@trace.command()
def prune(
    older_than: Annotated[float | None, typer.Option(metavar="DAYS", help="Delete streams older than this")] = None,
    max_bytes: Annotated[
        int | None, typer.Option(help="Delete the oldest streams until all together take at most this")
    ] = None,
    keep_last: Annotated[
        int | None, typer.Option(help="Keep this many of each operation; without other rules, delete the rest")
    ] = None,
    keep_failed: Annotated[bool, typer.Option(help="Keep failed runs")] = True,
    blobs_only: Annotated[bool, typer.Option("--blobs-only", help="Delete only blobs; streams still verify")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted, and delete nothing")] = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Delete sealed streams by age, size or number, and the blobs that no other stream references.

    \b
    Examples:
      remora trace prune --older-than 30 --dry-run
      remora trace prune --keep-last 100
    """
    with errors_as_sentences():
        library = open_to_read(project, state_dir).library
        rules = Retention(older_than, max_bytes, keep_last, keep_failed)
        plan = library.plan_prune(rules, datetime.now(UTC), blobs_only=blobs_only)
        result = None if dry_run else library.prune(plan)
        print_json({"plan": plan, "result": result}) if json else render.pruned(plan, result)


@trace.command()
def tokens(
    stream: StreamId,
    tokenizer: Tokenizer = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", min=1, help="For logs imported without packets: the packet's tokens; default 3,000"),
    ] = None,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Compare the tokens that each turn sent with what chat history would have sent.

    For an imported log, compare its chat history with what a packet would have sent.

    \b
    Examples:
      remora trace tokens 7GX2KQF
      remora trace tokens 7GX2KQF --tokenizer model.gguf --json
    """
    with errors_as_sentences():
        streams = open_to_read(project, state_dir).streams
        report = asyncio.run(streams.tokens(stream, tokenizer=tokenizer, budget=budget))
        print_json(report) if json else render.tokens(report)


@trace.command()
def transcript(
    stream: StreamId,
    full: Annotated[bool, typer.Option("--full", help="Print results in full")] = False,
    show_secrets: ShowSecrets = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Show a run as a conversation: each prompt exactly as sent, each reply, each call and its result.

    The system text is printed the first time, and again only when it changes.

    \b
    Examples:
      remora trace transcript 7GX2KQF
      remora trace transcript 7GX2KQF --full --json
    """
    with errors_as_sentences(), showing(show_secrets) as clean:
        entries = asyncio.run(open_to_read(project, state_dir).streams.transcript(stream, full=full, clean=clean))
        shown = clean(entries)  # names of tools too
        print_json(shown) if json else render_transcript(shown)


trace.command()(escalate)
