"""All errors that Remora raises on purpose, grouped by who must act.

RemoraError                    stops the run; has a message and a hint
├── ConfigError                a person must fix something; nothing has run yet
│   ├── DefinitionError        an agent definition or a tool script is invalid
│   └── MissingExtra           an optional dependency is not installed
├── UsageError                 the program calls Remora in a wrong order or with a wrong value; nothing was recorded
├── ToolError                  the tool's result is an error; the model reads it and the run continues
│   ├── ToolNotFound           the agent has no such tool
│   ├── ToolArgumentsInvalid   the arguments do not match the tool's schema
│   ├── ToolFailed             the tool failed
│   └── ToolLimitExceeded      the tool exceeded a limit of time, memory or output
├── DecisionError              the policy gave no valid call; has the partial reply
│   ├── ServerUnreachable      no usable answer after all retries
│   ├── ServerRefused          the server rejected the request; a person must act
│   ├── DecisionLate           the deadline passed
│   ├── ReplyBroken            the reply is incomplete or violates the protocol
│   ├── ReplyTooLarge          the reply exceeds a size limit
│   └── ReplyInvalid           the reply contains no valid call
├── AgentError                 an agent ended without a result; `code` is the reason
│   └── TargetChanged          the target code was changed before the agent could start or resume
├── BudgetError                the prompt cannot fit its token limit
│   └── CountingFailed         tokens could not be counted
├── TraceError                 a stream cannot be written or read
│   ├── TraceNotFound          no stream has that id
│   ├── TraceDamaged           a stream is damaged, with file, line and seq
│   ├── TraceLocked            another process is writing the stream
│   ├── TracePoisoned          a write or sync failed; the writer accepts no more events
│   │   └── TraceFenced        another writer took the stream over
│   └── TraceSealed            the stream is sealed; nothing can be appended
├── HubError                   the Hub's index or daemon cannot be used; never stops a run
├── KVError                    a key-value file cannot be read or written
│   ├── KVBusy                 another process is writing the file
│   ├── KVConflict             the record was changed concurrently; nothing was written
│   ├── KVDamaged              the file is damaged or not a key-value file of Remora
│   └── KVRecordInvalid        a record does not match its model
├── ExportRefused              an endpoint did not take the exported spans
└── WorkspaceError             a path is outside the workspace, or a file cannot be changed
    └── WorkspaceConflict      the project was changed in the same lines; nothing was overwritten
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


class RemoraError(Exception):
    """Base class; stops the run. `message` says what happened and what was expected; `hint` says what to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigError(RemoraError):
    """A setting, path or definition is wrong. A person must fix it; nothing has run yet."""


class DefinitionError(ConfigError):
    """An agent definition or a tool script is invalid. `problems` lists every problem with its place in the file."""

    def __init__(self, file: Path | str, problems: Sequence[str], *, hint: str | None = None) -> None:
        self.file = str(file)
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{file}: {problem}" for problem in problems), hint=hint)


class MissingExtra(ConfigError):
    """A required optional dependency is not installed."""

    def __init__(self, what: str, *, extra: str, distribution: str = "remora-agents") -> None:
        super().__init__(f"{what} is not installed", hint=f'Install it with `pip install "{distribution}[{extra}]"`')
        self.extra = extra


class UsageError(RemoraError):
    """The program calls Remora in a wrong order or with a wrong value. Nothing was recorded."""


class ToolError(RemoraError):
    """The tool's result is an error. The model reads it, and the run continues."""

    code = "tool_error"
    prints: str = ""
    """What the tool printed before it failed."""
    outputs: tuple[tuple[str, bytes | Iterable[bytes]], ...] = ()
    """Full outputs of the commands it ran, by name."""


class ToolNotFound(ToolError):
    """The model called a tool that its agent does not have."""

    code = "tool_not_found"

    def __init__(self, tool: str, *, known: Iterable[str], agent: str = "") -> None:
        names = ", ".join(f"`{name}`" for name in sorted(known))
        where = f"Tool `{tool}` is not in agent `{agent}`" if agent else f"Tool `{tool}` is not offered"
        super().__init__(
            (where if tool else "A call names no tool") + (f": expected one of {names}" if names else ""),
            hint=f"Add `agents/{agent}/tools/{tool}.pym`, or correct the name in the prompt" if agent else None,
        )


class ToolArgumentsInvalid(ToolError):
    """The arguments do not match the tool's schema."""

    code = "tool_arguments_invalid"

    def __init__(self, tool: str, problems: Sequence[str]) -> None:
        super().__init__(f"Arguments of `{tool}` do not fit: {'; '.join(problems)}")
        self.problems = tuple(problems)


class ToolFailed(ToolError):
    """The tool failed."""

    code = "tool_failed"


class ToolLimitExceeded(ToolError):
    """A tool exceeded one of its limits. `limit` names it."""

    code = "tool_limit_exceeded"

    def __init__(self, tool: str, *, limit: str) -> None:
        super().__init__(f"Tool `{tool}` was stopped: it reached its limit of {limit}")
        self.limit = limit


