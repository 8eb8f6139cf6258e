"""Streams in the formats of other programs: OpenTelemetry spans, ATIF trajectories, chat JSONL, CSV."""
