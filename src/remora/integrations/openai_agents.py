"""Both tracks for the OpenAI Agents SDK:

    async with TwoTracks("conversation-1") as two:
        result = await Runner.run(two.agent(agent), "…", hooks=two, run_config=two.run_config())

The SDK keeps its own loop and tools. The model gets the packet instead of the item history, and everything that
happens is in the stream. The next block with the same conversation continues the stream of the one before.
"""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from typing import Any, Self, Unpack

from remora.context.recall import RECALL
from remora.errors import MissingExtra
from remora.integrations._conversations import BlockTracks, decision, system_text
from remora.twotrack import TrackSettings

try:
    from agents.run_config import CallModelData, ModelInputData

    from agents import FunctionTool, Handoff, RunConfig, RunContextWrapper, RunHooks, handoff
except ImportError:
    raise MissingExtra("The OpenAI Agents SDK", extra="openai-agents") from None


class TwoTracks(BlockTracks, RunHooks[Any]):
    """Both tracks of one conversation, as an async context manager. `settings` are those of `remora.TwoTrack`.

    Without a `conversation`, each block is one of its own. Give the `session_id` where you use a `Session`.
    """

    def __init__(self, conversation: str = "", **settings: Unpack[TrackSettings]) -> None:
        super().__init__(conversation, settings)
        self._failures: set[str] = set()
        self._format: Any = None

    async def __aenter__(self) -> Self:
        self._track = None
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        await self._end(error)

    def agent(self, agent: Any) -> Any:
        """The agent with the tool `recall`, which brings back what a prompt left out; those it hands off to, too."""
        schema, description = RECALL.parameters, RECALL.description
        recall = FunctionTool(RECALL.name, description, schema, self._recall, strict_json_schema=False)
        own = [tool for tool in agent.tools if getattr(tool, "description", "") != description]
        return agent.clone(tools=[*own, recall], handoffs=[self._handoff(each) for each in agent.handoffs])

    def _handoff(self, target: Any) -> Any:
        made = target if isinstance(target, Handoff) else handoff(target)

        async def invoke(context: Any, arguments: str) -> Any:
            return self.agent(await made.on_invoke_handoff(context, arguments))

        return replace(made, on_invoke_handoff=invoke)

    def run_config(self, config: Any = None) -> Any:
        """The run's settings, with the filter that replaces the history by the packet."""
        config = config or RunConfig()
        self._format = config.tool_error_formatter
        return replace(config, call_model_input_filter=self._filter, tool_error_formatter=self._failed)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        await self.track.response(decision(response))

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        arguments = getattr(context, "tool_arguments", "")
        await self.track.called({"call_id": _call_id(context, tool), "name": tool.name, "arguments": arguments})

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        call_id = _call_id(context, tool)
        await self.track.returned(call_id, result, outcome="error" if call_id in self._failures else None)

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        await self.track.submit(output)

    async def _filter(self, data: CallModelData[Any]) -> ModelInputData:
        history = data.model_data.input
        if self._track is None:
            await self._begin(history=history)
        tools = [_spec(tool) for tool in await data.agent.get_all_tools(RunContextWrapper(data.context))]
        prompt = await self.track.fold(history, tools=tools, system=system_text(data.model_data.instructions))
        return ModelInputData(input=prompt.responses_input(), instructions=prompt.system)

    async def _failed(self, failure: Any) -> Any:
        """Record the exception of a tool. The SDK does not show it to the model, so the packet does not either."""
        self._failures.add(failure.call_id)
        error = failure.error
        await self.track.notice(
            failure.kind, f"{failure.tool_name}: {type(error).__name__}: {error}" if error else failure.tool_name
        )
        said = self._format(failure) if self._format else None
        return await said if inspect.isawaitable(said) else said

    async def _recall(self, context: Any, arguments: str) -> Any:
        return await self.track.recall(**json.loads(arguments or "{}"))


def _spec(tool: Any) -> dict[str, Any]:
    schema = getattr(tool, "params_json_schema", None) or {}
    return {"name": tool.name, "description": getattr(tool, "description", ""), "parameters": schema}


def _call_id(context: Any, tool: Any) -> str:
    return getattr(context, "tool_call_id", "") or str(tool.name)
