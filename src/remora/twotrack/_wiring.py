"""The parts of a `TwoTrack`: stream identity, prompt settings, and implementations of ports."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from remora.context.chat import tool_spec
from remora.context.checks import Extension
from remora.context.contracts import ToolLike, ToolSpec
from remora.context.recall import RECALL
from remora.context.render import CHRONOLOGICAL, fixed_tokens, system_text
from remora.context.secrets import Secrets
from remora.context.summarizers import FALLBACK, Summarizer, Unguarded, get_default_summarizers
from remora.ports import BlobStore, Clock, HubClient, SummaryGuard, TokenCounter, TraceWriter
from remora.subagent import CandidateRule
from remora.twotrack._prompts import PromptSettings


@dataclass(frozen=True)
class Identity:
    """The identity of a stream: the fields of every record's envelope that never change."""

    agent_id: str
    run_id: str = ""
    operation: str = ""
    node_id: str = ""

    @property
    def stream_id(self) -> str:
        return f"traces/{self.agent_id}"

    def fields(self) -> dict[str, str]:
        return {
            "agent_id": self.agent_id,
            "run_id": self.run_id,
            "operation": self.operation,
            "node_id": self.node_id,
        }


async def _nothing_to_close() -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """Everything that one `TwoTrack` is built from. The defaults are the same for every caller."""

    identity: Identity
    goal: str
    prompts: PromptSettings
    writer: TraceWriter
    blobs: BlobStore
    counter: TokenCounter
    clock: Clock
    tools: Sequence[ToolLike] = ()
    system_prompt: str = ""
    summarizers: Mapping[str, Summarizer] = field(default_factory=get_default_summarizers)
    fallback: Summarizer | None = FALLBACK
    """Summarizes text, lists and command outputs of tools without a summarizer."""
    guard: SummaryGuard = field(default_factory=Unguarded)
    """Runs the summarizers that are not built in."""
    secrets: Secrets = field(default_factory=Secrets)
    extensions: Mapping[str, Extension] = field(default_factory=dict)
    rules: Sequence[CandidateRule] = ()
    evidence: bool = True
    """Whether results without a summary of their own are read as evidence. Without it, a delta has only a summary."""
    name: str = ""
    """A name of the run, for lists."""
    recall: bool = True
    """Whether styles that leave parts of the run out offer the tool `recall`."""
    hub: HubClient | None = None
    path: Path | None = None
    """The file of the stream, if it is on this machine's disk."""
    close: Callable[[], Awaitable[None]] = _nothing_to_close
    """Releases resources of this run. Awaited after the stream is sealed."""

    def with_packet_budget(self, tokens: int) -> Wiring:
        """A copy whose prompt limit leaves `tokens` for the packet, beside system text and tools."""
        specs, settings = self.specs, self.prompts
        beside = specs if settings.calling == "native" else ()
        system = system_text(self.secrets.clean(self.system_prompt), specs, settings.calling)
        limit = fixed_tokens(system, self.counter, beside) + tokens
        return replace(self, prompts=replace(settings, limit=limit, packet=tokens))

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools, and `recall` for styles that may leave things out."""
        return self.specs_of(self.tools)

    def specs_of(self, tools: Sequence[ToolLike]) -> tuple[ToolSpec, ...]:
        """Like `specs`, for other tools. A framework's copy of `recall` is `recall` itself."""
        given = tuple(map(tool_spec, tools))
        own = tuple(tool for tool in given if (tool.name, tool.description) != (RECALL.name, RECALL.description))
        offers_recall = self.recall and self.prompts.style in CHRONOLOGICAL
        return (*own, RECALL) if offers_recall and all(tool.name != RECALL.name for tool in own) else own
