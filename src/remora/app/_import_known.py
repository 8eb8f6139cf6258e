"""Which conversations were imported before: every import records the digest of its log in the stream."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from remora.errors import TraceError
from remora.trace import find_streams, read_lines

_TAIL = 64 * 1024
_SEALED = b'"type":"agent_end"'


class EarlierImports:
    """The sealed streams of earlier imports. Only the first and the last line of each stream are read."""

    def __init__(self, state_dir: Path) -> None:
        self._by_place: dict[tuple[str, str], str] = {}
        self._by_session: dict[str, str] = {}
        for path in find_streams(state_dir, "traces"):
            origin = _origin(path)
            if origin:
                self.add(origin, path.stem)
                self._by_session[str(origin.get("session", ""))] = path.stem

    def add(self, origin: Mapping[str, Any], agent_id: str) -> None:
        """Remember where a stream came from."""
        for key in ("at", "source"):
            self._by_place[str(origin.get("sha256")), f"{key} {origin.get(key, '')}"] = agent_id

    def find(self, sha256: str, source: str, at: str) -> str:
        """The agent of the same conversation in a log with the same bytes, whatever its name; empty if none."""
        return self._by_place.get((sha256, f"at {at}"), "") or self._by_place.get((sha256, f"source {source}"), "")

    def of_session(self, session: str) -> str:
        """The newest agent of the same session, also from an earlier state of its log; empty if none."""
        return self._by_session.get(session, "") if session else ""


def _origin(path: Path) -> Mapping[str, Any]:
    """The `parent` of a sealed stream that was imported; empty for any other stream."""
    try:
        line = next(read_lines(path), b"")
        if b'"sha256":"sha256:' not in line or b'"relation":"' not in line or not _is_sealed(path):
            return {}
        parent = orjson.loads(line)["data"]["parent"]
    except (TraceError, orjson.JSONDecodeError, KeyError, TypeError):
        return {}  # `verify` reports damage
    return parent if isinstance(parent, dict) and parent.get("relation") in ("import", "child") else {}


def _is_sealed(path: Path) -> bool:
    """Whether the last line is an `agent_end`. An import that was interrupted has none."""
    tail = b"".join(read_lines(path, offset=max(0, path.stat().st_size - _TAIL)))
    return _SEALED in tail[:-1].rpartition(b"\n")[2]
