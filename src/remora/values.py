"""The values that the Protocols of `remora.ports` exchange: prompts, decisions, outputs, jobs, results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from remora.context.calls import BadCall
from remora.context.contracts import ToolSpec
from remora.context.shapes import anthropic_messages, responses_items
from remora.context.text import messages_text
from remora.events import Call, CandidateAction, FileChange, NoticeEvent
from remora.nodes import CodeNode


@dataclass(frozen=True)
class Drafting:
    """What a prompt asks for that wants a text in plain words: an argument of a call, written several times."""

    tool: str
    argument: str
    count: int = 1
    temperature: float = 0.7
    max_tokens: int = 80
    args: Mapping[str, Any] = field(default_factory=dict)
    """The other arguments of the call."""


@dataclass(frozen=True)
class Prompt:
    """The input of a policy: the messages as sent, and the tools that it may call."""

    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[ToolSpec, ...]
    candidates: tuple[CandidateAction, ...] = ()
    turn: int = 0
    after_cut: bool = False
    """Whether the last reply was cut at its limit of tokens, so that this one may be longer."""
    goal: str = ""
    """What the agent is asked to do, if it is not only in the messages."""
    drafting: Drafting | None = None
    """Set if the messages ask for a text in plain words. A policy without a model chooses a call all the same."""

    @property
    def system(self) -> str:
        """The system text, for APIs that take it beside the messages."""
        return "\n".join(str(message["content"]) for message in self.messages if message["role"] == "system")

    @property
    def text(self) -> str:
        """All messages but the system's, as one text: the packet, for APIs that take one."""
        return messages_text(self.messages)

    def offers(self, tool: str) -> bool:
        """Whether a tool with this name is offered in this turn."""
        return any(spec.name == tool for spec in self.tools)

    def responses_input(self) -> list[Any]:
        """The messages as the `input` of OpenAI's Responses API; `system` goes into its `instructions`."""
        return list(responses_items(self.messages))

    def anthropic_messages(self) -> list[Any]:
        """The messages as Anthropic's Messages API takes them; `system` goes beside them."""
        return anthropic_messages(self.messages)

    def openai_tools(self) -> list[dict[str, Any]]:
        """The tools as the `tools` of an OpenAI-compatible chat request."""
        return [tool.openai() for tool in self.tools]

    def responses_tools(self) -> list[Any]:
        """The tools as the `tools` of OpenAI's Responses API."""
        return [{"type": "function", **tool.openai()["function"], "strict": False} for tool in self.tools]

    def anthropic_tools(self) -> list[Any]:
        """The tools as the `tools` of Anthropic's Messages API."""
        return [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in self.tools
        ]


@dataclass(frozen=True)
class Decision:
    """The output of a policy."""

    calls: tuple[Call, ...]
    text: str = ""
    model: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    finish: str = ""
    bad: tuple[BadCall, ...] = ()
    """Calls that cannot be made. The stream records them as written; the model reads their errors."""
    notices: tuple[NoticeEvent, ...] = ()
    """What was changed to get the decision, such as an argument that was dropped. The stream records it."""
    reasoning: str = ""
    """What the model thought before it answered. The stream records it; no prompt shows it."""
    fit: Mapping[str, Any] = field(default_factory=dict)
    """The question whether the proposed call does what was asked, with its answer. The stream records it."""
    drafts: tuple[Mapping[str, Any], ...] = ()
    """The texts that were written for the calls, which are alternatives: the first that succeeds is the last made. The
    stream records them."""


@dataclass(frozen=True)
class ToolOutput:
    """The output of a tool: its return value, and what else the stream records of it."""

    value: Any
    prints: str = ""
    outputs: tuple[tuple[str, bytes | Iterable[bytes]], ...] = ()
    """Full outputs of its commands by name. A large one is an iterable of chunks."""
    raised: Exception | None = None
    """The exception that became this output."""


class Written(NamedTuple):
    """One file that an agent changed: its content before and after (None if there is no file), and its mode."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int = 0o644
    """The file's permissions in the project; those of a new file if it does not exist there."""


@dataclass(frozen=True)
class Completed:
    """A command that finished."""

    argv: tuple[str, ...]
    returncode: int
    stdout: bytes
    """Its output, or the beginning of it: see `full`."""
    stderr: bytes
    full: Mapping[str, Iterable[bytes]] = field(default_factory=dict)
    """All of `stdout` or `stderr` in chunks, if it is too large for memory."""
    sandbox: str = ""
    """The sandbox that ran the project's code: `bubblewrap`, `landlock` or `none`. Empty if none of its code ran."""
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    """Requested output files by name, such as pytest's JUnit XML."""


@dataclass(frozen=True)
class Job:
    """One agent to run. Picklable, so that an engine can send it to another process."""

    run_id: str
    agent_id: str
    operation: str
    node: CodeNode
    stage: str = ""
    """`first` for an agent on a whole file before the others, `last` for one on the combined changes of others."""
    over: tuple[FileChange, ...] = ()
    """Changes that its workspace starts with."""
    after: tuple[str, ...] = ()
    """The agents that made those changes."""
    answer: str = ""
    """The stream of a larger model's answer, which the agent starts with."""
    clean_by: str = ""
    """The agent whose check found no problem in the whole file, so that this one's check need not run."""


@dataclass(frozen=True)
class AgentResult:
    """How a run of one agent ended, and the verdict of its check."""

    agent_id: str
    node_id: str
    operation: str
    outcome: str
    """`success`, `partial`, `error`, `cancelled` or `degraded`."""
    reason: str = ""
    summary: str = ""
    turns: int = 0
    largest_prompt: int = 0
    verdict: str = ""
    """`clean`, `partial`, `unchanged` or `failed`, judged by the files; empty if the agent has no check."""
    check: Mapping[str, Any] = field(default_factory=dict)
    head: str = ""
    last_seq: int = -1
    files: tuple[FileChange, ...] = ()
    stage: str = ""
    """`first` if it worked on a whole file before the others, `last` if on the combined changes of others."""
    decisions: tuple[Any, ...] = ()
    """Who decided what: a `remora.analysis.RungRow` for each rung."""
    worker: str = ""
    """Which worker of a cluster ran it; empty if this process did."""

    @property
    def has_ended(self) -> bool:
        """Whether the stream records this end. That of a `degraded` agent does not: `remora resume` continues it."""
        return self.outcome != "degraded"

    @property
    def why(self) -> str:
        """The reason for the verdict in one line, in the words of tools and rules, never of the model."""
        failed = self.outcome in ("error", "degraded", "cancelled")
        said = f"{self.reason}: {self.summary}" if failed and self.summary else self.check.get("why") or self.reason
        return str(said)


@dataclass(frozen=True)
class Pulled:
    """Facts that a Hub has proven to be fresh."""

    facts: Mapping[str, Any]
    """By node id. A node is missing if its facts cannot be proven fresh."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """By file, the SHA-256 of the bytes that the facts describe."""
    freshness: Mapping[str, str] = field(default_factory=dict)
    """By node: `index` if the index covers the current bytes, `workspace` if the facts were just extracted."""
    problem: str = ""
    """Why facts may be missing; empty if none are."""
