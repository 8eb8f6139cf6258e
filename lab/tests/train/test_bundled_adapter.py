"""The adapter that comes with the core, judged by rows that it was never trained on."""

from __future__ import annotations

import orjson
import pytest

from inference.real import smollm2
from remora.app import served_weights
from remora.config import ServerConfig
from remora.context.contracts import ToolSpec
from remora.inference import Adapter, EmbeddedPolicy, EmbeddedServer, EstimatedCounter, bundled_adapter
from remora.ports import Prompt
from remora_lab.train import synthetic_rows


@pytest.mark.faults
async def test_the_bundled_adapter_mostly_calls_what_is_right_with_these_weights() -> None:
    adapter = bundled_adapter()
    assert adapter is not None
    rows = [*synthetic_rows(11, 24, EstimatedCounter(), unseen=True)]
    smollm2()  # fetched, or the test is skipped
    server = EmbeddedServer(served_weights(ServerConfig()), context=2048, adapters=[adapter.path])
    async with EmbeddedPolicy(server, adapter=Adapter(0)) as policy:
        asked = [Prompt(row.messages, tools_of(row.messages[0]["content"]), (), 1) for row in rows]
        called = [(await policy.decide(prompt)).calls[0].tool for prompt in asked]
    right = sum(tool == orjson.loads(row.answer)["tool"] for tool, row in zip(called, rows, strict=True))
    assert right >= 20  # the trainer's own measure is 95 of 100


def tools_of(system: str) -> tuple[ToolSpec, ...]:
    listed = system.split("\nTools:\n")[1].split("\n\n")[0]
    found = [orjson.loads(line) for line in listed.splitlines()]
    return tuple(
        ToolSpec(name=each["name"], description="", parameters={"type": "object", "properties": each["args"]})
        for each in found
    )
