"""One conversation of a log, checked from end to end before its steps are recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from remora.analysis.logs._source import NO_REPLY, LogProblem
from remora.analysis.logs._steps import AssistantTurn, Step, UserMessage
from remora.context.contracts import ToolSpec

MAX_SYSTEM = 4 * 1024 * 1024
"""Bytes of all system texts of one conversation."""

Steps = Callable[[Counter[str]], Iterator[Step]]
"""Reads all steps of a conversation, from the start. What it does not understand it counts by kind."""


@dataclass(frozen=True)
class Link:
    """The call of another conversation that a conversation belongs to."""

    session: str
    call_id: str = ""


@dataclass(frozen=True)
class Conversation:
    """A conversation whose log could be read from end to end."""

    source: str
    """File name, and line or index where the file has several."""
    format: str
    read: Steps
    system: str = ""
    """Everything that is before the task in every prompt: system messages and demonstrations."""
    goal: str = ""
    tools: tuple[ToolSpec, ...] = ()
    model: str = ""
    session: str = ""
    """The id that the log gives the conversation."""
    parent: Link | None = None
    title: str = ""
    started: str = ""
    """When the log says that it began; empty if it does not."""
    launches: Mapping[str, str] = field(default_factory=dict)
    """By the id of a session that this one started, the call that started it; empty if the log names none."""
    unknown: Mapping[str, int] = field(default_factory=dict)
    """Kinds of records that were not understood, with their number."""
    notices: tuple[tuple[str, str], ...] = ()
    """What a reader of the stream should know about the log: codes and sentences."""
    turns: int = 0
    calls: int = 0

    def steps(self) -> Iterator[Step]:
        """The steps after the task, without system texts. Reads the log again."""
        waiting = bool(self.goal)
        for step in self.read(Counter()):
            if isinstance(step, UserMessage) and step.fixed:
                continue
            if waiting and isinstance(step, UserMessage) and step.text == self.goal:
                waiting = False
                continue
            yield step


def rewound_notice(branches: int) -> tuple[str, str]:
    """The notice of a session in which a person went back, with the number of branches that were left."""
    left = "1 branch was" if branches == 1 else f"{branches} branches were"
    return "rewound", f"The session was rewound, and {left} left. Each with a reply is a stream of its own"


def checked_branches(session: Conversation, left: Sequence[Steps]) -> Iterator[Conversation]:
    """The branches that a person left by going back. One without a reply says nothing."""
    for number, read in enumerate(left, 1):
        draft = Conversation(
            f"{session.source}#rewound-{number}",
            session.format,
            read,
            session=f"{session.session}/rewound-{number}",
            parent=Link(session.session),
            title=f"branch {number} that was left by a rewind",
        )
        with suppress(LogProblem):
            yield checked(draft, "session")


def checked(draft: Conversation, key: str = "messages") -> Conversation:
    """Read all steps once: find the task and the system text, and count. Raises `LogProblem`."""
    unknown: Counter[str] = Counter()
    system: list[str] = [draft.system] if draft.system else []
    first: list[UserMessage] = []
    turns = calls = size = 0
    model = draft.model
    for step in draft.read(unknown):
        if isinstance(step, AssistantTurn):
            turns, calls, model = turns + 1, calls + len(step.calls), model or step.model
        elif step.fixed:
            size += len(step.text)
            if size > MAX_SYSTEM:
                raise LogProblem(f"system texts of more than {MAX_SYSTEM:,} characters")
            system.append(step.text)
        elif not turns and (not first or first[-1].meta) and len(first) < 8:
            first.append(step)
    if not turns:
        raise LogProblem(f"`{key}` {NO_REPLY}")
    goal = next((step.text for step in first if not step.meta), first[0].text if first else "")
    return replace(
        draft,
        system="\n\n".join(system),
        goal=draft.goal or goal,
        model=model,
        unknown=dict(unknown),
        turns=turns,
        calls=calls,
    )
