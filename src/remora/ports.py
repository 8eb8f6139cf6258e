"""The shape of the system: what the thinking parts need from the world, one Protocol a need.

The runner and everything above it know only these. `app.py` picks the parts that stand behind them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from remora.context.calls import BadCall
from remora.context.contracts import ToolSpec
from remora.context.summary import Summarized, Summarizer
from remora.events import MAX_BLOB, BlobRef, Call, CandidateAction, Event, FileChange
from remora.nodes import CodeNode

Draft = Event
"""An event that is not recorded yet."""


class Clock(Protocol):
    """What time it is."""

    def now(self) -> datetime:
        """The moment, with its time zone."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow, for durations."""
        ...


class TraceWriter(Protocol):
    """Where streams grow. Append and read: no update, no delete of one event.

    A stream id is `traces/{agent_id}` or `runs/{run_id}`.
    """

    async def append(self, stream_id: str, drafts: Sequence[Draft]) -> Sequence[Event]:
        """Durable once this returns, with `seq`, `ts` and `prev` assigned. Raises `TraceError` once poisoned."""
        ...

    def read(self, stream_id: str, *, after: int = -1) -> AsyncIterator[Event]:
        """Events with `seq > after`, oldest first."""
        ...

    async def head(self, stream_id: str) -> str:
        """The digest of the stream's last line."""
        ...

    async def close(self, stream_id: str) -> None:
        """Let go of the stream: another writer may have it."""
        ...


def blob_limit(reference: BlobRef) -> int:
    """How far a blob is unpacked into memory: as far as its event says, and no further than `MAX_BLOB`."""
    return min(reference.size, MAX_BLOB)