class DecisionError(RemoraError):
    """The policy gave no valid call. `text`, `usage`, `finish` and `model` contain the reply as far as it came."""

    code = "no_decision"
    ask_again = False
    """Whether to ask the same model again, with a message about what was wrong."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        text: str = "",
        finish: str = "",
        usage: Mapping[str, Any] | None = None,
        model: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.text = text
        self.finish = finish
        self.usage = dict(usage or {})
        self.model = model


class ServerUnreachable(DecisionError):
    """The server gave no usable answer, even after all retries."""

    code = "server_unreachable"
    retry_after_s: float | None = None
    """Seconds that the server asked to wait."""


class ServerRefused(DecisionError):
    """The server rejected the request: a wrong key, an unknown model, a redirect. A person must act."""

    code = "server_refused"
    status: int = 0
    """The HTTP status of the answer."""


class DecisionLate(DecisionError):
    """The deadline passed before the decision was complete."""

    code = "decision_late"


class ReplyBroken(DecisionError):
    """The reply is incomplete or violates the protocol."""

    code = "reply_broken"
    ask_again = True


class ReplyTooLarge(DecisionError):
    """The reply exceeds the limit of its size or of its number of calls."""

    code = "reply_too_large"
    ask_again = True


class ReplyInvalid(DecisionError):
    """The reply is complete but contains no valid call."""

    code = "reply_invalid"
    ask_again = True


class AgentError(RemoraError):
    """An agent ended without a result. `code` is the reason in the stream's `agent_end`."""

    def __init__(self, message: str, *, code: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class TargetChanged(AgentError):
    """The target code was changed before the agent could start or resume."""


class BudgetError(RemoraError):
    """The prompt cannot fit its token limit, even after leaving out everything optional."""


class CountingFailed(BudgetError):
    """Tokens could not be counted, so the limit cannot be checked."""


class TraceError(RemoraError):
    """A stream cannot be written or read."""


class StoreUnreachable(TraceError):
    """The database of the streams does not answer. It may again."""


class TraceNotFound(TraceError):
    """No stream has this id."""


class TraceDamaged(TraceError):
    """A stream is damaged. Everything before `line` (1-based) and `seq` is intact and readable."""

    def __init__(self, file: Path | str, *, line: int, seq: int | None, problem: str) -> None:
        where = f"{file}:{line}" + (f" (seq {seq})" if seq is not None else "")
        super().__init__(f"{where}: {problem}", hint="Everything before this line is intact and stays readable")
        self.file = str(file)
        self.line = line
        self.seq = seq
        self.problem = problem


class TraceLocked(TraceError):
    """Another process is writing the stream."""


class TracePoisoned(TraceError):
    """A write or a sync failed. The writer accepts no more events for this stream."""


class TraceFenced(TracePoisoned):
    """Another writer took the stream over, or it was deleted. This writer accepts no more events for it."""


class TraceSealed(TraceError):
    """The stream is sealed. Nothing can be appended."""


class ProjectionStopped(TraceError):
    """The stream contains a delta version that this Remora does not support. The packet ends before `seq`."""

    def __init__(self, *, seq: int, version: int) -> None:
        super().__init__(
            f"The packet cannot be computed beyond seq {seq}: its delta is of version {version}",
            hint="Read this stream with a newer Remora",
        )
        self.seq = seq
        self.version = version


class HubError(RemoraError):
    """The Hub's index or daemon cannot be used. It never stops a run."""


class KVError(RemoraError):
    """A key-value file cannot be read or written."""


class KVBusy(KVError):
    """Another process is writing the file and did not finish in time."""

    def __init__(self, file: Path | str) -> None:
        super().__init__(f"`{file}` is being written by another process", hint="Try again when it has finished")
        self.file = str(file)


class KVConflict(KVError):
    """The record was changed concurrently. Nothing was written."""

    def __init__(self, key: str, *, expected: int, found: int) -> None:
        super().__init__(
            f"{key[:80]!r} has version {found}: expected {expected}. Nothing was written",
            hint="Load the record again and repeat the change",
        )
        self.key = key
        self.expected = expected
        self.found = found


class KVDamaged(KVError):
    """The file is damaged or is not a key-value file of Remora."""

    def __init__(self, file: Path | str, *, problem: str) -> None:
        super().__init__(f"`{file}` cannot be used: {problem}", hint="Move it away: Remora rebuilds it")
        self.file = str(file)
        self.problem = problem


class KVRecordInvalid(KVError):
    """A record does not match the model it is loaded as."""

    def __init__(self, key: str, *, model: str, problems: Sequence[str]) -> None:
        super().__init__(f"{key[:80]!r} is not a `{model}`: {'; '.join(problems)}")
        self.key = key
        self.problems = tuple(problems)


class ExportRefused(RemoraError):
    """An endpoint did not take the exported spans, or cannot be reached."""


class WorkspaceError(RemoraError):
    """A path is outside the workspace, or a file cannot be changed."""


class WorkspaceConflict(WorkspaceError):
    """The project was changed in the same lines. `paths` and `lines` say where. Nothing was overwritten."""

    def __init__(self, paths: Sequence[str], lines: Mapping[str, Sequence[range]] | None = None) -> None:
        self.lines = dict(lines or {})
        """By path, the lines in the current file. A file that was added, removed or is not text has none."""
        where = self.places(paths, self.lines)
        super().__init__(
            f"Changed since the agent read it, in the same lines: {where}. Nothing was written",
            hint="Run the agent again on the new text, or copy the lines by hand from `remora diff`",
        )
        self.paths = tuple(paths)

    @staticmethod
    def places(paths: Sequence[str], lines: Mapping[str, Sequence[range]]) -> str:
        """The files, each with its line numbers where known."""
        return ", ".join(f"`{path}`{_lines_told(lines.get(path, ()))}" for path in paths)


def _lines_told(lines: Sequence[range]) -> str:
    spans = ", ".join(f"{each[0]}" if len(each) == 1 else f"{each[0]}-{each[-1]}" for each in lines)
    return f" (now lines {spans})" if spans else ""
