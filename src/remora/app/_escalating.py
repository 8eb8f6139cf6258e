"""Hands a stuck run to a person or a larger model, records the answer, and returns it to the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from remora.analysis import EscalationDocument, answer_delta, escalation_document
from remora.app._deciding import EMBEDDED, NO_MODEL, Deciders, deciders
from remora.app._ladder import HANDOVER_TOKENS, check_weights, rung_server
from remora.app._project import Project, counter_of
from remora.config import RungConfig
from remora.context.contracts import ToolSpec
from remora.context.render import fixed_tokens, system_text
from remora.context.text import one_line
from remora.errors import ConfigError, DecisionError, TraceError
from remora.events import (
    AgentEndEvent,
    AgentStartEvent,
    BlobRef,
    Event,
    PacketDelta,
    PacketUpdateEvent,
    SubmitResultEvent,
    ToolResultEvent,
    unpack,
)
from remora.ports import Decision, blob_limit
from remora.subagent import RESERVED_TOOLS, SubagentDefinition, ToolEntry
from remora.trace import StreamWriter
from remora.twotrack import Identity, PromptSettings, Track, Wiring

DOCUMENT_TOKENS = 4000
"""Default tokens of a document for a person."""
ANSWER_TOOL = "answer"
ANSWER = ToolSpec(
    name=ANSWER_TOOL,
    description="Say in a few sentences what the agent should do next, and why.",
    parameters={"type": "object", "properties": {"advice": {"type": "string"}}, "required": ["advice"]},
    effects="none",
)
SYSTEM = (
    "A smaller agent is stuck. You read an account of its run. Help it in one of two ways: call the tool that it "
    "should call next, with the right arguments, or call `answer` with advice. Your call is not run: the agent gets "
    "it as a suggestion."
)
OPERATION = "escalation"
DEFINITION = SubagentDefinition(
    name=OPERATION, goal="Advise", system_prompt=SYSTEM, tools=(ToolEntry(name=ANSWER_TOOL),)
)
"""Stands for the model that is asked: it has no agent of its own."""


@dataclass(frozen=True)
class Answer:
    """A larger model's answer about a stuck run, recorded as a stream."""

    agent_id: str
    """The stream of the answer."""
    about: str
    """The agent that it is about."""
    by: str
    operation: str = ""
    """The operation and the node of that agent."""
    node_id: str = ""
    advice: str = ""
    tool: str = ""
    """The call that it suggests; empty if it gives only advice."""
    args: Mapping[str, Any] | None = None
    given_back: bool = False
    """Whether the agent's stream has it now. A sealed stream cannot be changed."""
    prompt_tokens: int = 0


