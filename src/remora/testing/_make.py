"""Valid objects for tests, with overrides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import orjson
from pydantic import ValidationError

from remora.context.contracts import ToolResult
from remora.events import Outcome
from remora.nodes import CodeNode, LineRange, NodeType
from remora.subagent import SubagentDefinition
from remora.twotrack import Identity

MAX_SUMMARY = 200


def make_definition(**changes: Any) -> SubagentDefinition:
    """An agent with one tool, `run_linter`. Raises pydantic's `ValidationError` for changes that do not fit."""
    fields = {
        "name": "lint",
        "goal": "Fix lint errors in {node}",
        "system_prompt": "You fix lint errors.",
        "tools": [{"name": "run_linter", "description": "List the lint errors.", "effects": "none"}],
    }
    return SubagentDefinition.model_validate(fields | changes)


def make_node(text: str = "def load():\n    return 1\n", **changes: Any) -> CodeNode:
    """The function `load` of `src/cart.py`, or another node."""
    lines = LineRange(first=1, last=max(1, len(text.splitlines())))
    path = Path(changes.get("file_path", "src/cart.py"))
    name = changes.get("name", "load")
    fields = {
        "node_id": f"{path.as_posix()}:{name}",
        "node_type": NodeType.FUNCTION,
        "name": name,
        "file_path": path,
        "lines": lines,
        "owned": (lines,),
        "text": text,
    }
    return CodeNode.model_validate(fields | changes)


def make_ctx(agent_id: str = "01TESTAGENT", **changes: str) -> Identity:
    """The identity of a run."""
    fields = {"run_id": "01TESTRUN", "operation": "lint", "node_id": "src/cart.py:load"}
    return Identity(agent_id, **(fields | changes))


def tool_call_message(name: str, args: Mapping[str, Any] | str, call_id: str = "call-1") -> dict[str, Any]:
    """An assistant message with one call, as an OpenAI-compatible server sends it.

    A string for `args` is sent as is.
    """
    arguments = args if isinstance(args, str) else orjson.dumps(args).decode()
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def completion(message: Mapping[str, Any] | str, *, model: str = "scripted", **usage: int) -> dict[str, Any]:
    """A chat completion with this message, as a server sends it. A string is an answer without a call."""
    reply = {"role": "assistant", "content": message} if isinstance(message, str) else dict(message)
    finish = "tool_calls" if reply.get("tool_calls") else "stop"
    counts = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0} | usage
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": reply, "finish_reason": finish}],
        "usage": counts,
    }


def assert_valid_tool_result(result: Any) -> None:
    """Raises `AssertionError` unless `result` fulfils the contract of `remora.context.contracts.ToolResult`."""
    assert isinstance(result, Mapping), f"a tool result is a dict, not {type(result).__name__}"  # noqa: S101
    missing = [name for name in ("summary", "outcome") if name not in result]
    assert not missing, f"a tool result has `{missing[0]}`"  # noqa: S101
    outcomes = get_args(Outcome)
    assert result["outcome"] in outcomes, f"`outcome` is one of {outcomes}, not {result['outcome']!r}"  # noqa: S101
    length = len(str(result["summary"]))
    assert length < MAX_SUMMARY, f"`summary` is shorter than {MAX_SUMMARY} characters, not {length}"  # noqa: S101
    try:
        ToolResult.model_validate(dict(result))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise AssertionError(f"`{place}` does not fit: {first['msg']}") from None
