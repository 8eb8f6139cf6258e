"""LangGraph's own `create_react_agent` with a `pre_model_hook`, which sees only messages: the example of the guide."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).parent]
warnings.simplefilter("ignore")

from langchain_core.language_models import GenericFakeChatModel  # noqa: E402
from langchain_core.messages import AIMessage, convert_to_messages, convert_to_openai_messages  # noqa: E402
from langgraph.prebuilt import create_react_agent  # noqa: E402

from remora import sync  # noqa: E402

PROMPTS: list[Any] = []


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, *args: Any, **more: Any) -> Any:
        PROMPTS.append(convert_to_openai_messages(messages))
        return super()._generate(messages, *args, **more)


def weather(city: str) -> str:
    """Weather of a city."""
    return f"21 degrees, says station ST-{city.upper()}-77. " + "No wind. " * 400


def main(out: Path) -> None:
    asked = [[{"name": "weather", "args": {"city": city}, "id": city}] for city in ("Paris", "Rome", "Oslo")]
    replies = [*(AIMessage("", tool_calls=calls) for calls in asked), AIMessage("21 degrees everywhere.")]
    tt = sync.TwoTrack("", name="hook", budget=1500, recall=False, state_dir=out / "state")

    def fold(state: Any) -> Any:
        prompt = tt.fold(convert_to_openai_messages(state["messages"]))
        return {"llm_input_messages": convert_to_messages([dict(message) for message in prompt.messages])}

    agent = create_react_agent(Scripted(messages=iter(replies)), [weather], pre_model_hook=fold)
    result = agent.invoke({"messages": [("user", "How warm is it in Paris, Rome and Oslo?")]})
    tt.response(result["messages"][-1])
    tt.close()
    (out / "told.json").write_text(json.dumps({"prompts": PROMPTS}))


main(Path(sys.argv[1]))
