"""Protocols for everything that touches the outside world. The values that they exchange are in `remora.values`.

The runner and everything above it depend only on these. `remora.app` chooses the implementations.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from remora.context.contracts import ToolSpec
from remora.context.summary import Summarized, Summarizer
from remora.events import MAX_BLOB, BlobRef, Event
from remora.values import AgentResult, Completed, Decision, Drafting, Job, Prompt, Pulled, ToolOutput, Written

Draft = Event
"""An event that is not recorded yet."""


class Clock(Protocol):
    """Wall-clock and monotonic time."""

    def now(self) -> datetime:
        """The current time, timezone-aware."""
        ...

    def monotonic(self) -> float:
        """Seconds of a monotonic clock, for durations."""
        ...


class TraceWriter(Protocol):
    """Appends to streams and reads them. Events are never updated or deleted.

    A stream id is `traces/{agent_id}` or `runs/{run_id}`.
    """

    async def append(self, stream_id: str, drafts: Sequence[Draft]) -> Sequence[Event]:
        """Assign `seq`, `ts` and `prev`, and write the events durably. Raises `TraceError` after a failed write."""
        ...

    def read(self, stream_id: str, *, after: int = -1) -> AsyncIterator[Event]:
        """Events with `seq > after`, oldest first."""
        ...

    async def head(self, stream_id: str) -> str:
        """The digest of the stream's last line."""
        ...

    async def close(self, stream_id: str) -> None:
        """Release the stream, so that another writer can open it."""
        ...


def blob_limit(reference: BlobRef) -> int:
    """How many bytes of a blob may be unpacked into memory: the size in its event, at most `MAX_BLOB`."""
    return min(reference.size, MAX_BLOB)


