"""The recorded runs: read from a folder of chat logs, and joined to long ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from remora.analysis import Chat, ChatProblem, AssistantTurn, read_chats
from remora.analysis import UserMessage as UserMessage

SUFFIXES = (".jsonl", ".ndjson", ".json", ".traj")
LONG = 200
"""Turns that a long run has at least, where there are so many."""


@dataclass(frozen=True)
class Suite:
    """Some runs under a name."""

    name: str
    chats: tuple[Chat, ...]

    @property
    def turns(self) -> int:
        return sum(map(turns_of, self.chats))


def load(folder: Path) -> list[Suite]:
    """One suite for each folder that holds logs, by name. Exits with a message where there is none."""
    suites = []
    for place in sorted({file.parent for file in folder.rglob("*") if file.suffix in SUFFIXES}):
        files = sorted(file for file in place.iterdir() if file.suffix in SUFFIXES)
        suites.append(Suite(place.name, tuple(chat for file in files for chat in _read(file))))
    if not suites:
        raise SystemExit(f"{folder}: no chat logs ({', '.join(SUFFIXES)}): name their folder with `--data`")
    return suites


def long_suites(suites: Sequence[Suite]) -> list[Suite]:
    """Each suite that has enough turns as few long runs, and all suites together as one run."""
    found = [Suite(f"{suite.name}, joined", _joined(suite.chats)) for suite in suites if suite.turns >= LONG]
    if len(suites) > 1:
        found.append(Suite("mixed, joined", (join(_mixed(suites)),)))
    return found


def turns_of(chat: Chat) -> int:
    """Assistant messages with calls."""
    return sum(1 for step in chat.steps if isinstance(step, AssistantTurn) and step.calls)


def join(chats: Sequence[Chat]) -> Chat:
    """One run of many: what was a task becomes a person's words, except the first."""
    steps = [step for chat in chats for step in (UserMessage(chat.goal), *chat.steps)]
    system = "\n\n".join(dict.fromkeys(chat.system for chat in chats))
    return replace(chats[0], system=system, steps=tuple(steps[1:]), source=f"{len(chats)} joined")


def output_text(value: object) -> str:
    """What a tool returned, as the text that a chat would hold."""
    return value if isinstance(value, str) else orjson.dumps(value).decode().replace('","', '", "').replace('":', '": ')


def _joined(chats: Sequence[Chat]) -> tuple[Chat, ...]:
    parts: list[list[Chat]] = [[]]
    left = sum(map(turns_of, chats))
    for chat in chats:
        if sum(map(turns_of, parts[-1])) >= LONG and left >= LONG:
            parts.append([])
        parts[-1].append(chat)
        left -= turns_of(chat)
    return tuple(map(join, parts))


def _mixed(suites: Sequence[Suite]) -> list[Chat]:
    """All runs, each suite's spread evenly."""
    placed = [
        ((index + 0.5) / len(suite.chats), suite.name, chat)
        for suite in suites
        for index, chat in enumerate(suite.chats)
    ]
    return [chat for _, _, chat in sorted(placed, key=lambda item: item[:2])]


def _read(file: Path) -> Iterable[Chat]:
    for chat in read_chats(file.name, file.read_bytes()):
        if isinstance(chat, ChatProblem):
            raise SystemExit(str(chat))
        yield chat
