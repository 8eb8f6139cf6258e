"""Options that choose streams, shared by the commands of `remora trace`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StreamId = Annotated[str, typer.Argument(help="Agent or run, by the start or end of its id")]
Run = Annotated[str | None, typer.Option("--run", help="Only this run, by the start or end of its id")]
Node = Annotated[str | None, typer.Option("--node", help="Only this node, such as src/cart.py:load")]
Operation = Annotated[str | None, typer.Option("--operation", "-o", help="Only this operation, such as lint")]
Tool = Annotated[str | None, typer.Option("--tool", help="Only streams or events with this tool")]
Outcome = Annotated[str | None, typer.Option("--outcome", help="Only with this outcome, such as success or error")]
Since = Annotated[str | None, typer.Option("--since", help="Only from this time on, such as 2026-11-15T18:00")]
Tokenizer = Annotated[
    Path | None, typer.Option(help="GGUF file or `tokenizer.json` to count tokens with; default: an estimate")
]
Until = Annotated[str | None, typer.Option("--until", help="Only before this time")]