class Escalating:
    """Escalates single runs, after the fact."""

    def __init__(self, project: Project) -> None:
        self._project = project

    async def document(self, fragment: str, tokens: int | None = None) -> EscalationDocument:
        """The run as a document of at most `tokens` tokens, estimated."""
        events = list(self._project.library.events(fragment))
        return await self._write(events, tokens or DOCUMENT_TOKENS, None)

    async def ask(self, fragment: str, to: str, tokens: int | None = None) -> Answer:
        """Ask the model `to` about a run, record its answer, and give it to the run if its stream is not sealed.

        Raises `TraceLocked` if the agent is running, before anything is asked, and `DecisionError` if the model gives
        no answer; the stream of the question records why.
        """
        self._project.check_own_state()
        events = list(self._project.library.events(fragment))
        start = next((event for event in events if isinstance(event, AgentStartEvent)), None)
        if start is None or start.operation == OPERATION:
            raise ConfigError(f"`{fragment}` is not an agent's run: expected the id of an agent")
        rung = self._rung(to)
        if rung.model in NO_MODEL:
            raise ConfigError(f"`{rung.model}` is not a model: expected one that can read a document")
        server = rung_server(rung, self._project.config.server)
        check_weights(rung.model, server)
        async with deciders(server) as found, self._project.writer() as writer:
            stream_id, is_open = f"traces/{start.agent_id}", not isinstance(events[-1], AgentEndEvent)
            if is_open:  # lock it first, so that the answer is not lost
                await writer.reopen(stream_id)
            answer = await self._ask(events, start, rung, found, writer, tokens)
            if is_open:
                update = PacketUpdateEvent(source=f"{OPERATION} {answer.agent_id}", delta=self._delta(answer, start))
                last = events[-1]
                fields = {name: getattr(last, name) for name in ("agent_id", "run_id", "operation", "node_id", "turn")}
                await writer.append(stream_id, [update.model_copy(update=fields)])
            return Answer(**vars(answer) | {"given_back": is_open})

    def read(self, fragment: str) -> tuple[Answer, AgentStartEvent]:
        """A recorded answer, and the start of the run that it is about. Raises `ConfigError` if it is not an answer."""
        events = list(self._project.library.events(fragment))
        start = next((event for event in events if isinstance(event, AgentStartEvent)), None)
        result = next((event.result for event in events if isinstance(event, SubmitResultEvent)), None)
        about = str((start.parent or {}).get("agent_id", "")) if start else ""
        if start is None or start.operation != OPERATION or result is None or not about:
            raise ConfigError(
                f"`{fragment}` is not an answer: expected the id that `remora trace escalate AGENT --to MODEL` printed"
            )
        first = next(iter(self._project.library.events(about)), None)
        if not isinstance(first, AgentStartEvent):
            raise ConfigError(f"The answer is about agent `{about:.60}`, whose stream does not begin with its start")
        args = result.get("args")
        return Answer(
            agent_id=start.agent_id,
            about=about,
            by=str(result.get("by", "")),
            operation=first.operation,
            node_id=first.node_id,
            advice=str(result.get("advice", "")),
            tool=str(result.get("tool", "")),
            args=args if isinstance(args, dict) else None,
        ), first

    def delta(self, fragment: str) -> PacketDelta:
        """What a recorded answer changes in a packet."""
        return self._delta(*self.read(fragment))

    def _delta(self, answer: Answer, start: AgentStartEvent) -> PacketDelta:
        tools = {tool.name: tool.parameters for tool in _tools(start)}
        return answer_delta(vars(answer), tools)

    def _rung(self, to: str) -> RungConfig:
        """The rung of the user's ladder with this name, with its key and prices, or a new one."""
        named = [rung for rung in self._project.config.escalation if rung.model == to]
        return named[0] if named else RungConfig(model=to)

    async def _write(self, events: Sequence[Event], tokens: int, found: Deciders | None) -> EscalationDocument:
        raws = {event.seq: await self._raw(event) for event in events if isinstance(event, ToolResultEvent)}
        counter = found.counter if found else counter_of(None)
        return escalation_document(events, lambda event: raws[event.seq], tokens, counter)

    async def _raw(self, event: ToolResultEvent) -> Any:
        reference: BlobRef | None = event.raw_ref
        if reference is None:
            return event.raw
        try:
            data = await self._project.blobs.get(reference.blob, limit=blob_limit(reference))
        except TraceError as error:  # pruned: the document says so in its place
            return f"[cannot be shown: {error.message}]"
        return unpack(data, reference.encoding)

    async def _ask(
        self,
        events: Sequence[Event],
        start: AgentStartEvent,
        rung: RungConfig,
        found: Deciders,
        writer: StreamWriter,
        tokens: int | None,
    ) -> Answer:
        """Ask in a stream of its own, whose parent is the run."""
        tools = (*_tools(start), ANSWER)
        beside = tools if found.calling == "native" else ()
        fixed = fixed_tokens(system_text(SYSTEM, tools, found.calling), found.counter, beside)
        wanted = tokens or (found.packet_tokens if found.record.get("server") == EMBEDDED else HANDOVER_TOKENS)
        limit = found.limit(rung.prompt_tokens or fixed + wanted)
        document = await self._write(events, min(wanted, limit - fixed), found)
        identity = Identity(self._project.library.new_id(self._project.clock.now()), "", OPERATION, start.node_id)
        track = Track.of(
            Wiring(
                identity=identity,
                goal=f"Advise agent {start.agent_id}: {start.goal}",
                tools=tools,
                system_prompt=SYSTEM,
                prompts=PromptSettings(limit, calling=found.calling, rung=rung.model),
                writer=writer,
                blobs=self._project.blobs,
                counter=found.counter,
                clock=self._project.clock,
                secrets=self._project.secrets,
            )
        )
        head = await writer.head(f"traces/{start.agent_id}")
        parent = {"agent_id": start.agent_id, "seq": events[-1].seq, "head": head, "relation": OPERATION}
        policy = found.policy(DEFINITION)
        await track.start(model={"policy": policy.name, **found.record}, parent=parent)
        prompt = await track.ask(document.text)
        try:
            decision = await policy.decide(prompt)
        except DecisionError as error:
            await track.undecided(error)
            await track.fail(error.code, error.message)
            await track.end(AgentEndEvent(outcome="error", reason=error.code, summary=error.message))
            raise
        await track.response(decision)
        result = _result(decision, rung.model)
        await track.submit({"summary": one_line(result["advice"] or f"call {result['tool']}"), **result})
        await track.end(AgentEndEvent(reason="answered"))
        await writer.close(identity.stream_id)
        return Answer(
            agent_id=identity.agent_id,
            about=start.agent_id,
            operation=start.operation,
            node_id=start.node_id,
            prompt_tokens=track.largest_prompt,
            **result,
        )


def _tools(start: AgentStartEvent) -> tuple[ToolSpec, ...]:
    """The agent's own tools, as its stream records them, without those that Remora handles itself."""
    try:
        specs = [ToolSpec.model_validate(tool) for tool in start.tools]
    except ValidationError as error:
        raise ConfigError(f"The stream of agent `{start.agent_id}` does not describe its tools") from error
    return tuple(tool for tool in specs if tool.name not in (*RESERVED_TOOLS, ANSWER_TOOL))


def _result(decision: Decision, by: str) -> dict[str, Any]:
    """The answer in a reply: its advice, and the call that it suggests."""
    advice = [str(call.args.get("advice", "")) for call in decision.calls if call.tool == ANSWER_TOOL]
    call = next((call for call in decision.calls if call.tool != ANSWER_TOOL), None)
    said = "\n".join(advice) or ("" if decision.calls else decision.text.strip())
    return {"by": by, "advice": said, "tool": call.tool if call else "", "args": call.args if call else None}
