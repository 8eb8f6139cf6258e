"""What a viewer reads of a project: streams by turn, raw outputs by window, all in bounded memory."""

from __future__ import annotations

import asyncio
import stat
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from remora.analysis import (
    Explanation,
    PromptPart,
    Shown,
    Sighting,
    explain,
    fold_files,
    is_telling,
    mark_new,
    prompt_parts,
    words_of,
)
from remora.app._project import Project, counter_of
from remora.app._review import Contents
from remora.app._unrecorded import BuiltPrompts, UnrecordedPrompts
from remora.errors import TraceError
from remora.events import (
    AgentStartEvent,
    BlobRef,
    Event,
    FileChange,
    ModelRequestEvent,
    ModelResponseEvent,
    ToolResultEvent,
    UserInputEvent,
    decode,
    readable,
    unpack,
)
from remora.ports import blob_limit
from remora.trace import BlobWindows, Outline, read_lines
from remora.twotrack import lacks_prompts

MAX_OPEN = 8
"""Streams whose outline stays in memory."""
MAX_EVENTS = 400
"""Events of one turn that are read at once."""
WINDOW = 64 * 1024
"""Bytes of an output that are shown at once."""
MAX_PRETTY = 1024 * 1024
"""Bytes of a JSON value up to which it is shown indented."""
MAX_SEARCHED = 300
"""Prompts after an output that are searched for a line of it."""
CHANGED = 2


@dataclass(frozen=True)
class Prompt:
    """A prompt in parts."""

    request: ModelRequestEvent
    parts: tuple[PromptPart, ...]
    is_recorded: bool = True
    """Whether the stream has it. For a log that was imported without packets, it is built when it is looked at."""


@dataclass(frozen=True)
class OutputWindow:
    """A part of an output as text."""

    name: str
    text: str
    start: int
    end: int
    size: int
    problem: str = ""
    """Why it cannot be shown; empty if it can."""


@dataclass(frozen=True)
class TurnEvents:
    """The events of one turn."""

    events: tuple[Event, ...]
    more: int
    """How many more bytes of this turn were not read."""


@dataclass(frozen=True)
class Brief:
    """An event in a few words."""

    seq: int
    turn: int
    type: str


@dataclass(frozen=True)
class Sightings:
    """The prompts that contain a line of an output."""

    words: str
    """What was searched for."""
    found: tuple[Sighting, ...]
    searched: int
    """Number of prompts that were searched."""
    is_all: bool
    """Whether there are no more prompts."""
    is_telling: bool = True
    """Whether the line has enough in it to be found without doubt."""
    is_recorded: bool = True
    """Whether the prompts are in the stream. If not, they were built for the search, and no model saw them."""


