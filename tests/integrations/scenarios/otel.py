"""Records a run with a real tracer and writes its spans as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import remora
from remora.events import Call
from remora.integrations.otel import LiveSpans


async def main(out: Path) -> None:
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tt = remora.TwoTrack("g", name="demo", state_dir=out / "state")
    LiveSpans.on(tt, provider.get_tracer("test"))
    async with tt:
        await tt.request()
        await tt.response({"role": "assistant", "content": "hm", "model": "m", "usage": {"prompt_tokens": 7}})
        for call_id in ("a", "b"):
            await tt.called(Call(call_id=call_id, tool=f"tool_{call_id}"))
        await tt.returned("b", {"secret": "hunter2"})
        await tt.returned("a", error="no")
        await tt.called(Call(call_id="c", tool="tool_c"))
    rows = [json.loads(span.to_json()) for span in kept.get_finished_spans()]
    (out / "spans.json").write_text(json.dumps(rows))


asyncio.run(main(Path(sys.argv[1])))