class BlobStore(Protocol):
    """Bytes by their own digest."""

    async def put(self, data: bytes) -> str:
        """The digest under which `data` is durable once this returns."""
        ...

    async def put_chunks(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Digest and size of all chunks together, durable once this returns; they are never all in memory."""
        ...

    async def get(self, digest: str, *, limit: int = MAX_BLOB) -> bytes:
        """The bytes, checked against their digest. Raises `TraceError` if they are gone, damaged, or over `limit`."""
        ...


class TokenCounter(Protocol):
    """How many tokens a text takes."""

    @property
    def name(self) -> str:
        """What counts, as receipts say it."""
        ...

    @property
    def exact(self) -> bool:
        """Whether this is the served model's own count. If not, the budget is called estimated."""
        ...

    @property
    def digest(self) -> str:
        """Which tokenizer it is; empty where there is none to name."""
        ...

    def count(self, text: str) -> int:
        """Tokens of `text`."""
        ...


@dataclass(frozen=True)
class Prompt:
    """What a policy decides on: the messages as sent, and the calls that are offered."""

    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[ToolSpec, ...]
    candidates: tuple[CandidateAction, ...] = ()
    turn: int = 0

    def openai_tools(self) -> list[dict[str, Any]]:
        """The offered calls as the `tools` of an OpenAI-compatible request."""
        return [tool.openai() for tool in self.tools]


@dataclass(frozen=True)
class Decision:
    """What a policy chose."""

    calls: tuple[Call, ...]
    text: str = ""
    model: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    finish: str = ""
    bad: tuple[BadCall, ...] = ()
    """Calls that cannot be made: for the stream as they were written, and for the model as its errors."""


class Policy(Protocol):
    """Who decides: a model, or something without one."""

    @property
    def name(self) -> str:
        """Who it is, as streams say it."""
        ...

    async def decide(self, prompt: Prompt) -> Decision:
        """The next calls. Raises `DecisionError` when there is no valid one."""
        ...


@dataclass(frozen=True)
class ToolOutput:
    """What came out of a tool: its value, and what else a developer should find in the stream."""

    value: Any
    prints: str = ""
    outputs: tuple[tuple[str, bytes | Iterable[bytes]], ...] = ()
    """Full outputs of the commands it ran, by name; a large one in chunks."""


class Tools(Protocol):
    """The tools of one agent, bound to its node and workspace."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What is offered to the model."""
        ...

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        """Run a tool. Raises `ToolError`, which the model will read."""
        ...


class Written(NamedTuple):
    """One file that an agent changed: its content before and after, None where there is no file, and its mode."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int = 0o644
    """Permissions that the file has, or would have, in the project."""


class Workspace(Protocol):
    """A project as one agent sees it: reads fall through, writes stay apart."""

    @property
    def upper(self) -> Path:
        """The folder that holds the changed files, and only those."""
        ...

    async def read(self, path: str) -> bytes:
        """The file's bytes, from now on the same. Raises `FileNotFoundError`, or `WorkspaceError` for one outside."""
        ...

    def look(self, path: str) -> bytes:
        """As `read`, where the agent gets no more than a part of the file: it may be another the next time."""
        ...

    def moved(self) -> Mapping[str, bytes]:
        """Files that someone has saved since the agent read them, as the agent read them."""
        ...

    async def write(self, path: str, data: bytes) -> None:
        """Put `data` at `path`, for this agent only.

        Raises `WorkspaceError` also for a file that was saved after the agent began, if no earlier call has read it.
        """
        ...

    async def exists(self, path: str) -> bool:
        """Whether there is a file at `path`."""
        ...

    async def files(self, under: str = "") -> list[str]:
        """Every file at and below `under`, in order: the project's that are not ignored, and all of its own."""
        ...

    async def list_dir(self, path: str = "") -> list[str]:
        """Names in a folder, in order, those of folders with a `/` at the end. Raises `FileNotFoundError`."""
        ...

    def take_changes(self) -> tuple[Written, ...]:
        """What was written since this was last asked."""
        ...


@dataclass(frozen=True)
class Completed:
    """A command that ended."""

    argv: tuple[str, ...]
    returncode: int
    stdout: bytes
    """What it said, or the beginning of it: see `full`."""
    stderr: bytes
    full: Mapping[str, Iterable[bytes]] = field(default_factory=dict)
    """All of `stdout` or `stderr`, in chunks, where it is too large to hold."""
    sandbox: str = ""
    """How the project's code was shut in: `bubblewrap`, `landlock` or `none`. Empty where none of it ran."""
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    """Files that the program was asked for and wrote, by name, such as pytest's JUnit XML."""


class Spawner(Protocol):
    """The one place that starts programs."""

    async def run(
        self, argv: Sequence[str], *, cwd: Path, stdin: bytes = b"", limit_s: float = 30.0, over: Path | None = None
    ) -> Completed:
        """Run an allowed program to its end. Raises `ToolError` if it is not allowed or reaches a limit.

        What runs the project's code sees `cwd` with the files below `over` in their places, and writes to neither.
        """
        ...


class CodeReader(Protocol):
    """Facts about the definitions of one source text, and edits by their positions.

    `node` is the part of a node id after the colon, such as `Order.total` or `load#2`; empty for the file itself.
    What is refused is a `ValueError` that says what is there or what was expected.
    """

    def facts(self, source: bytes, node: str) -> dict[str, Any]:
        """Kind, names, lines, signature, parameters, docstring and so on of a definition, as plain JSON."""
        ...

    def edit(self, source: bytes, node: str, part: str, text: str) -> bytes:
        """The source with the `docstring`, `body` or `whole` of a definition replaced by `text`. It still parses."""
        ...

    def replace_lines(self, source: bytes, first: int, last: int, text: str) -> bytes:
        """The source with lines `first` to `last` replaced by `text`; `last = first - 1` inserts. It still parses."""
        ...


@dataclass(frozen=True)
class Job:
    """One agent to run. Picklable, so that an engine may send it elsewhere."""

    run_id: str
    agent_id: str
    operation: str
    node: CodeNode
    stage: str = ""
    """`last` for one that looks at what the changes of other agents come to together."""
    over: tuple[FileChange, ...] = ()
    """What its workspace begins with."""
    after: tuple[str, ...] = ()
    """The agents whose changes those are."""


@dataclass(frozen=True)
class AgentResult:
    """How an agent ended, and what the files say about it."""

    agent_id: str
    node_id: str
    operation: str
    outcome: str
    """What the run came to: `success`, `partial`, `error`, `cancelled` or `degraded`."""
    reason: str = ""
    summary: str = ""
    turns: int = 0
    largest_prompt: int = 0
    verdict: str = ""
    """By the files: `clean`, `partial`, `unchanged` or `failed`; empty where the agent has no check."""
    check: Mapping[str, Any] = field(default_factory=dict)
    head: str = ""
    last_seq: int = -1
    files: tuple[FileChange, ...] = ()
    stage: str = ""
    """`last` where it worked on what the changes of the others come to together."""


class Engine(Protocol):
    """Where agents run: here, or on other machines."""

    def run(self, jobs: Sequence[Job]) -> AsyncIterator[AgentResult]:
        """The result of every job, as each ends. One job's failure never stops another."""
        ...


class SummaryGuard(Protocol):
    """Where summarizers run that are not ours."""

    def check(self, tool: str, summarizer: Summarizer) -> None:
        """Raises `ConfigError` for a summarizer that could never run here."""
        ...

    async def run(self, summarizer: Summarizer, raw_result: Any) -> Summarized:
        """What it makes of the result. If it fails or reaches a limit, nothing but the problem is said."""
        ...


@dataclass(frozen=True)
class Pulled:
    """What a Hub could prove."""

    facts: Mapping[str, Any]
    """By node id; nothing for a node whose facts cannot be proven fresh."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """By file, the SHA-256 of the bytes that facts were proven against."""
    freshness: Mapping[str, str] = field(default_factory=dict)
    """By node, how: `index` where the index holds these very bytes, `workspace` where they were just extracted."""
    problem: str = ""
    """Why there may be fewer facts than there could be; empty where all is well."""


class HubClient(Protocol):
    """Fresh facts about code nodes. One that can also say how they were proven has `pull(node_ids) -> Pulled`."""

    async def get_context(self, node_ids: list[str]) -> dict[str, Any]:
        """Facts by node id; nothing for a node whose facts cannot be proven fresh."""
        ...

    async def health_check(self) -> bool:
        """Whether a Hub answers."""
        ...


__all__ = [
    "MAX_BLOB",
    "AgentResult",
    "BlobStore",
    "Clock",
    "CodeReader",
    "Completed",
    "Decision",
    "Draft",
    "Engine",
    "HubClient",
    "Job",
    "Policy",
    "Prompt",
    "Pulled",
    "Spawner",
    "SummaryGuard",
    "TokenCounter",
    "ToolOutput",
    "Tools",
    "TraceWriter",
    "Workspace",
    "Written",
    "blob_limit",
]
