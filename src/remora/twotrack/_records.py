"""Records of a track that need nothing but the stream: notices, reports, messages and errors."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_core import to_jsonable_python

from remora.context.contracts import ToolSpec
from remora.context.manager import ContextManager
from remora.context.projection import project
from remora.context.secrets import Secrets
from remora.events import (
    AgentErrorEvent,
    Call,
    NoticeEvent,
    PacketDelta,
    PacketUpdateEvent,
    SubmitResultEvent,
    ToolCallEvent,
    TurnStartEvent,
    UserInputEvent,
)
from remora.ports import Prompt
from remora.twotrack._evidence import user_delta
from remora.twotrack._offload import MAX_INLINE, Offloader
from remora.twotrack._prompts import PromptBuilder


class Records:
    """What a track records beside turns and calls."""

    context: ContextManager
    tools: tuple[ToolSpec, ...]
    _offloader: Offloader
    _secrets: Secrets
    _prompts: PromptBuilder
    awaits_reply: bool

    async def notice(self, code: str, message: str) -> None:
        """Record a notice. It does not change the packet."""
        await self.context.record(NoticeEvent(code=code, message=message))

    async def update(self, source: str, delta: PacketDelta) -> None:
        """Record a change of the packet from outside the run, such as an escalation's answer."""
        await self.context.record(PacketUpdateEvent(source=source, delta=delta))

    async def ask(self, document: str) -> Prompt:
        """Start a turn whose prompt is `document` instead of the packet, and record the receipt."""
        start = TurnStartEvent(turn=self.context.packet.turn + 1)
        shown = project([start], start=self.context.packet)
        messages, receipt = await self._prompts.build_document(shown, self._secrets.clean(document))
        await self.context.record(start, receipt)
        self.awaits_reply = True
        return Prompt(messages, self.tools, (), shown.turn)

    async def unanswered(self, call: Call, why: str) -> None:
        """Record a call whose result is unknown: its intent, and why."""
        args = (await self._offloader.call(call)).args
        await self.context.record(
            ToolCallEvent(call_id=call.call_id, tool=call.tool, args=args),
            NoticeEvent(code="no_result", message=f"{call.tool}: {why}"),
        )

    async def submit(self, result: object) -> None:
        """Record the agent's own report: its call of `submit_result`, a dict, a line of text, or any other value."""
        call_id, report = (result.call_id, result.args) if isinstance(result, Call) else ("", result)
        if isinstance(report, Mapping):
            fields = dict(report)
        else:
            text = isinstance(report, str)
            fields = {"summary": report} if text else {"result": to_jsonable_python(report, fallback=repr)}
        await self.context.record(SubmitResultEvent(call_id=call_id, result=fields))

    async def user(self, text: str) -> None:
        """Record a person's message. Style `account` shows it as evidence; other styles as knowledge `user`."""
        message = self._secrets.clean(text)
        delta = user_delta(message, self._prompts.settings.style)
        await self.context.record(UserInputEvent(**await self._offloader.text(message), delta=delta))

    async def fail(self, code: str, message: str) -> None:
        """Record the error that stopped the agent."""
        await self.context.record(AgentErrorEvent(code=code, message=message[:MAX_INLINE]))
