"""Answers of the blindness check, one JSON line each, so that an interrupted check can resume."""

from __future__ import annotations

from pathlib import Path

import orjson
from pydantic import BaseModel, ConfigDict

from remora.validation import validate
from remora_lab.bench.results import Choice, LineFile, Result


class Answer(BaseModel):
    """What a model calls at the turn that decided, by the packet alone and with the raw output."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent_id: str
    """Whose turn it was."""
    model: str
    """Who was asked."""
    packet: Choice | None = None
    with_raw: Choice | None = None


class Answers:
    """All answers of one check, kept as they come."""

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        self._file = LineFile(path)
        if not resume:
            path.unlink(missing_ok=True)
        self._file.mend()
        self._known = {(one.agent_id, one.model): one for one in _read(path)}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, result: Result, model: str) -> Answer | None:
        """What this model said about the result before."""
        return self._known.get((result.agent_id, model))

    def add(self, answer: Answer) -> None:
        """The answer is in the file."""
        self._file.add(answer)
        self._known[answer.agent_id, answer.model] = answer


def _read(path: Path) -> list[Answer]:
    found = []
    for number, line in enumerate(path.read_bytes().splitlines() if path.exists() else [], start=1):
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue  # cut off by a kill: it will be asked again
        found.append(validate(Answer, value, f"{path}:{number}"))
    return found
