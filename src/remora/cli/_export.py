"""`remora trace export`: streams in the formats of other programs."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import nullcontext
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote

import orjson
import typer

from remora import app
from remora.cli._console import HERE, ProjectDir, StateDir, errors_as_sentences, slow_progress, tell, whole_file
from remora.cli._filters import Node, Operation, Outcome, Since, Until
from remora.cli._indexing import indexing_progress
from remora.cli._opening import open_to_read
from remora.cli._report import Ids, Output
from remora.context.text import number
from remora.errors import ConfigError
from remora.trace import Filter

HEADERS, PROTOCOL = "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_PROTOCOL"


class Format(StrEnum):
    """The formats of an export."""

    OTEL = "otel"
    ATIF = "atif"
    OPENAI = "openai"
    CSV = "csv"


def export(
    ids: Ids = None,
    kind: Annotated[Format, typer.Option("--format", help="Format of the export")] = Format.OPENAI,
    operation: Operation = None,
    node: Node = None,
    outcome: Outcome = None,
    since: Since = None,
    until: Until = None,
    output: Output = None,
    endpoint: Annotated[
        str | None, typer.Option(help="Send OpenTelemetry spans to this OTLP/HTTP endpoint, such as localhost:4318")
    ] = None,
    content: Annotated[
        bool, typer.Option("--content", help="Add prompts, replies and results to OpenTelemetry spans")
    ] = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Export agents to the formats of other programs. Text that looks like a secret is redacted.

    otel: OpenTelemetry GenAI spans, one OTLP/JSON request per line. atif: one trajectory per line. openai: one chat
    per line, as `remora trace import` reads it. csv: one row for each call.

    With `--endpoint`, spans are sent there and nowhere else, as protobuf; with OTEL_EXPORTER_OTLP_PROTOCOL=http/json in
    the environment as JSON. Headers, such as a key, are taken from OTEL_EXPORTER_OTLP_HEADERS.

    \b
    Examples:
      remora trace export --format csv -O turns.csv
      remora trace export 7GX2KQF --format atif
      remora trace export --format otel --content --endpoint http://localhost:4318
    """
    with errors_as_sentences():
        if endpoint is not None and (kind is not Format.OTEL or output is not None):
            raise ConfigError("`--endpoint` takes only `--format otel`, and no `--output`")
        if content and kind is not Format.OTEL:
            raise ConfigError("`--content` takes only `--format otel`: other formats hold it always, and `csv` never")
        opened = open_to_read(project, state_dir)
        wanted = Filter(operation=operation, node=node, outcome=outcome, since=since, until=until)
        with indexing_progress(opened), slow_progress("agents", quiet=False) as progress:
            parts = opened.streams.export(kind.value, ids or (), wanted, content=content, progress=progress)
            done = asyncio.run(_send(parts, endpoint) if endpoint else _write(parts, output))
        if kind is Format.CSV:
            done -= 1  # the column names
        if endpoint or output:
            tell([f"{number(done, 'agent')} {'sent to' if endpoint else 'written to'} {endpoint or output}"])


async def _write(parts: AsyncIterator[str], output: Path | None) -> int:
    done = 0
    with whole_file(output) if output else nullcontext(sys.stdout) as file:
        async for part in parts:
            file.write(part)
            done += 1
    return done


async def _send(parts: AsyncIterator[str], endpoint: str) -> int:
    headers, done = endpoint_headers(os.environ), 0
    send = partial(app.send_spans, endpoint, headers=headers, encoding=endpoint_encoding(os.environ))
    async for part in parts:
        await asyncio.to_thread(send, orjson.loads(part))
        done += 1
    return done


def endpoint_encoding(environment: Mapping[str, str]) -> Literal["protobuf", "json"]:
    """JSON if the standard variable asks for it, else protobuf, which every collector reads."""
    return "json" if environment.get(PROTOCOL, "").strip().lower() == "http/json" else "protobuf"


def endpoint_headers(environment: Mapping[str, str]) -> dict[str, str]:
    """The headers of the standard variable: `key=value` pairs with commas, values percent-encoded."""
    pairs = (pair.partition("=") for pair in environment.get(HEADERS, "").split(",") if "=" in pair)
    return {unquote(key.strip()): unquote(value.strip()) for key, _, value in pairs}
