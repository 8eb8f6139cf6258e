"""Tasks written by hand, for the training half."""

from __future__ import annotations

from collections.abc import Iterator

from remora_lab.bench.tasks import DocstringCheck, LintCheck, Mutant, SampleDataCheck, Task, TestCheck

SETTINGS = """[tool.pytest.ini_options]
pythonpath = ["."]

[tool.ruff.lint]
select = ["E", "F", "B", "SIM"]
"""

LOADER = '''"""Reads the preferences of an editor."""

import json
from typing import Any


def load_preferences(text: str) -> dict[str, Any]:
    """Preferences as they were saved; none if the text is damaged."""
    try:
        return json.loads(text)
    except:
        return {}
'''

TAGS = '''"""Tags on photos."""


def tag_photo(tag: str, tags: list[str] = []) -> list[str]:
    """The tags with one more."""
    tags.append(tag.strip().lower())
    return tags
'''

PLAYLIST = '''"""A queue of songs."""

from collections import deque


class Playlist:
    """Songs to play, and those that were played."""

    def __init__(self) -> None:
        self.waiting: deque[str] = deque()
        self.played: list[str] = []

    def advance(self, by: int = 1):
        for step in range(by):
            if len(self.waiting) == 0:
                break
            song = self.waiting.popleft()
            l = song.strip()
            self.played.append(l)
        return self.played[-1] if self.played else None
'''

EVENTS = '''"""Listeners of a small event bus."""

from collections.abc import Callable
from typing import Any


class Bus:
    """Hands events to whoever listens."""

    def __init__(self) -> None:
        self.listeners: dict[str, list[Callable[..., Any]]] = {}

    def emit(self, topic: str, *payload: Any, **options: Any) -> int:
        if topic not in self.listeners:
            raise LookupError(topic)
        for listener in self.listeners[topic]:
            listener(*payload, **options)
        return len(self.listeners[topic])

    @property
    def topics(self) -> list[str]:
        """Every topic that has a listener."""
        return sorted(self.listeners)
'''

RETRY = '''"""Trying again, with pauses that grow."""

from __future__ import annotations


def pause_before(attempt: int, base: float = 0.5, cap: float = 30.0) -> float:
    """How long to wait before an attempt.

    Doubles each time and never exceeds the cap.

    :param attempt: number of the attempt, the first is 1
    :param jitter: share of the pause that is drawn
    :returns: seconds
    """
    return min(base * 2 ** (attempt - 1), cap)
'''

FETCH = '''"""A cache in front of slow lookups."""

from __future__ import annotations

import asyncio


async def lookup(key: str, store: dict[str, int], default: int = 0) -> int:
    """The value of a key, with some patience."""
    await asyncio.sleep(0)
    value = store.get(key, default)
    return value * 2 if key.startswith("double:") else value
'''

TREE = '''"""Outlines of documents."""

from __future__ import annotations


def depth_of(outline: dict[str, dict], level: int = 0) -> int:
    """How many levels an outline has below a point."""
    if not outline:
        return level
    return max(depth_of(inner, level + 1) for inner in outline.values())
'''

TICKETS = '''"""Tickets of a help desk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Urgency = Literal["low", "normal", "high"]


@dataclass
class Person:
    """Somebody who needs help."""

    handle: str
    mail: str | None = None


@dataclass
class Ticket:
    """A wish or a complaint."""

    number: int
    sender: Person
    topic: str = "other"


def sort_tickets(tickets: list[Ticket], urgency: dict[int, str], at_most: Literal[5, 10] = 5) -> list[int]:
    """Ticket numbers, the urgent ones first."""
    ranks = {"high": 0, "normal": 1, "low": 2}
    ordered = sorted(tickets, key=lambda ticket: ranks.get(urgency.get(ticket.number, "low"), 3))
    return [ticket.number for ticket in ordered][:at_most]
'''

BEHAVIOUR_1 = (
    "prefs",
    'load_preferences("{") == {}',
    'load_preferences("[1]") == [1]',
)
BEHAVIOUR_2 = (
    "photos",
    'tag_photo(" Sea ") == ["sea"]',
    'tag_photo("B", ["a"]) == ["a", "b"]',
)
BEHAVIOUR_3 = (
    "playlist",
    "Playlist().advance() is None",
)


