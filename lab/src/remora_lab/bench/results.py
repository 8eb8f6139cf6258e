"""Results: one line of JSON for every task that was tried, appended as it ends.

Lines with `bench` say where and how the lines after them were made; files can be put together with `cat`. A line that
was cut off by a kill is passed over. Where a task was tried twice in the same way, the later line counts.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, Field, field_validator

from remora.errors import ConfigError
from remora.validation import validate


class Key(NamedTuple):
    """What was tried, and how."""

    task: str
    digest: str
    row: str
    model: str
    control: str
    seed: int


class Choice(BaseModel):
    """A call, without its number."""

    model_config = ConfigDict(frozen=True)

    tool: str
    args: dict[str, Any] = Field(default_factory=dict)


class RungShare(BaseModel):
    """What one model of a ladder decided."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    decisions: int = 0
    prompt_tokens: int = 0
    seconds: float = 0.0


class Result(BaseModel):
    """How one row did on one task."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str
    digest: str = ""
    """Of the task's text."""
    operation: str
    level: str
    half: str
    row: str
    model: str = ""
    control: str = "none"
    seed: int = 0
    solved: bool
    problems: tuple[str, ...] = ()
    """By the files."""
    verdict: str = ""
    """The agent's own check of the files."""
    outcome: str = ""
    reason: str = ""
    turns: int = 0
    asked: int = 0
    """Turns on which the oracle had an opinion."""
    right_tools: int = 0
    """Of these, turns whose first call is of a tool that the oracle would have called."""
    right_calls: int = 0
    """The same with its arguments, but for texts in words."""
    wrong_turn: int = 0
    """The first turn whose call is none of the oracle's; 0 where there is none."""
    wrong_call: Choice | None = None
    choices: tuple[Choice, ...] = ()
    """What the oracle would have called on that turn."""
    prompt_tokens: int = 0
    """Of all prompts together."""
    largest_prompt: int = 0
    exact: bool = False
    """Whether these were counted by the model's own tokenizer."""
    wall_s: float = 0.0
    rungs: dict[str, RungShare] = Field(default_factory=dict)
    """By model, for a ladder: who decided how often."""
    own_agent: bool = False
    """Whether the agent came with the suite: the bundled adapter was not trained on it."""
    agent_id: str = ""
    stream: str = ""
    """The state folder that holds the stream, relative to the folder of the results."""

    @property
    def key(self) -> Key:
        return Key(self.task, self.digest, self.row, self.model, self.control, self.seed)


class Header(BaseModel):
    """Where and how results were made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bench: int = 1
    """The version of this format."""
    date: str
    command: str
    machine: dict[str, Any]
    versions: dict[str, str]
    suite: str
    """Digest of the tasks that were asked for."""
    tasks: int
    temperature: float = 0.0

    @field_validator("command")
    @classmethod
    def _names_only(cls, command: str) -> str:
        """Results are published: of a path on somebody's machine only the name stays."""
        return shlex.join(word.rpartition("/")[2] if word.startswith("/") else word for word in shlex.split(command))


class Stored(NamedTuple):
    """All that result files hold."""

    headers: tuple[Header, ...]
    results: tuple[Result, ...]


class LineFile:
    """A file that grows by whole lines of JSON."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mend(self) -> None:
        """Its folder is there and its last line is whole, whatever was killed before."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and not self.path.read_bytes().endswith(b"\n") and self.path.stat().st_size:
            self._append(b"\n")

    def add(self, line: BaseModel) -> None:
        """The line is in the file."""
        whole = isinstance(line, Header)
        self._append(orjson.dumps(line.model_dump(mode="json", exclude_defaults=not whole)) + b"\n")

    def _append(self, data: bytes) -> None:
        with self.path.open("ab", buffering=0) as file:
            file.write(data)


class ResultFile(LineFile):
    """A file that grows by a line for each result."""

    def begin(self, header: Header) -> None:
        """The file is there, ready for results that were made so."""
        self.mend()
        self.add(header)


def read_results(paths: Iterable[Path]) -> Stored:
    """What the files hold, the latest of each key. Raises `ConfigError` for a file that is none of ours."""
    headers: list[Header] = []
    results: dict[Key, Result] = {}
    for path in paths:
        for line in _lines(path):
            if isinstance(line, Header):
                headers.append(line)
            else:
                results[line.key] = line
    return Stored(tuple(headers), tuple(results.values()))


def _lines(path: Path) -> Iterator[Header | Result]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"`{path}` cannot be read: {error.strerror or error}",
            hint="`remora bench --out FILE` makes a file of results",
        ) from error
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if number > 1:
                continue  # cut off by a kill: the task will be tried again
            raise ConfigError(f"`{path}` is no file of results: its first line is not JSON") from error
        where = f"{path}:{number}"
        is_header = isinstance(value, dict) and "bench" in value
        yield validate(Header, value, where) if is_header else validate(Result, value, where)


def lines_to_publish(stored: Stored) -> bytes:
    """The results as they are worth storing: one line each, in order, without what leads to streams."""
    away = {"stream", "agent_id", "choices", "wrong_call"}
    heads = [header.model_dump(mode="json") for header in stored.headers]
    rows = [
        result.model_dump(mode="json", exclude_defaults=True, exclude=away) for result in sort_results(stored.results)
    ]
    return b"".join(orjson.dumps(line) + b"\n" for line in [*heads, *rows])


def sort_results(results: Sequence[Result]) -> list[Result]:
    """In an order of their own, whoever was done first."""
    return sorted(results, key=lambda result: result.key)
