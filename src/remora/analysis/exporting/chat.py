"""A stream as one conversation in OpenAI's chat format: one line of JSONL, with the tools that were offered."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from remora.analysis.exporting.complete import CompleteStream, json_text
from remora.context.contracts import ToolSpec
from remora.events import (
    AgentStartEvent,
    Call,
    ModelResponseEvent,
    SubmitResultEvent,
    ToolResultEvent,
    UserInputEvent,
    is_check,
)

Message = dict[str, Any]


def chat(stream: CompleteStream) -> dict[str, Any]:
    """The whole run as chat history: system text, goal, every reply with its calls, every full result.

    Replies without a valid call are left out, because no call follows from them. A call without a result, such as
    `submit_result`, gets an empty one: the format requires a message for every call.
    """
    messages: list[Message] = [{"role": "system", "content": stream.system}] if stream.system else []
    waiting: dict[str, int] = {}
    for event in stream.events:
        match event:
            case AgentStartEvent(goal=goal):
                messages.append({"role": "user", "content": goal})
            case UserInputEvent():
                messages.append({"role": "user", "content": stream.text(event)})
            case ModelResponseEvent(error="", calls=calls):
                messages.append(_assistant(stream.text(event), calls))
                for call in calls:
                    waiting[call.call_id] = len(messages)
                    messages.append(_tool(call.call_id, ""))
            case ToolResultEvent(call_id=call_id) if not is_check(event) and call_id in waiting:
                messages[waiting[call_id]] = _tool(call_id, stream.raws.get(event.seq, ""))
            case SubmitResultEvent(call_id=call_id, result=result) if call_id in waiting:
                messages[waiting[call_id]] = _tool(call_id, json_text(result))
            case _:
                pass
    tools = [spec.openai() for tool in stream.start.tools if (spec := read_tool(tool))]
    return {"messages": messages, **({"tools": tools} if tools else {}), "metadata": _metadata(stream)}


def read_tool(tool: dict[str, Any]) -> ToolSpec | None:
    """A recorded tool; None if this version cannot read it."""
    try:
        return ToolSpec.model_validate(tool)
    except ValidationError:
        return None


def _assistant(text: str, calls: tuple[Call, ...]) -> Message:
    if not calls:
        return {"role": "assistant", "content": text}
    return {"role": "assistant", "content": text or None, "tool_calls": [_call(call) for call in calls]}


def _call(call: Call) -> dict[str, Any]:
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.tool, "arguments": json_text(call.args)},
    }


def _tool(call_id: str, content: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _metadata(stream: CompleteStream) -> dict[str, str]:
    start, end = stream.start, stream.end
    found = {
        "agent_id": start.agent_id,
        "run_id": start.run_id,
        "operation": start.operation,
        "node_id": start.node_id,
        "model": stream.model,
        "outcome": end.outcome if end else "unsealed",
        "verdict": end.verdict if end else "",
    }
    return {name: value for name, value in found.items() if value}