class Viewing:
    """Reads one project for a viewer. Can be used from several threads."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._windows = BlobWindows(project.blobs)
        self._outlines: dict[Path, Outline] = {}
        self._lock = threading.Lock()
        self._built = BuiltPrompts(project)

    def open(self, fragment: str) -> Outline:
        """The outline of an agent's stream, as long as it is now. Raises `TraceNotFound` or `TraceError`."""
        path = self.project.library.find(fragment)
        if not stat.S_ISREG(path.lstat().st_mode):
            raise TraceError(f"`{path}` is not a regular file: expected a stream")
        with self._lock:
            outline = self._outlines.pop(path, None) or Outline(path)
            self._outlines[path] = outline
            while len(self._outlines) > MAX_OPEN:
                self._outlines.pop(next(iter(self._outlines)))
            outline.extend()
        return outline

    def extend(self, outline: Outline) -> bool:
        """Read what is new in the stream. Returns whether there was anything."""
        with self._lock:
            return outline.extend()

    def watch(self, outline: Outline, *, look_s: float) -> AbstractAsyncContextManager[Callable[[], Awaitable[None]]]:
        """A function that waits until the stream may have grown: by notices of a store, every `look_s` in a folder."""
        return self.project.library.watch(outline.path, look_s=look_s)

    def first(self, outline: Outline) -> Event | None:
        """The event that began the stream; None if there is none."""
        return next(iter(_events(outline.path, 0, outline.here.offset)), None)

    def last(self, outline: Outline) -> Event | None:
        """The newest event."""
        return next(iter(_events(outline.path, outline.last_offset, outline.here.offset)), None)

    def turn(self, outline: Outline, index: int) -> TurnEvents:
        """The events of a turn, at most `MAX_EVENTS`."""
        found: list[Event] = []
        at, end = outline[index].offset, outline.end(index)
        for line in read_lines(outline.path, offset=at, end=end):
            if len(found) >= MAX_EVENTS:
                break
            at += len(line)
            found.append(_decoded(line))
        return TurnEvents(tuple(found), end - at)

    def event(self, outline: Outline, seq: int) -> Event:
        """One event. Raises `TraceError` if the stream has none with this number."""
        if 0 <= seq < outline.events:
            index = outline.holding(seq)
            for number, line in enumerate(
                read_lines(outline.path, offset=outline[index].offset, end=outline.end(index)), outline[index].seq
            ):
                if number == seq:
                    return _decoded(line)
        raise TraceError(f"The stream has no event {seq}: expected 0 to {outline.events - 1}")

    def briefs(self, outline: Outline, start: int, limit: int) -> list[Brief]:
        """The events from `start` on in a few words, at most `limit`."""
        found: list[Brief] = []
        if not 0 <= start < outline.events:
            return found
        first = outline[outline.holding(start)]
        for seq, line in enumerate(
            read_lines(outline.path, offset=first.offset, end=outline.here.offset), start=first.seq
        ):
            if len(found) >= limit:
                break
            if seq >= start:
                event = _decoded(line)
                found.append(Brief(seq, event.turn, event.type))
        return found

    def prompt(self, outline: Outline, index: int) -> Prompt | None:
        """The last prompt of a turn, with what the prompt before did not have marked; None if it has none."""
        now = self._prompt(outline, index)
        if now is None:
            return None
        earlier = (self._prompt(outline, at) for at in range(index - 1, max(index - 4, -1), -1))
        before = next(filter(None, earlier), None)
        return replace(now, parts=mark_new(now.parts, before.parts if before else ()))

    def next_prompt(self, outline: Outline, index: int) -> Prompt | None:
        """The first prompt after a turn; None if there is none."""
        upto = min(index + 4, len(outline))
        return next(filter(None, (self._prompt(outline, at) for at in range(index + 1, upto))), None)

    def _prompt(self, outline: Outline, index: int) -> Prompt | None:
        requests = [event for event in self.turn(outline, index).events if isinstance(event, ModelRequestEvent)]
        if requests:
            return self.parts(requests[-1])
        built = self._built.of(outline, index, self.first(outline))
        return replace(self.parts(built), is_recorded=False) if built else None

    def parts(self, request: ModelRequestEvent) -> Prompt:
        """A prompt in parts."""
        messages = [self._message(message) for message in request.messages]
        return Prompt(request, prompt_parts(messages, request.tokens))

    def _message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        if "content_ref" not in message:
            return dict(message)
        return {**message, "content": self.whole(message["content_ref"])}

    def whole(self, reference: object) -> str:
        """The text of a reference of a prompt, or why it cannot be read."""
        try:
            found = reference if isinstance(reference, BlobRef) else BlobRef.model_validate(reference)
            return self._windows.read(found.blob, 0, min(blob_limit(found), MAX_PRETTY)).data.decode(errors="replace")
        except (TraceError, ValueError) as error:
            return f"[cannot be shown: {error}]"

    def output(
        self, event: Event, part: int = 0, at: int = 0, length: int = WINDOW, *, exact: bool = False
    ) -> OutputWindow:
        """A window of an output of this event: part 0 is the result itself, the others are its attachments.

        It has whole lines, and begins and ends between characters, unless it must be `exact`.
        """
        sources = outputs_of(event)
        if not 0 <= part < len(sources):
            raise TraceError(f"Event {event.seq} has no output {part}: expected 0 to {len(sources) - 1}")
        name, value = sources[part]
        try:
            return self._window(name, value, max(at, 0), length, exact=exact)
        except (TraceError, ValueError) as error:
            return OutputWindow(name, "", 0, 0, 0, problem=str(error))

    def _window(self, name: str, value: Any, at: int, length: int, *, exact: bool) -> OutputWindow:
        data = self._in_memory(value)
        if data is not None:
            size, data = len(data), data[at : at + length]
        else:
            window = self._windows.read(value.blob, at, length)
            size, data = window.size, window.data
        skipped = 0
        if not exact:
            data, skipped = _whole_lines(data, is_first=at == 0, is_last=at + len(data) >= size)
        start = at + skipped
        return OutputWindow(name, data.decode(errors="replace"), start, start + len(data), size)

    def _in_memory(self, value: Any) -> bytes | None:
        """The text of a value that is small or inside its record; None for a large blob."""
        if not isinstance(value, BlobRef):
            return readable(value).encode(errors="backslashreplace")
        if value.encoding in ("json", "exact-json") and value.size <= MAX_PRETTY:
            data = self._windows.read(value.blob, 0, MAX_PRETTY).data
            return readable(unpack(data, value.encoding)).encode(errors="backslashreplace")
        return None

    def find(self, event: Event, part: int, words: str, start: int) -> int | None:
        """Where `words` are next in an output of this event, whatever their case; None if they are not."""
        _, value = outputs_of(event)[part]
        data, needle = self._in_memory(value), words.encode(errors="replace").lower()
        if data is None:
            return self._windows.find(value.blob, needle, start)
        place = data.lower().find(needle, start)
        return place if place >= 0 else None

    def seen(self, outline: Outline, seq: int, line: str) -> Sightings:
        """The prompts after event `seq` that contain this line of its output."""
        words, found, searched = words_of(line), list[Sighting](), 0
        last = min(outline.holding(seq) + MAX_SEARCHED, len(outline))
        for index in range(outline.holding(seq), last):
            for event in self._requests(outline, index, last):
                if event.seq > seq:
                    searched += 1
                    if part := Shown(self.parts(event).parts).part_with(words):
                        found.append(Sighting(event.turn, event.seq, part))
        first = self.first(outline)
        is_recorded = not (isinstance(first, AgentStartEvent) and lacks_prompts(first))
        return Sightings(words, tuple(found), searched, last == len(outline), is_telling(words), is_recorded)

    def _requests(self, outline: Outline, index: int, last: int) -> Sequence[ModelRequestEvent]:
        """The prompts of a turn. If they must be built, those up to `last` are built at once."""
        requests = [event for event in self.turn(outline, index).events if isinstance(event, ModelRequestEvent)]
        built = None if requests else self._built.of(outline, index, self.first(outline), last)
        return [built] if built else requests

    def explain(self, outline: Outline, key: str, before: int) -> Explanation:
        """Why the prompt with seq `before` had this value. Raises `ProjectionStopped`."""
        prompts = UnrecordedPrompts(self.project, counter_of(None))
        changes = asyncio.run(prompts.evidence(outline.path.stem))
        return explain(takewhile(lambda change: change.seq < before, changes), key)

    def files(self, outline: Outline, index: int) -> tuple[FileChange, ...]:
        """The files as the agent had changed them after this turn."""
        return fold_files(self._changes(outline, index))

    def _changes(self, outline: Outline, index: int) -> Iterator[FileChange]:
        for at in range(index + 1):
            if outline[at].flags & CHANGED:
                for event in self.turn(outline, at).events:
                    if isinstance(event, ToolResultEvent):
                        yield from event.files

    async def diff(self, change: FileChange) -> str:
        """A unified diff of one change, with secrets removed, or why there is none."""
        from remora.workspaces import unified

        try:
            return self.project.secrets.clean(unified([await Contents(self.project.blobs).change(change)]))
        except TraceError as error:
            return f"[cannot be shown: {error.message}]"