def hand_tasks() -> Iterator[Task]:
    """The tasks, in order."""
    yield _task(
        "bare-except", "prefs.py", LOADER, "load_preferences",
        LintCheck(gone=("E722",), behaviour=_tests(*BEHAVIOUR_1)),
        {"edits": [{"code": "E722", "bad": ["    except:"], "good": ["    except ValueError:"]}]},
    )  # fmt: skip
    bad = TAGS.split("\n")[3:6]
    good = [
        "def tag_photo(tag: str, tags: list[str] | None = None) -> list[str]:",
        bad[1],
        "    tags = [] if tags is None else tags",
        bad[2],
    ]
    yield _task(
        "mutable-default", "photos.py", TAGS, "tag_photo",
        LintCheck(gone=("B006",), behaviour=_tests(*BEHAVIOUR_2)),
        {"edits": [{"code": "B006", "bad": bad, "good": good}]},
    )  # fmt: skip
    yield _task(
        "loop-names", "playlist.py", PLAYLIST, "Playlist.advance",
        LintCheck(gone=("B007", "E741"), behaviour=_tests(*BEHAVIOUR_3)),
        {"edits": [
            {"code": "B007", "bad": ["        for step in range(by):"], "good": ["        for _ in range(by):"]},
            {
                "code": "E741",
                "bad": ["            l = song.strip()", "            self.played.append(l)"],
                "good": ["            self.played.append(song.strip())"],
            },
        ]},
    )  # fmt: skip
    yield _task(
        "stars", "bus.py", EVENTS, "Bus.emit",
        DocstringCheck(parameters=("topic", "payload", "options"), returns=True, raises=("LookupError",)),
        {"summary": "Hand an event to everyone who listens to its topic."},
    )  # fmt: skip
    yield _task(
        "property", "bus.py", EVENTS, "Bus.topics", DocstringCheck(unchanged=True), {}, level="easy"
    )  # fmt: skip
    yield _task(
        "one-gone", "retry.py", RETRY, "pause_before",
        DocstringCheck(parameters=("attempt", "base", "cap"), returns=True),
        {"summary": "How long to wait before an attempt."},
    )  # fmt: skip
    yield _task(
        "coroutine", "fetch.py", FETCH, "lookup",
        TestCheck(mutants=(
            Mutant(path="fetch.py", old="value * 2 if", new="value + 2 if"),
            Mutant(path="fetch.py", old="store.get(key, default)", new="store.get(key, 0)"),
        )),
        {"cases": ['"a", {"a": 3} -> 3', '"double:a", {"double:a": 3} -> 6', '"b", {}, 7 -> 7']},
    )  # fmt: skip
    yield _task(
        "recursion", "outline.py", TREE, "depth_of",
        TestCheck(mutants=(
            Mutant(path="outline.py", old="level + 1", new="level"),
            Mutant(path="outline.py", old="return max(", new="return min("),
        )),
        {"cases": ['{} -> 0', '{"a": {}, "b": {"c": {}}} -> 2', '{"a": {}}, 3 -> 4']},
    )  # fmt: skip
    yield _task(
        "nested", "tickets.py", TICKETS, "sort_tickets",
        SampleDataCheck(cases=2),
        {"cases": [
            {"tickets": [{"number": 1, "sender": {"handle": "kit"}}], "urgency": {"1": "high"}},
            {"tickets": [{"number": 2, "sender": {"handle": "lou", "mail": "l@x.org"}}], "urgency": {}, "at_most": 10},
        ]},
    )  # fmt: skip


def _task(name, path, code, node, check, solution, level="hard") -> Task:  # type: ignore[no-untyped-def]
    return Task(
        id=f"train-hand-{name}",
        operation=check.kind,
        half="train",
        level=level,
        origin="hand",
        files={"pyproject.toml": SETTINGS, path: code},
        path=path,
        node=node,
        check=check,
        solution=solution,
    )


def _tests(module: str, *asserted: str) -> str:
    tests = [f"def test_{number}():\n    assert {text}\n" for number, text in enumerate(asserted)]
    return "\n\n".join([f"from {module} import *  # noqa: F403\n", *tests])
