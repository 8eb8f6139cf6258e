"""Builds the prompts of one run, each within the limit, and the receipts that the stream records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from remora.context.budget import check_limit
from remora.context.contracts import ToolSpec
from remora.context.drafting import RENDERER as DRAFT
from remora.context.drafting import choose_rule, other_arguments, render_draft
from remora.context.history import HISTORY, Chat, History
from remora.context.models import DecisionPacket
from remora.context.recall import RECALL
from remora.context.render import (
    CHRONOLOGICAL,
    RENDERERS,
    Calling,
    Rendered,
    Style,
    fixed_tokens,
    render_within,
    reserved_tokens,
    system_text,
)
from remora.errors import BudgetError, UsageError
from remora.events import Event, ModelRequestEvent, NoticeEvent, canonical, digest
from remora.ports import Drafting, TokenCounter
from remora.subagent import SUBMIT_RESULT_TOOL, DraftRule
from remora.twotrack._offload import Offloader

if TYPE_CHECKING:
    from remora.twotrack._handover import Handover

Memory = Literal["packet", "history", "cut history"]
"""What a prompt is built from: the packet, or for comparison the whole chat history, or as much of it as fits."""

DOCUMENT = "document-1"
"""The renderer of a prompt that is a document instead of a packet."""
MAX_COUNTS = 64
"""Texts whose token counts are kept in memory: most parts of a prompt are the same in the next turn."""
CUT_EXACT, CUT_ESTIMATED = 0.8, 0.2
"""Share of our token count below which the server must have truncated the prompt. An estimate may be far too high."""

_DONE = f"\n\n`{{key}}` is 0: the work is done. Call {SUBMIT_RESULT_TOOL}."


@dataclass(frozen=True)
class BuiltPrompt:
    """A prompt, and the receipt that the stream records of it."""

    messages: tuple[Mapping[str, Any], ...]
    offered: tuple[ToolSpec, ...]
    receipt: ModelRequestEvent
    drafting: Drafting | None = None


@dataclass(frozen=True)
class PromptSettings:
    """How prompts are built. Constant during a run."""

    limit: int
    style: Style = "json"
    calling: Calling = "text"
    memory: Memory = "packet"
    packet: int = 0
    """Tokens of the packet alone. If set, `limit` is this plus the tokens of system text and tools."""
    limit_name: str = "PromptSettings.limit"
    """The parameter or setting that errors name for `limit`."""
    keep_messages: bool = False
    """Also keep the run as a chat history, for debugging."""

    done_key: str = ""
    """A knowledge key: when it is 0 and the best candidate is `submit_result`, the prompt ends by saying so.

    For models that were not trained on packets: they do finished work again unless the last line says that it is done.
    """
    check_tool: str = ""
    """The tool of the agent's check: once called, it is not offered again before a file changes.

    For models that were not trained on packets: they like to look again instead of going on.
    """
    drafts: tuple[DraftRule, ...] = ()
    """When to ask for a text in plain words instead of a call; empty for a model that only chooses."""
    rung: str = ""
    """The rung of the ladder that these prompts are for, as receipts name it; empty without a ladder."""
    are_sent: bool = True
    """Whether a server reads these prompts. For an import it read others, and what it counted says nothing of ours."""

    @property
    def uses_history(self) -> bool:
        return self.memory != "packet" or self.keep_messages

    @property
    def renderer(self) -> str:
        """The renderer's version, as streams name it."""
        return RENDERERS[self.style] if self.memory == "packet" else HISTORY

    def misfits(self, model: Mapping[str, Any], operation: str) -> list[NoticeEvent]:
        """Notices about an adapter that was trained for other prompts or weights, and about what a server cannot do."""
        adapter = model.get("adapters", {}).get(operation, model.get("adapter")) or {}
        file, learned, base = adapter.get("file"), adapter.get("renderers", ()), adapter.get("trained_on")
        notices = []
        if learned and self.renderer not in learned:
            message = f"Adapter {file} was trained for prompts of {', '.join(learned)}, not of {self.renderer}"
            notices.append(NoticeEvent(code="adapter_renderer", message=message))
        if base:
            message = f"Adapter {file} was trained on other weights ({base}): expect worse choices, or train it anew"
            notices.append(NoticeEvent(code="adapter_weights", message=message))
        notices += [NoticeEvent(code="server_cannot", message=sentence) for sentence in model.get("cannot", ())]
        return notices


