"""A plugin: `remora words AGENT` counts the words of a run's replies, and a summarizer does so for tool results."""

from __future__ import annotations

from typing import Any

import typer

import remora
from remora.cli import Command
from remora.context.summarizers import Summarizer
from remora.events import ModelResponseEvent

words = typer.Typer()
COMMAND = Command("remora_words:words", "Count the words of an agent's replies.")


@words.command(name="words")
def count(agent: str) -> None:
    """Count the words of an agent's replies."""
    events = remora.open_project(".").library.events(agent)
    typer.echo(sum(len(event.text.split()) for event in events if isinstance(event, ModelResponseEvent)))


class Words(Summarizer):
    """Summarizes a text by its number of words."""

    def summarize(self, raw_result: Any) -> str:
        return f"{len(str(raw_result).split())} words"

    def extract_knowledge(self, raw_result: Any) -> dict[str, Any]:
        return {}
