"""What a tool offers, and what it returns so that both tracks get their part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from remora.events import CandidateAction, Excerpt, Outcome

Effects = Literal["none", "workspace", "outside"]


class ToolSpec(BaseModel):
    """A tool as it is offered to a model."""

    model_config = ConfigDict(frozen=True)

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of the arguments that the model gives."""
    effects: Effects = "outside"
    """What a call can change. Only `none` and `workspace` may be run again after a crash."""

    def openai(self) -> dict[str, Any]:
        """The tool as the `tools` of an OpenAI-compatible request hold it."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }


class HasSpec(Protocol):
    """Something that can be offered as a tool, such as a function with `@remora.tool`."""

    spec: ToolSpec


ToolLike = ToolSpec | HasSpec | Mapping[str, Any]
"""A tool as users give it: ours, a decorated function, or a dict in OpenAI's shape."""


class ToolResult(BaseModel):
    """What a tool returns: `result` for the Long Track, everything else for the Short Track.

    A tool may return anything; what is not a `ToolResult` is distilled by a summarizer.
    """

    result: Any
    """The full result, recorded and never shown to the model."""
    summary: str
    """One line on what came out of it."""
    knowledge_delta: dict[str, Any] = Field(default_factory=dict)
    """What later turns should know, by key: a value, or `{"value": …, "supersedes": …, "pinned": …}`."""
    outcome: Outcome = "success"
    error: str | None = None
    candidate_actions: list[CandidateAction] = Field(default_factory=list)
    diagnostics: list[str] = Field(default_factory=list)
    excerpts: list[Excerpt] = Field(default_factory=list)
    extensions: dict[str, Any] = Field(default_factory=dict)


def make_success_result(result: Any, summary: str, knowledge_delta: dict[str, Any] | None = None) -> dict[str, Any]:
    """The tool did what it was asked."""
    return _result(result=result, summary=summary, knowledge_delta=knowledge_delta or {}, outcome="success")


def make_error_result(error: str, summary: str | None = None) -> dict[str, Any]:
    """The tool could not do it; `error` is what the model will read."""
    return _result(result=None, summary=summary or f"Error: {error}", outcome="error", error=error)


def make_partial_result(result: Any, summary: str, knowledge_delta: dict[str, Any] | None = None) -> dict[str, Any]:
    """The tool ended with warnings, or with work left over."""
    return _result(result=result, summary=summary, knowledge_delta=knowledge_delta or {}, outcome="partial")


def _result(**fields: Any) -> dict[str, Any]:
    return ToolResult(**fields).model_dump()
