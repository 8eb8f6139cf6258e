"""Conversations of a chat log that is already in memory. `remora.analysis.logs` reads files of any size."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass

from remora.analysis.logs import AssistantTurn, LogFile, LogProblem, UserMessage, read_log
from remora.context.contracts import ToolSpec
from remora.events import digest

ChatProblem = LogProblem


@dataclass(frozen=True)
class Chat:
    """One conversation. It is there only if all of it could be read."""

    source: str
    """File name and line, or file name and index."""
    sha256: str
    """Of the whole file."""
    system: str
    """Everything before the task: system messages and demonstrations."""
    goal: str
    tools: tuple[ToolSpec, ...]
    steps: tuple[UserMessage | AssistantTurn, ...]
    model: str = ""


def read_chats(name: str, data: bytes) -> Iterator[Chat | ChatProblem]:
    """Yield every conversation of a file, in order; a problem with its place for each that cannot be read."""
    sha256 = digest(data)
    for found in read_log(LogFile(name, io.BytesIO(data))):
        if isinstance(found, LogProblem):
            yield found
        else:
            steps = tuple(found.steps())
            yield Chat(found.source, sha256, found.system, found.goal, found.tools, steps, found.model)
