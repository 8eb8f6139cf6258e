"""Everything Remora raises on purpose, sorted by who must act.

RemoraError                    stops the run; says what happened, what was expected, and a hint
├── ConfigError                a person must act, before anything runs
│   ├── DefinitionError        an agent definition or a tool script is wrong, with its path inside the file
│   └── MissingExtra           an optional part is not installed
├── ToolError                  the model reads it and goes on
│   ├── ToolNotFound           no such tool in this agent
│   ├── ToolArgumentsInvalid   the arguments do not fit the tool's schema
│   ├── ToolFailed             the tool itself failed
│   └── ToolLimitExceeded      time, memory, output: the limit is named
├── DecisionError              the policy gave no valid call; carries what was said so far
│   ├── ServerUnreachable      no answer, or an answer that says to try later, until the retries were used up
│   ├── ServerRefused          the server answered that it will not: a person must act
│   ├── DecisionLate           the deadline passed
│   ├── ReplyBroken            the reply ended in the middle, or is not what the protocol says
│   ├── ReplyTooLarge          the reply reached the limit of its size
│   └── ReplyInvalid           the model spoke, and nothing in it is a valid call
├── AgentError                 an agent came to no result; `code` says why
│   └── TargetChanged          the code that it was to work on was saved meanwhile: it is left as it is
├── BudgetError                the prompt cannot fit, whatever is left out
│   └── CountingFailed         tokens could not be counted, so no prompt is known to fit
├── TraceError                 a stream cannot be written or read
│   ├── TraceNotFound          no stream has that id
│   ├── TraceDamaged           a stream is damaged, with file, line and seq
│   ├── TraceLocked            another writer has the stream
│   ├── TracePoisoned          a write or sync failed: nothing more is acknowledged
│   └── TraceSealed            the stream has ended: nothing can follow
├── HubError                   the Hub's index or daemon cannot be used; a run never sees this
├── KVError                    a key-value file cannot be read or written
│   ├── KVBusy                 another process is writing it
│   ├── KVConflict             somebody changed the record meanwhile: nothing was written
│   ├── KVDamaged              the file is damaged, or is not one of ours
│   └── KVRecordInvalid        a record does not fit its model
└── WorkspaceError             a path leads outside, or a file cannot be changed
    └── WorkspaceConflict      the project changed meanwhile: nothing was overwritten
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


class RemoraError(Exception):
    """Stops the run. `message` says what happened and what was expected; `hint` says what to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigError(RemoraError):
    """A person must act, before anything runs."""


class DefinitionError(ConfigError):
    """An agent definition or a tool script is wrong. `problems` holds every one found, each with its place."""

    def __init__(self, file: Path | str, problems: Sequence[str], *, hint: str | None = None) -> None:
        self.file = str(file)
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{file}: {problem}" for problem in problems), hint=hint)


class MissingExtra(ConfigError):
    """An optional part is needed and not installed."""

    def __init__(self, what: str, *, extra: str, distribution: str = "remora-agents") -> None:
        super().__init__(f"{what} is not installed", hint=f'Install it with `pip install "{distribution}[{extra}]"`')
        self.extra = extra


class ToolError(RemoraError):
    """The model reads it and goes on."""

    code = "tool_error"
    prints: str = ""
    """What the tool printed before it failed."""
    outputs: tuple[tuple[str, bytes | Iterable[bytes]], ...] = ()
    """Full outputs of the commands that it ran, by name."""


class ToolNotFound(ToolError):
    """The model asked for a tool its agent does not have."""

    code = "tool_not_found"

    def __init__(self, tool: str, *, known: Iterable[str], agent: str = "") -> None:
        names = ", ".join(f"`{name}`" for name in sorted(known))
        where = f"not in agent `{agent}`" if agent else "not offered"
        super().__init__(
            f"Tool `{tool}` is {where}: expected one of {names}",
            hint=f"Add `agents/{agent}/tools/{tool}.pym`, or correct the name in the prompt" if agent else None,
        )


class ToolArgumentsInvalid(ToolError):
    """The arguments do not fit the tool's schema."""

    code = "tool_arguments_invalid"

    def __init__(self, tool: str, problems: Sequence[str]) -> None:
        super().__init__(f"Arguments of `{tool}` do not fit: {'; '.join(problems)}")
        self.problems = tuple(problems)


class ToolFailed(ToolError):
    """The tool itself failed."""

    code = "tool_failed"


class ToolLimitExceeded(ToolError):
    """A tool reached one of its limits, which `limit` names."""

    code = "tool_limit_exceeded"

    def __init__(self, tool: str, *, limit: str) -> None:
        super().__init__(f"Tool `{tool}` was stopped: it reached its limit of {limit}")
        self.limit = limit


