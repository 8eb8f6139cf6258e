"""The contract of tools: their specification, and the result that serves both tracks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from remora.events import CandidateAction, Excerpt, Outcome

Effects = Literal["none", "workspace", "outside"]


class ToolSpec(BaseModel):
    """The specification of a tool, as offered to a model."""

    model_config = ConfigDict(frozen=True)

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of the arguments."""
    effects: Effects = "outside"
    """What a call can change. After a crash, only calls with `none` or `workspace` run again."""

    def openai(self) -> dict[str, Any]:
        """The tool as an item of `tools` in an OpenAI-compatible request."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }


class HasSpec(Protocol):
    """Something that can be offered as a tool, such as a function with `@remora.tool`."""

    spec: ToolSpec


ToolLike = ToolSpec | HasSpec | Mapping[str, Any]
"""Accepted as a tool: a `ToolSpec`, a decorated function, or a dict in OpenAI's shape."""


class ToolResult(BaseModel):
    """The result of a tool: `result` for the Long Track, everything else for the Short Track.

    A tool may return any other value. A summarizer then distills it.
    """

    result: Any
    """The full result. The stream records it; prompts do not show it."""
    summary: str
    """The outcome in one line."""
    knowledge_delta: dict[str, Any] = Field(default_factory=dict)
    """What later turns should know, by key: a value, or `{"value": …, "supersedes": …, "pinned": …}`."""
    outcome: Outcome = "success"
    error: str | None = None
    candidate_actions: list[CandidateAction] = Field(default_factory=list)
    diagnostics: list[str] = Field(default_factory=list)
    excerpts: list[Excerpt] = Field(default_factory=list)
    extensions: dict[str, Any] = Field(default_factory=dict)


def make_success_result(result: Any, summary: str, knowledge_delta: dict[str, Any] | None = None) -> dict[str, Any]:
    """A result of a tool that succeeded."""
    return _result(result=result, summary=summary, knowledge_delta=knowledge_delta or {}, outcome="success")


def make_error_result(error: str, summary: str | None = None) -> dict[str, Any]:
    """A result of a tool that failed. The model reads `error`."""
    return _result(result=None, summary=summary or f"Error: {error}", outcome="error", error=error)


def make_partial_result(result: Any, summary: str, knowledge_delta: dict[str, Any] | None = None) -> dict[str, Any]:
    """A result of a tool that finished with warnings or with work left over."""
    return _result(result=result, summary=summary, knowledge_delta=knowledge_delta or {}, outcome="partial")


def _result(**fields: Any) -> dict[str, Any]:
    return ToolResult(**fields).model_dump()
