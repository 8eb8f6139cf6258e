"""A stream as a trajectory in ATIF, Harbor's Agent Trajectory Interchange Format, version 1.7.

Step 1 is the system text, step 2 the goal. Each reply is an agent step with its calls, and their results are its
observation. What an agent's check found, and what a person said, are steps of their own.
"""

from __future__ import annotations

from typing import Any

from remora._version import __version__
from remora.analysis.exporting.chat import read_tool
from remora.analysis.exporting.complete import CompleteStream, counted
from remora.events import (
    AgentStartEvent,
    Event,
    ModelRequestEvent,
    ModelResponseEvent,
    SubmitResultEvent,
    ToolResultEvent,
    UserInputEvent,
    is_check,
)

NO_MODEL = ("scripted", "first-candidate", "random")

VERSION = "ATIF-v1.7"
Json = dict[str, Any]


def atif(stream: CompleteStream) -> Json:
    """The stream as one trajectory."""
    start, end = stream.start, stream.end
    steps = _Steps(stream)
    for event in stream.events:
        steps.take(event)
    tools = [spec.openai() for tool in start.tools if (spec := read_tool(tool))]
    trajectory: Json = {
        "schema_version": VERSION,
        "session_id": start.run_id or start.agent_id,
        "trajectory_id": start.agent_id,
        "agent": {
            "name": f"remora/{start.operation}" if start.operation else "remora",
            "version": start.remora or __version__,
            **({"model_name": stream.model} if stream.model else {}),
            **({"tool_definitions": tools} if tools else {}),
        },
        "steps": steps.done,
        "final_metrics": {
            "total_prompt_tokens": steps.prompt_tokens,
            "total_completion_tokens": steps.output_tokens,
            "total_steps": len(steps.done),
        },
        "extra": {
            "node_id": start.node_id,
            "outcome": end.outcome if end else "unsealed",
            "verdict": end.verdict if end else "",
            "check": end.check if end else {},
            **({"parent": start.parent} if start.parent else {}),
        },
    }
    return trajectory


class _Steps:
    """The steps so far."""

    def __init__(self, stream: CompleteStream) -> None:
        self._stream = stream
        self._asked: ModelRequestEvent | None = None
        self.done: list[Json] = []
        self.prompt_tokens = self.output_tokens = 0

    def take(self, event: Event) -> None:
        stream = self._stream
        match event:
            case AgentStartEvent(goal=goal):
                if stream.system:
                    self._add(event, "system", stream.system)
                self._add(event, "user", goal)
            case UserInputEvent():
                self._add(event, "user", stream.text(event))
            case ModelRequestEvent():
                self._asked = event
            case ModelResponseEvent():
                self._reply(event)
            case ToolResultEvent() if is_check(event):
                extra = {"seq": event.seq, "purpose": "check", "tool": event.tool, "found": event.check}
                self._add(event, "system", f"Check by {event.tool}", extra=extra)
            case ToolResultEvent():
                self._observe(
                    event.call_id, stream.raws.get(event.seq, ""), {"seq": event.seq, "outcome": event.outcome}
                )
            case SubmitResultEvent(result=result):
                self._observe(event.call_id, str(result.get("summary", "")), {"seq": event.seq, "outcome": "submitted"})
            case _:
                pass

    def _add(self, event: Event, source: str, message: str, **more: Any) -> Json:
        step: Json = {"step_id": len(self.done) + 1, "source": source, "message": message, **more}
        if event.ts:
            step["timestamp"] = event.ts
        if 0 < event.seq <= self._stream.inherited:
            step["is_copied_context"] = True
        self.done.append(step)
        return step

    def _reply(self, event: ModelResponseEvent) -> None:
        asked, self._asked = self._asked, None
        step = self._add(event, "agent", self._stream.text(event), extra={"seq": event.seq, "turn": event.turn})
        if event.error:
            step["extra"]["refused"] = event.error
        if event.calls:
            step["tool_calls"] = [
                {"tool_call_id": call.call_id, "function_name": call.tool, "arguments": call.args}
                for call in event.calls
            ]
        if event.rule:
            step["extra"]["rule"] = event.rule
        if event.model:
            step["model_name"] = self._stream.model_of(event)
        if event.rule or (not event.model and self._stream.model in NO_MODEL):
            step["llm_call_count"] = 0
            return
        step["llm_call_count"] = 1
        metrics = _metrics(asked, event)
        self.prompt_tokens += metrics.get("prompt_tokens", 0)
        self.output_tokens += metrics.get("completion_tokens", 0)
        if metrics:
            step["metrics"] = metrics

    def _observe(self, call_id: str, content: str, extra: Json) -> None:
        """Attach a result to the step that made the call; one without such a step is a step of its own."""
        result = {"source_call_id": call_id, "content": content, "extra": extra}
        for step in reversed(self.done):
            if any(call["tool_call_id"] == call_id for call in step.get("tool_calls", ())):
                step.setdefault("observation", {"results": []})["results"].append(result)
                return
        self.done.append(
            {
                "step_id": len(self.done) + 1,
                "source": "system",
                "message": "A tool ran without being called by the model",
                "observation": {"results": [{"content": content, "extra": extra}]},
            }
        )


def _metrics(asked: ModelRequestEvent | None, event: ModelResponseEvent) -> Json:
    prompt, reply = counted(event.usage)
    if prompt is None and asked is not None:
        prompt = asked.tokens.get("total")
    found = {"prompt_tokens": prompt, "completion_tokens": reply}
    return {name: value for name, value in found.items() if isinstance(value, int)}
