"""`remora trace escalate`: hand a stuck run to a person or a larger model."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from remora import events
from remora.cli._console import (
    HERE,
    JsonFlag,
    ProjectDir,
    StateDir,
    errors_as_sentences,
    print_json,
    say,
    slow_progress,
    tell,
)
from remora.cli._filters import StreamId
from remora.cli._opening import open_to_read
from remora.cli._showing import ShowSecrets, showing
from remora.events import short_id

if TYPE_CHECKING:
    from remora.analysis import EscalationDocument
    from remora.app import Answer


def escalate(
    stream: StreamId,
    tokens: Annotated[
        int | None,
        typer.Option(
            min=300,
            help="Maximum tokens of the document; default: 4,000, for a server 8,000, for an embedded model its usual",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Ask this model: a rung of your ladder, ollama#MODEL or URL#MODEL"),
    ] = None,
    show_secrets: ShowSecrets = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Write a document about a stuck run: its goal, its state, what was tried, and the evidence with its events.

    With `--to`, a larger model reads it. Its answer becomes a stream of its own. An interrupted agent gets it when you
    run `remora resume`; a finished one when you run it again with `remora analyze --answer`.

    \b
    Examples:
      remora trace escalate 7GX2KQF --tokens 2000 > stuck.md
      remora trace escalate 7GX2KQF --to ollama#qwen3:30b
    """
    with errors_as_sentences(), showing(show_secrets) as clean:
        escalations = open_to_read(project, state_dir).escalations
        if to is None:
            document = clean(asyncio.run(escalations.document(stream, tokens)))
            print_json(document) if json else _print_document(document)
            return
        with slow_progress("asking the model", quiet=json):
            answer = clean(asyncio.run(escalations.ask(stream, to, tokens)))
        print_json(answer) if json else _print_answer(answer)


def _print_document(document: EscalationDocument) -> None:
    say(document.text.rstrip())
    how = "counted" if document.exact else "estimated"
    left_out = ", ".join(f"{count} {name}" for name, count in document.left_out.items())
    tell([f"{document.tokens:,} of {document.limit:,} tokens, {how}{f'; left out: {left_out}' if left_out else ''}"])


def _print_answer(answer: Answer) -> None:
    say(f"{answer.by} about agent {short_id(answer.about)} · {answer.prompt_tokens:,} tokens read", "bold")
    if answer.tool:
        say(f"Next call: {answer.tool} {events.readable(dict(answer.args or {}))}")
    if answer.advice:
        say(answer.advice)
    recorded = f"Recorded as agent {short_id(answer.agent_id)}"
    if answer.given_back:
        say(f"{recorded}, and in the agent's stream. `remora resume` continues with it.")
    else:
        say(f"{recorded}. The agent's stream is sealed, so nothing was added to it.")
        path, operation = answer.node_id.partition(":")[0] or "PATH", answer.operation or "OPERATION"
        again = shlex.join(["remora", "analyze", path, "-o", operation, "--answer", short_id(answer.agent_id)])
        say(f"To run the agent again with the answer: {again}")
