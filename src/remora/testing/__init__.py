"""For your own tests: agents without a model, streams without a disk, definitions and nodes in one line."""

from remora.testing._make import (
    assert_valid_tool_result,
    completion,
    make_ctx,
    make_definition,
    make_node,
    tool_call_message,
)
from remora.testing._openai import make_runner_config, make_server_config, patch_openai
from remora.testing._track import MemoryTwoTrack, ScriptedModel, TickingClock

__all__ = [
    "MemoryTwoTrack",
    "ScriptedModel",
    "TickingClock",
    "assert_valid_tool_result",
    "completion",
    "make_ctx",
    "make_definition",
    "make_node",
    "make_runner_config",
    "make_server_config",
    "patch_openai",
    "tool_call_message",
]
