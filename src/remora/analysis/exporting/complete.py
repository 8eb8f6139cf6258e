"""A stream with everything that an export needs: its events, and the texts that lie in blobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remora.analysis._fork import inherited_seq
from remora.analysis._model_names import shared_model_name
from remora.events import AgentEndEvent, AgentStartEvent, Event, ModelRequestEvent, ModelResponseEvent, canonical


@dataclass(frozen=True)
class CompleteStream:
    """One agent's events with the texts behind them."""

    events: Sequence[Event]
    system: str = ""
    """The constant first message of its prompts."""
    raws: Mapping[int, str] = field(default_factory=dict)
    """The full result of each tool call, by seq."""
    texts: Mapping[int, str] = field(default_factory=dict)
    """The full text of messages that lie in blobs, by seq."""

    @property
    def start(self) -> AgentStartEvent:
        """Its first event; an empty one if the stream has none."""
        return next((event for event in self.events if isinstance(event, AgentStartEvent)), AgentStartEvent())

    @property
    def end(self) -> AgentEndEvent | None:
        """Its last event, if it is sealed."""
        return next((event for event in reversed(self.events) if isinstance(event, AgentEndEvent)), None)

    @property
    def model(self) -> str:
        """The model or policy that decided, as recorded at the start, without a weights file's folders."""
        model = self.start.model
        return shared_model_name(str(model.get("name") or model.get("model") or model.get("policy") or ""))

    @property
    def is_imported(self) -> bool:
        """Whether it is the log of another program. Prompts in it were built by us and never sent."""
        return self.start.operation == "import" and "sha256" in (self.start.parent or {})

    def model_of(self, reply: ModelResponseEvent) -> str:
        """The model of a reply, without a weights file's folders; empty if the reply names none."""
        return shared_model_name(reply.model)

    @property
    def inherited(self) -> int:
        """The seq of the last event that a fork inherited; -1 if none."""
        return inherited_seq(self.start)

    def text(self, event: Any) -> str:
        """The full text of a reply or of a person's message."""
        return self.texts.get(event.seq, event.text)

    def prompt(self, event: ModelRequestEvent) -> list[dict[str, Any]]:
        """The messages of a prompt as far as the receipt holds them inline, the system text included."""
        messages = []
        for message in event.messages:
            content = (
                self.system if message.get("role") == "system" and "content_ref" in message else message.get("content")
            )
            messages.append({**{k: v for k, v in message.items() if k != "content_ref"}, "content": content or ""})
        return messages


_PROMPT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
"""The counts of an imported log that make up a prompt. Anthropic counts what came from a cache beside the rest."""


def counted(usage: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The tokens of the prompt and of the reply as the server counted them; None where it did not."""
    parts = [count for name in _PROMPT if (count := _count(usage, name)) is not None]
    prompt, reply = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    prompt = sum(parts) if prompt is None and parts else prompt
    return prompt, _count(usage, "output_tokens") if reply is None else reply


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def json_text(value: Any) -> str:
    """A value as compact JSON."""
    try:
        return canonical(value).decode()
    except TypeError:  # nested deeper than the encoder allows
        return repr(value)
