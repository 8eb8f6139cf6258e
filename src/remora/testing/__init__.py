"""For your own tests: agents without a model, streams without a disk, definitions and nodes in one line.

What stands in for a served model (`patch_openai`, `make_server_config`, `make_runner_config`) comes with models.
"""

from remora.testing._make import (
    assert_valid_tool_result,
    completion,
    make_ctx,
    make_definition,
    make_node,
    tool_call_message,
)
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
    "tool_call_message",
]
