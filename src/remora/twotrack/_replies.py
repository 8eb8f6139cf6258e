"""Records the replies of a model: its text, its valid calls and its invalid ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from remora.context.calls import BadCall
from remora.context.chat import read_reply
from remora.context.contracts import ToolSpec
from remora.context.manager import ContextManager
from remora.context.recall import RECALL
from remora.context.render import CHRONOLOGICAL
from remora.errors import DecisionError
from remora.events import Call, ErrorDelta, ModelResponseEvent, NoticeEvent, PacketDelta, PacketUpdateEvent
from remora.ports import Decision
from remora.twotrack._evidence import agent_evidence
from remora.twotrack._offload import MAX_INLINE, Offloader
from remora.twotrack._prompts import PromptBuilder


class ReplyRecorder:
    """Records one agent's replies."""

    def __init__(
        self, context: ContextManager, offloader: Offloader, prompts: PromptBuilder, tools: Sequence[ToolSpec]
    ) -> None:
        self._context = context
        self._offloader = offloader
        self.prompts = prompts
        """The prompts that the replies answer."""
        self.tools = tools

    async def record(self, reply: object, calls: Iterable[object] | None = None) -> tuple[Call, ...]:
        """Record a reply and return its valid calls. Raises `DecisionError` if `reply` is not a reply."""
        decision = reply
        if not isinstance(decision, Decision):
            in_text = self.prompts.settings.calling != "native"
            # Without tools of its own, nobody has said which calls are valid.
            known = () if tuple(self.tools) == (RECALL,) else self.tools
            decision = read_reply(reply, known, turn=self._context.packet.turn, in_text=in_text, calls=calls)
        refused = decision.bad[0].error.code if decision.bad and not decision.calls else ""
        await self._record_reply(decision, refused)
        for bad in decision.bad:
            await self._record_bad_call(bad)
        return decision.calls

    async def record_failure(self, error: DecisionError) -> None:
        """Record a reply without a valid call, as much of it as arrived. The packet tells the model why."""
        answer = Decision((), error.text, error.model, error.usage, error.finish)
        await self._record_reply(answer, error.code, _error_delta(error.message))

    async def _record_reply(self, decision: Decision, error: str, delta: PacketDelta | None = None) -> None:
        fields = await self._offloader.text(decision.text)
        text = fields["text"] if decision.calls or not decision.bad else ""
        thought = await self._offloader.text(decision.reasoning) if decision.reasoning else {}
        answer = ModelResponseEvent(
            **fields,
            **{key.replace("text", "reasoning"): value for key, value in thought.items()},
            calls=tuple([await self._offloader.call(call) for call in decision.calls]),
            model=decision.model,
            usage=dict(decision.usage),
            finish=decision.finish,
            error=error,
            fit=dict(decision.fit),
            drafts=tuple(dict(draft) for draft in decision.drafts),
            delta=agent_evidence(text, delta) if self.prompts.settings.style in CHRONOLOGICAL else delta,
        )
        miscounted = self.prompts.usage_notice(decision.usage)
        await self._context.record(answer, *decision.notices, *([miscounted] if miscounted else []))

    async def _record_bad_call(self, bad: BadCall) -> None:
        """Record an invalid call: in full for developers, and as an error line for the model."""
        written = f"{bad.call.call_id} {bad.call.tool} {bad.written}"
        await self._context.record(
            NoticeEvent(code=bad.error.code, message=written[:MAX_INLINE]),
            PacketUpdateEvent(source="model_response", delta=_error_delta(bad.error.message)),
        )


def _error_delta(line: str) -> PacketDelta:
    return PacketDelta(error=ErrorDelta(set=line), diagnostics=(line,))