class BlobStore(Protocol):
    """A content-addressed store: bytes by their digest."""

    async def put(self, data: bytes) -> str:
        """Write `data` durably and return its digest."""
        ...

    async def put_chunks(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Write the chunks durably as one blob and return its digest and size. Never holds all of them in memory."""
        ...

    async def get(self, digest: str, *, limit: int = MAX_BLOB) -> bytes:
        """The bytes, verified by their digest. Raises `TraceError` if they are missing, damaged or over `limit`."""
        ...


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    @property
    def name(self) -> str:
        """The name that prompt receipts record."""
        ...

    @property
    def exact(self) -> bool:
        """Whether it uses the served model's own tokenizer. If not, the count is an estimate."""
        ...

    @property
    def digest(self) -> str:
        """The digest of the tokenizer; empty without one."""
        ...

    def count(self, text: str) -> int:
        """The number of tokens in `text`."""
        ...


class Policy(Protocol):
    """Chooses the next calls, with or without a model."""

    @property
    def name(self) -> str:
        """The name that streams record."""
        ...

    async def decide(self, prompt: Prompt) -> Decision:
        """Choose the next calls. Raises `DecisionError` if the reply has no valid call."""
        ...


class Tools(Protocol):
    """The tools of one agent, bound to its node and workspace."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools that the model may call."""
        ...

    async def call(self, name: str, args: Mapping[str, Any]) -> ToolOutput:
        """Run a tool. Raises `ToolError`; the model reads its message."""
        ...


class Workspace(Protocol):
    """A copy-on-write view of the project for one agent: it reads the project's files and writes its own."""

    @property
    def upper(self) -> Path:
        """The folder that holds only the changed files."""
        ...

    async def read(self, path: str) -> bytes:
        """The file's bytes. Later reads return the same bytes, even if someone saves the file.

        Raises `FileNotFoundError`, or `WorkspaceError` for a path outside the project.
        """
        ...

    def look(self, path: str) -> bytes:
        """Like `read`, for a caller that shows the agent only part of the file. Later reads may return newer bytes."""
        ...

    def moved(self) -> Mapping[str, bytes]:
        """Files that someone saved after the agent read them, with the bytes that the agent read."""
        ...

    async def write(self, path: str, data: bytes) -> None:
        """Write `data` to `path` in this workspace only.

        Raises `WorkspaceError` for a path outside the project, and for a file that someone saved after the agent
        started and that no earlier call has read.
        """
        ...

    async def exists(self, path: str) -> bool:
        """Whether `path` is a file."""
        ...

    async def files(self, under: str = "") -> list[str]:
        """Every file at or below `under`, sorted: the project's files that are not ignored, and all changed ones."""
        ...

    async def list_dir(self, path: str = "") -> list[str]:
        """Sorted names in a folder. Names of folders end with `/`. Raises `FileNotFoundError`."""
        ...

    def take_changes(self) -> tuple[Written, ...]:
        """The files written since the previous call of this method."""
        ...


class Spawner(Protocol):
    """Starts programs. Nothing else does."""

    async def run(
        self, argv: Sequence[str], *, cwd: Path, stdin: bytes = b"", limit_s: float = 30.0, over: Path | None = None
    ) -> Completed:
        """Run an allowed program. Raises `ToolError` if it is not allowed or exceeds a limit.

        A program that runs the project's code sees `cwd` overlaid with the files of `over`. It can write to neither.
        """
        ...


class FileLinter(Protocol):
    """Runs the linter on files of a project, as it would be run by hand."""

    async def check_files(
        self, flags: Sequence[str], files: Sequence[str], *, cwd: Path, limit_s: float = 60.0
    ) -> Completed:
        """Run `ruff check` on these files. Raises `ToolError` for flags that are not allowed, and at the limit."""
        ...

    async def describe_rules(self, *, cwd: Path, limit_s: float = 60.0) -> Completed:
        """Run `ruff rule --all`, which prints JSON. Raises `ToolError` at the limit."""
        ...


class CodeReader(Protocol):
    """Reads facts about definitions in a source text, and edits them.

    `node` is the part of a node id after the colon, such as `Order.total` or `load#2`; empty for the file itself.
    Methods raise `ValueError`, which says what was found or expected.
    """

    def facts(self, source: bytes, node: str) -> dict[str, Any]:
        """Kind, names, lines, signature, parameters, docstring and other facts of a definition, as plain JSON."""
        ...

    def behaviour(self, source: bytes, node: str) -> dict[str, Any]:
        """Errors raised and when, results and when, changed arguments and so on; empty if it is no function."""
        ...

    def habits(self, sources: Mapping[str, bytes], path: str, node: str) -> dict[str, Any]:
        """How a project writes docstrings, and what it says elsewhere about the function `node` of `path`."""
        ...

    def proven(self, about: str, files: Mapping[str, bytes], path: str, without: Sequence[str]) -> dict[str, Any]:
        """What is provably dead, missing or false about the file `path`, and texts of files with all of it mended."""
        ...

    def edit(self, source: bytes, node: str, part: str, text: str) -> bytes:
        """Replace the `docstring`, `body` or `whole` of a definition by `text`. The result parses."""
        ...

    def replace_lines(self, source: bytes, first: int, last: int, text: str) -> bytes:
        """Replace lines `first` to `last` by `text`; `last = first - 1` inserts. The result parses."""
        ...


class Engine(Protocol):
    """Runs agents, in this process or elsewhere."""

    def run(self, jobs: Sequence[Job]) -> AsyncGenerator[AgentResult]:
        """Yield the result of each job when it finishes. A failed job never stops another."""
        ...

    def abandon(self) -> None:
        """From now on, leave the streams of stopped agents unsealed, so that `remora resume` continues them."""
        ...


class SummaryGuard(Protocol):
    """Runs summarizers that are not built in."""

    def check(self, tool: str, summarizer: Summarizer) -> None:
        """Raise `ConfigError` for a summarizer that this guard cannot run."""
        ...

    async def run(self, summarizer: Summarizer, raw_result: Any) -> Summarized:
        """Summarize the result. If the summarizer fails or exceeds a limit, only `problems` is set."""
        ...


class HubClient(Protocol):
    """Fresh facts about code nodes. An optional `pull(node_ids) -> Pulled` adds hashes and freshness."""

    async def get_context(self, node_ids: list[str]) -> dict[str, Any]:
        """Facts by node id. A node is missing if its facts cannot be proven fresh."""
        ...

    async def health_check(self) -> bool:
        """Whether the Hub responds."""
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
    "Drafting",
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
