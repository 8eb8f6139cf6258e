"""One agent, turn by turn: render, decide, call, record, until it submits, reaches a limit, or fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from remora._version import __version__
from remora.analysis import fold_files
from remora.context.recall import RECALL
from remora.errors import RemoraError, ToolError, TraceError
from remora.events import AgentEndEvent, Call, FileChange
from remora.nodes import CodeNode
from remora.ports import AgentResult, Policy, ToolOutput, Tools, Workspace
from remora.subagent import SUBMIT_RESULT_TOOL, CheckRule, SubagentDefinition
from remora.twotrack import TwoTrack


@dataclass(frozen=True)
class Ending:
    """Why a run is over."""

    outcome: Literal["success", "partial", "error", "cancelled", "degraded"]
    reason: str
    summary: str = ""


class Runner:
    """Runs one agent on one node."""

    def __init__(
        self,
        track: TwoTrack,
        definition: SubagentDefinition,
        node: CodeNode,
        *,
        policy: Policy,
        tools: Tools,
        workspace: Workspace,
        max_turns: int,
    ) -> None:
        self._track = track
        self._definition = definition
        self._node = node
        self._policy = policy
        self._tools = tools
        self._workspace = workspace
        self._max_turns = max_turns
        self._files: list[FileChange] = []

    async def run(self) -> AgentResult:
        """The agent's result. The stream is sealed, whatever happened, unless the disk itself failed."""
        try:
            before = await self._count()
            await self._start()
            ending = await self._turns()
            check = judge(self._definition.check, before, await self._count())
        except asyncio.CancelledError:
            await asyncio.shield(self._finish(Ending("cancelled", "cancelled"), {}))
            raise
        except TraceError as error:
            return self._result(Ending("degraded", "trace", error.message), {})
        return await self._finish(ending, check)

    async def step(self) -> Ending | None:
        """One turn. None while the work goes on."""
        prompt = await self._track.request()
        decision = await self._policy.decide(prompt)
        for call in await self._track.response(decision):
            if call.tool == SUBMIT_RESULT_TOOL:
                await self._track.submit(call)
                return Ending("success", "submitted", str(call.args.get("summary", "")))
            await self._call(call)
        return None if decision.calls else Ending("success", "answered", decision.text)

    async def _turns(self) -> Ending:
        try:
            for _ in range(self._max_turns):
                ending = await self.step()
                if ending is not None:
                    return ending
        except TraceError:
            raise
        except RemoraError as error:
            return await self._failed(type(error).__name__, error.message)
        except Exception as error:  # noqa: BLE001 - whatever a policy or a defect of ours raises, the stream is sealed
            return await self._failed("internal_error", f"{type(error).__name__}: {error}")
        return Ending("partial", "max_turns", f"Stopped after {self._max_turns} turns without `submit_result`")

    async def _failed(self, code: str, message: str) -> Ending:
        await self._track.fail(code, message)
        return Ending("error", code, message)

    async def _call(self, call: Call) -> None:
        use = self._track.recall if call.tool == RECALL.name else partial(self._use, call.tool)
        result = await self._track.call(call, use, changes=self._workspace.take_changes)
        self._files.extend(result.files)

    async def _use(self, tool: str, **args: Any) -> ToolOutput:
        return await self._tools.call(tool, args)

    async def _start(self) -> None:
        await self._track.start(
            version=__version__,
            node={
                "type": self._node.node_type.value,
                "file": self._node.file_path.as_posix(),
                "lines": [self._node.lines.first, self._node.lines.last],
                "summary": self._node.summary(),
            },
            definition=self._definition.model_dump(mode="json", exclude_defaults=True),
            constraints={"max_turns": self._max_turns, "safety": list(self._definition.safety)},
            model={"policy": self._policy.name},
            candidates=self._definition.candidate_actions,
        )

    async def _finish(self, ending: Ending, check: Mapping[str, Any]) -> AgentResult:
        if not self._track.begun:
            return self._result(ending, check)  # cancelled before the start: there is no stream to seal
        try:
            head = await self._track.end(
                AgentEndEvent(outcome=ending.outcome, reason=ending.reason, summary=ending.summary)
            )
        except TraceError as error:
            return self._result(Ending("degraded", "trace", error.message), check)
        return self._result(ending, check, head)

    def _result(self, ending: Ending, check: Mapping[str, Any], head: str = "") -> AgentResult:
        identity = self._track.identity
        return AgentResult(
            agent_id=identity.agent_id,
            node_id=identity.node_id,
            operation=identity.operation,
            outcome=ending.outcome,
            reason=ending.reason,
            summary=ending.summary,
            turns=self._track.packet.turn,
            largest_prompt=self._track.largest_prompt,
            verdict=str(check.get("verdict", "")),
            check=check,
            head=head,
            last_seq=self._track.last_seq,
            files=fold_files(self._files),
        )

    async def _count(self) -> int | None:
        """How many things the agent's own check still finds wrong in its files."""
        rule = self._definition.check
        if rule is None:
            return None
        try:
            output = await self._tools.call(rule.tool, {})
        except ToolError:
            return None
        found = (await self._track.distill(rule.tool, output.value)).delta.knowledge.get(rule.count)
        return found.value if found and isinstance(found.value, int) else None


def judge(rule: CheckRule | None, before: int | None, after: int | None) -> dict[str, Any]:
    """What the files say: the numbers before and after, and a word for them."""
    if rule is None:
        return {}
    if before is None or after is None or after > before:
        verdict = "failed"
    elif after == 0:
        verdict = "clean"
    else:
        verdict = "partial" if after < before else "unchanged"
    return {"tool": rule.tool, "key": rule.count, "before": before, "after": after, "verdict": verdict}
