"""Reads OTLP JSON with OpenTelemetry's own schema, which refuses unknown fields, and names the spans.

Beside each line of JSON there is the same request as protobuf, in hexadecimal digits.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def with_bytes(value: Any) -> Any:
    """The same with ids as protobuf's JSON writes bytes. OTLP writes them as hexadecimal digits."""
    if isinstance(value, list):
        return [with_bytes(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _bytes(each) if key.lower().endswith(("traceid", "spanid")) else with_bytes(each)
            for key, each in value.items()}  # fmt: skip


def _bytes(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode()


for row in Path(sys.argv[1]).read_text().splitlines():
    line, _, binary = row.rpartition("\t")
    request = ParseDict(with_bytes(json.loads(line)), ExportTraceServiceRequest())
    assert ExportTraceServiceRequest.FromString(bytes.fromhex(binary)) == request
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                assert (len(span.trace_id), len(span.span_id)) == (16, 8)
                assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
                sys.stdout.write(f"{span.name}\n")
