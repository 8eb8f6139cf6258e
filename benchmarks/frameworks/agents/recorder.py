"""What a scripted model was sent and what it answered, in each request, with and without Remora."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Recorder:
    """Collects the requests of one run. `settings` are those of the adapter; None means that there is none."""

    def __init__(self) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("out", type=Path)
        parser.add_argument("--tracks", action="store_true")
        parser.add_argument("--budget", type=int)
        options = parser.parse_args()
        self.out: Path = options.out
        self.settings: dict[str, Any] | None = None
        if options.tracks:
            self.settings = {"state_dir": self.out / "state"} | ({"budget": options.budget} if options.budget else {})
        self.requests: list[dict[str, Any]] = []

    def request(
        self, system: str, messages: Sequence[str], tools: Sequence[Any], calls: Sequence[Mapping[str, Any]]
    ) -> None:
        """One request: what the model was sent, and the calls that it answers with."""
        sent = {"system": system, "messages": "\n".join(messages), "tools": json.dumps(tools, default=str)}
        self.requests.append({**sent, "calls": list(calls)})

    def save(self) -> None:
        (self.out / "requests.json").write_text(json.dumps(self.requests))