def outputs_of(event: Event) -> Sequence[tuple[str, Any]]:
    """The outputs of an event with their names: values that the record contains, or references."""
    match event:
        case ToolResultEvent():
            raw = event.raw if event.raw_ref is None else event.raw_ref
            return [("result", raw), *_attachments(event.attachments)]
        case ModelResponseEvent():
            reasoning = event.reasoning_ref or event.reasoning
            return [("reply", event.text_ref or event.text), *([("reasoning", reasoning)] if reasoning else [])]
        case UserInputEvent():
            return [("message", event.text_ref or event.text)]
        case _:
            return ()


def _attachments(attachments: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    for attachment in attachments:
        try:
            yield str(attachment.get("name", "attachment")), BlobRef.model_validate(attachment.get("ref"))
        except ValueError:
            yield "attachment", "[its reference cannot be read]"


def _events(path: Path, offset: int, end: int) -> Iterator[Event]:
    return (_decoded(line) for line in read_lines(path, offset=offset, end=end))


def _decoded(line: bytes) -> Event:
    return decode(line.rstrip(b"\n"))


def _whole_lines(data: bytes, *, is_first: bool, is_last: bool) -> tuple[bytes, int]:
    """The lines that lie wholly in the window, and how many bytes before them were cut off.

    A line that is longer than the window is cut between characters.
    """
    begin = 0
    if not is_first:
        begin = 0 if data[:1] == b"\n" else _character(data)
    end = len(data)
    if not is_last:
        newline = data.rfind(b"\n")
        end = newline + 1 if newline > begin else _cut_character(data)
    return data[begin:end], begin


def _character(data: bytes) -> int:
    """How many bytes at the beginning belong to a character that began before."""
    return next((n for n, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)


def _cut_character(data: bytes) -> int:
    """Where the last whole character ends."""
    for back in range(1, min(4, len(data)) + 1):
        if data[-back] & 0xC0 != 0x80:
            return len(data) - back if data[-back] >= 0xC0 else len(data)
    return len(data)
