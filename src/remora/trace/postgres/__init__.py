"""Streams and blobs in a Postgres database: `trace_store: postgres://…`. Needs the extra `postgres`."""