class DecisionError(RemoraError):
    """The policy gave no valid call. What was said until then is in `text`, `usage`, `finish` and `model`."""

    code = "no_decision"
    ask_again = False
    """Whether the same model may give a valid call when it is told what was wrong and asked once more."""

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
    """No answer, or an answer that says to try later, until the retries were used up."""

    code = "server_unreachable"
    retry_after_s: float | None = None
    """How long the server asked to wait."""


class ServerRefused(DecisionError):
    """The server answered that it will not do this: a wrong key, an unknown model, a redirect. A person must act."""

    code = "server_refused"
    status: int = 0
    """The HTTP status that it answered with."""


class DecisionLate(DecisionError):
    """The deadline passed before there was a decision."""

    code = "decision_late"


class ReplyBroken(DecisionError):
    """The reply ended in the middle, or is not what the protocol says."""

    code = "reply_broken"
    ask_again = True


class ReplyTooLarge(DecisionError):
    """The reply reached the limit of its size, or of its number of calls."""

    code = "reply_too_large"
    ask_again = True


class ReplyInvalid(DecisionError):
    """The model spoke, and nothing in it is a valid call."""

    code = "reply_invalid"
    ask_again = True


class AgentError(RemoraError):
    """An agent came to no result. `code` is the reason that its stream ends with."""

    def __init__(self, message: str, *, code: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class TargetChanged(AgentError):
    """The code that an agent was to work on was saved meanwhile, and the agent cannot go on from there."""


class BudgetError(RemoraError):
    """The prompt cannot fit its token limit, whatever is left out."""


class CountingFailed(BudgetError):
    """Tokens could not be counted, so no prompt is known to fit."""


class TraceError(RemoraError):
    """A stream cannot be written or read."""


class TraceNotFound(TraceError):
    """No stream has that id."""


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
    """Another writer has the stream."""


class TracePoisoned(TraceError):
    """A write or a sync failed, so nothing more is acknowledged on this stream."""


class TraceSealed(TraceError):
    """The stream has ended, so nothing can follow."""


class ProjectionStopped(TraceError):
    """The stream holds a delta of a version that this Remora cannot read: no packet exists from `seq` on."""

    def __init__(self, *, seq: int, version: int) -> None:
        super().__init__(
            f"The packet cannot be computed beyond seq {seq}: its delta is of version {version}",
            hint="Read this stream with a newer Remora",
        )
        self.seq = seq
        self.version = version


class HubError(RemoraError):
    """The Hub's index or daemon cannot be used. A run never sees this: it goes on without."""


class KVError(RemoraError):
    """A key-value file cannot be read or written."""


class KVBusy(KVError):
    """Another process is writing the file, and did not end in time."""

    def __init__(self, file: Path | str) -> None:
        super().__init__(f"`{file}` is being written by another process", hint="Try again when that has ended")
        self.file = str(file)


class KVConflict(KVError):
    """Somebody changed the record meanwhile. Nothing was written."""

    def __init__(self, key: str, *, expected: int, found: int) -> None:
        super().__init__(
            f"{key[:80]!r} has version {found}: expected {expected}. Nothing was written",
            hint="Load the record again, and decide on what it holds now",
        )
        self.key = key
        self.expected = expected
        self.found = found


class KVDamaged(KVError):
    """A key-value file is damaged, or is not one of ours."""

    def __init__(self, file: Path | str, *, problem: str) -> None:
        super().__init__(f"`{file}` cannot be believed: {problem}", hint="Move it away: a view is made anew")
        self.file = str(file)
        self.problem = problem


class KVRecordInvalid(KVError):
    """A record does not fit the model that it is loaded as."""

    def __init__(self, key: str, *, model: str, problems: Sequence[str]) -> None:
        super().__init__(f"{key[:80]!r} is not a `{model}`: {'; '.join(problems)}")
        self.key = key
        self.problems = tuple(problems)


class WorkspaceError(RemoraError):
    """A path leads outside the workspace, or a file cannot be changed."""


class WorkspaceConflict(WorkspaceError):
    """The project changed meanwhile. `paths` names the files, `lines` where in them; nothing was overwritten."""

    def __init__(self, paths: Sequence[str], lines: Mapping[str, Sequence[range]] | None = None) -> None:
        self.lines = dict(lines or {})
        """By path: the lines of the file as it is now. A file that came, went or holds no text has none."""
        where = self.places(paths, self.lines)
        super().__init__(
            f"Changed since the agent read it, in the same lines: {where}. Nothing was written",
            hint="Run the agent again on the new text, or take over the lines by hand from `remora diff`",
        )
        self.paths = tuple(paths)

    @staticmethod
    def places(paths: Sequence[str], lines: Mapping[str, Sequence[range]]) -> str:
        """The files by name, each with its lines where it has some."""
        return ", ".join(f"`{path}`{_lines_told(lines.get(path, ()))}" for path in paths)


def _lines_told(lines: Sequence[range]) -> str:
    spans = ", ".join(f"{each[0]}" if len(each) == 1 else f"{each[0]}-{each[-1]}" for each in lines)
    return f" (now lines {spans})" if spans else ""