class PromptBuilder:
    """Builds prompts. Raises `BudgetError` at once if one could ever be over the limit."""

    def __init__(
        self,
        system_prompt: str,
        tools: Sequence[ToolSpec],
        settings: PromptSettings,
        counter: TokenCounter,
        offloader: Offloader,
    ) -> None:
        self.settings = settings
        self.counter = counter
        self._offloader = offloader
        self._history = History(settings.calling, counter) if settings.uses_history else None
        self._counted = 0
        self._count = lru_cache(maxsize=MAX_COUNTS)(counter.count)
        self._recorded: Sequence[ToolSpec] = tools
        """The tools whose schemas the stream has."""
        self.configure(system_prompt, tools)

    def configure(self, system_prompt: str, tools: Sequence[ToolSpec]) -> None:
        """Use these from the next prompt on. Raises `BudgetError` and changes nothing if one could exceed the limit."""
        settings, counter = self.settings, self.counter
        system = system_text(system_prompt, tools, settings.calling)
        fixed = fixed_tokens(system, counter, tools if settings.calling == "native" else ())
        limit = fixed + settings.packet if settings.packet else settings.limit
        closing = counter.count(_DONE.format(key=settings.done_key)) if settings.done_key else 0
        check_limit(fixed + closing, limit, reserved_tokens(settings.style, counter.count), name=settings.limit_name)
        self.settings = replace(settings, limit=limit)
        self._system_prompt, self._tools, self._system, self._fixed = system_prompt, tools, system, fixed

    @property
    def system_prompt(self) -> str:
        """The system text of the next prompt."""
        return self._system_prompt

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The run as a chat history; empty if none is kept."""
        return self._history.messages if self._history else []

    def add_to_history(self, event: Event, raw: str) -> None:
        """Append the event to the chat history, if one is kept. `raw` is the full result of a tool."""
        if self._history is not None:
            self._history.take(event, raw)

    async def build(
        self, packet: DecisionPacket, usable: tuple[ToolSpec, ...], handover: Handover | None = None
    ) -> BuiltPrompt:
        """Build a prompt: its messages, the tools offered with it, and its receipt, whose large parts are in blobs.

        With `handover`, the prompt shows evidence of the Long Track in addition to the packet.
        """
        if (draft := await self._build_draft(packet, usable)) is not None:
            return draft
        built = self._render(packet.model_copy(update={"evidence": handover.evidence}) if handover else packet)
        if len(built.messages) == 1:
            raise UsageError(
                "There is nothing to ask: the goal is empty, and nobody said anything",
                hint="Give a goal, or call `user(text)` before `request()`",
            )
        self._counted = built.tokens["total"]
        # `recall` is useless if nothing was left out.
        hidden = RECALL if self.settings.style in CHRONOLOGICAL and not built.left_out else None
        offered = tuple(tool for tool in usable if tool is not hidden and tool in self._tools)
        receipt = await self._receipt(packet, built, offered, self.settings.renderer)
        return BuiltPrompt(built.messages, offered, receipt)

    async def _build_draft(self, packet: DecisionPacket, usable: Sequence[ToolSpec]) -> BuiltPrompt | None:
        """A prompt for a text in plain words, if a rule wants one and enough of an excerpt fits."""
        rules = self.settings.drafts if self.settings.memory == "packet" else ()
        offered = tuple(tool for tool in usable if tool in self._tools)
        rule = choose_rule(rules, packet, [tool.name for tool in offered])
        built = render_draft(packet, rule, self.settings.limit, self._count) if rule else None
        if rule is None or built is None:
            return None
        self._counted = built.tokens["total"]
        offered = tuple(tool for tool in offered if tool.name == rule.tool)
        args = other_arguments(rule, packet)
        drafting = Drafting(rule.tool, rule.argument, rule.count, rule.temperature, rule.max_tokens, args)
        return BuiltPrompt(built.messages, offered, await self._receipt(packet, built, offered, DRAFT), drafting)

    async def _receipt(
        self, packet: DecisionPacket, built: Rendered | Chat, offered: Sequence[ToolSpec], renderer: str
    ) -> ModelRequestEvent:
        return ModelRequestEvent(
            packet_sha256=digest(canonical(packet)),
            prompt_sha256=digest(canonical(built.messages)),
            messages=await self._offloader.messages(built.messages, bounded=self.settings.memory == "packet"),
            tokens=built.tokens,
            limit=self.settings.limit,
            left_out=built.left_out,
            offered=tuple(tool.name for tool in offered),
            counter=_counter_record(self.counter),
            renderer=renderer,
            rung=self.settings.rung,
            turn=packet.turn,
            **await self._changed_tools(),
        )

    async def _changed_tools(self) -> dict[str, Any]:
        """The receipt's fields for tools that the stream does not have yet."""
        if self._tools is self._recorded or tuple(self._tools) == tuple(self._recorded):
            return {}
        self._recorded = self._tools
        return await self._offloader.tools(self._tools)

    async def build_document(
        self, packet: DecisionPacket, text: str
    ) -> tuple[tuple[Mapping[str, Any], ...], ModelRequestEvent]:
        """Build a prompt whose packet is replaced by a document. Raises `BudgetError` if it is over the limit."""
        messages = ({"role": "system", "content": self._system}, {"role": "user", "content": text})
        tokens = {"system": self._fixed, "document": self.counter.count(text)}
        self._counted = tokens["total"] = sum(tokens.values())
        if self._counted > self.settings.limit:
            raise BudgetError(
                f"The document makes a prompt of {self._counted} tokens: the limit is {self.settings.limit}"
            )
        receipt = ModelRequestEvent(
            packet_sha256=digest(canonical(packet)),
            prompt_sha256=digest(canonical(messages)),
            messages=await self._offloader.messages(messages, bounded=True),
            tokens=tokens,
            limit=self.settings.limit,
            offered=tuple(tool.name for tool in self._tools),
            counter=_counter_record(self.counter),
            renderer=DOCUMENT,
            rung=self.settings.rung,
            turn=packet.turn,
        )
        return messages, receipt

    def usage_notice(self, usage: Mapping[str, Any]) -> NoticeEvent | None:
        """A notice if the server read clearly less of the last prompt than was sent, or more than was counted."""
        read = _prompt_tokens(usage) if self.settings.are_sent else None
        if not isinstance(read, int) or isinstance(read, bool) or read <= 0:
            return None
        if read < self._counted * (CUT_EXACT if self.counter.exact else CUT_ESTIMATED):
            return NoticeEvent(code="prompt_cut", message=f"The server read {read} of {self._counted} prompt tokens")
        if read > self._counted:
            counts = f"The server counted {read} prompt tokens, we {self._counted}"
            return NoticeEvent(code="counted_short", message=counts)
        return None

    def _render(self, packet: DecisionPacket) -> Rendered | Chat:
        settings = self.settings
        if self._history is not None and settings.memory != "packet":
            cut = settings.memory == "cut history"
            return self._history.prompt(
                self._system_prompt, self._tools, calling=settings.calling, limit=settings.limit, cut=cut
            )
        count, closing = self._count, done_line(packet, settings.done_key)
        taken = count(closing) if closing else 0
        made = render_within(
            packet,
            self._system,
            self._fixed,
            limit=settings.limit - taken,
            count=count,
            style=settings.style,
            calling=settings.calling,
        )
        return made.ending_with(closing, taken) if closing else made


def done_line(packet: DecisionPacket, key: str) -> str:
    """The last line of a prompt when the work is done; empty if it is not, or if the agent has no such `key`."""
    known = packet.knowledge.get(key) if key else None
    done = known is not None and known.value == 0 and known.value is not False
    best = packet.candidate_actions[0].tool if packet.candidate_actions else ""
    return _DONE.format(key=key) if done and best == SUBMIT_RESULT_TOOL else ""


def _prompt_tokens(usage: Mapping[str, Any]) -> Any:
    """The prompt tokens that a server reports. Anthropic's `input_tokens` leaves out those read from its cache."""
    if "prompt_tokens" in usage or not isinstance(read := usage.get("input_tokens"), int):
        return usage.get("prompt_tokens")
    cached = (usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens"))
    return read + sum(count for count in cached if isinstance(count, int))


def _counter_record(counter: TokenCounter) -> dict[str, Any]:
    record = {"name": counter.name, "exact": counter.exact}
    return record | {"digest": counter.digest} if counter.digest else record
