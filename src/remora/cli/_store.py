"""`remora store`: Postgres stores for streams."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from remora import app
from remora.cli._console import SOME_FAILED, JsonFlag, errors_as_sentences, print_json, say, slow_progress, tell
from remora.context.text import number

store = typer.Typer(
    no_args_is_help=True,
    help="Make and copy Postgres stores for streams.",
    add_completion=False,
    rich_markup_mode=None,
)

Url = Annotated[str, typer.Argument(metavar="URL", help="`postgres://USER@HOST/DATABASE?schema=NAME`")]


@store.command()
def init(
    url: Url,
    writer: Annotated[list[str] | None, typer.Option(metavar="ROLE", help="A role that may record")] = None,
    reader: Annotated[list[str] | None, typer.Option(metavar="ROLE", help="A role that may only read")] = None,
    json: JsonFlag = False,
) -> None:
    """Make a store, or bring it up to date. Safe to repeat.

    Connect as the role that will own it. Writers can append events, but change and delete nothing.

    \b
    Examples:
      remora store init postgres://owner@db/traces
      remora store init postgres://owner@db/traces --writer ci --reader viewer
    """
    with errors_as_sentences():
        before, after = app.make_store(url, writers=writer or [], readers=reader or [])
        status = app.describe_store(url)
    if json:
        print_json({"url": status.url, "before": before, "version": after})
        return
    done = (
        f"made, version {after}" if not before else "up to date" if before == after else f"version {before} → {after}"
    )
    say(f"{status.url}: {done}")
    tell(status.problems)
    used = status.url.replace(f"//{status.role}@", f"//{writer[0]}@", 1) if writer else status.url
    say(f"Use it: export REMORA_RUNNER__MEMORY__TRACE_STORE={shlex.quote(used)}")


@store.command()
def status(url: Url, json: JsonFlag = False) -> None:
    """Show what a store holds, and who writes to it.

    \b
    Example:
      remora store status postgres://reader@db/traces
    """
    with errors_as_sentences():
        found = app.describe_store(url)
    if json:
        print_json(found.__dict__)
        return
    versions = f"version {found.version}" + (f", expected {found.expected}" if found.version != found.expected else "")
    say(f"{found.url}: {versions} · Postgres {found.server} · as {found.role}")
    if found.version != found.expected:
        return
    streams = f"{number(found.streams, 'stream')}, {found.open_streams} being written"
    say(f"{streams}, {found.records:,} events, {found.bytes:,} bytes")
    say(f"{number(found.blobs, 'blob')}, {found.blob_bytes:,} bytes · {found.not_indexed:,} events not indexed yet")
    for label in found.writers:
        say(f"  writer {label}")
    tell(found.problems)


@store.command()
def reindex(url: Url, json: JsonFlag = False) -> None:
    """Rebuild the index of a store from its records. Connect as the store's owner.

    No stream is changed. A search during the rebuild first indexes what is missing.

    \b
    Example:
      remora store reindex postgres://owner@db/traces
    """
    with errors_as_sentences(), slow_progress("indexing", quiet=json) as progress:
        indexed = app.reindex_store(url, progress)
    print_json({"indexed": indexed}) if json else say(f"Indexed {number(indexed, 'event')}")


@store.command()
def copy(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A state folder, or the URL of a store")],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A store's URL if the source is a folder, else a state folder")
    ],
    json: JsonFlag = False,
) -> None:
    """Copy all streams and their blobs between a state folder and a store, byte for byte.

    Repeating it copies only what is new. A stream that differs in the target is not touched.

    \b
    Examples:
      remora store copy .agentfs postgres://ci@db/traces
      remora store copy postgres://reader@db/traces /tmp/copy/.agentfs
    """
    with errors_as_sentences(), slow_progress("copying", quiet=json) as progress:
        done = app.copy_store(source, target, progress)
    if json:
        print_json({**done.__dict__, "streams": done.streams})
    else:
        streams, blobs = number(len(done.streams), "stream"), number(done.blobs, "blob")
        say(f"Copied {streams} with {done.records:,} new events and {blobs}")
        say(f"{number(done.same, 'stream')} had nothing new")
        tell(f"{name}: {why}" for name, why in done.refused.items())
    if done.refused:
        raise typer.Exit(SOME_FAILED)
