"""Pydantic AI's RAG example, loaded from the package `pydantic-ai-examples`: `pydantic_ai_examples.rag`.

The agent is theirs, unchanged. Its dependencies are ours: a search by words instead of embeddings, over the
documentation that the installed packages carry in their metadata.
"""

from __future__ import annotations

import asyncio
import os
import re
from importlib.metadata import distributions
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OPENAI_API_KEY", "unused")

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_examples import rag
from recorder import Recorder

PACKAGES = ("httpx", "openai", "logfire", "asyncpg", "pydantic", "tenacity", "rich", "idna", "anyio", "orjson")
MAX_SECTION = 1_200


def sections() -> list[dict[str, str]]:
    found = []
    for package in sorted(distributions(), key=lambda each: each.name):
        text = package.metadata.get_payload() or package.metadata.get("description", "")
        for part in re.split(r"\n(?=#+ )", str(text)):
            title, _, content = part.strip().partition("\n")
            if len(content) > 80:
                name = title.strip("# ")
                url = f"https://pypi.org/project/{package.name}/#{re.sub(r'[^a-z0-9]+', '-', name.lower())}"
                found.append({"title": f"{package.name}: {name}", "url": url, "content": content[:MAX_SECTION]})
    return found


class Search:
    """Stands for the embeddings and for the database: the eight sections that share most words with the query."""

    def __init__(self) -> None:
        self.sections, self.query = sections(), ""
        self.shown: list[list[dict[str, str]]] = []
        self.embeddings = self

    async def create(self, *, input: str, model: str) -> Any:
        self.query = input
        return SimpleNamespace(data=[SimpleNamespace(embedding=[0.0])])

    async def fetch(self, statement: str, embedding: str) -> list[dict[str, str]]:
        words = set(re.findall(r"\w+", self.query.lower()))

        def rank(section: dict[str, str]) -> tuple[int, str]:
            title = set(re.findall(r"\w+", section["title"].lower()))
            content = set(re.findall(r"\w+", section["content"].lower()))
            return -(5 * len(words & title) + len(words & content)), section["url"]

        self.shown.append(sorted(self.sections, key=rank)[:8])
        return self.shown[-1]


def query(search: Search, question: int, step: int) -> str:
    """The question's own words, then a title that the answer showed, then a page that was found at the beginning."""
    if step == 0:
        return f"{PACKAGES[question]} installation usage"
    if step == 1:
        return search.shown[-1][2]["title"]
    return search.shown[question // 2][1]["url"]


async def main() -> None:
    recorder, search = Recorder(), Search()
    place = {"question": 0, "step": 0}

    def answer(messages: list[Any], info: Any) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        system = [info.instructions or "", *(part.content for part in parts if part.part_kind == "system-prompt")]
        said = [
            f"{part.tool_name} {part.args_as_json_str()}" if isinstance(part, ToolCallPart) else str(part.content)
            for part in parts
            if part.part_kind != "system-prompt"
        ]
        tools = [[tool.name, tool.description, tool.parameters_json_schema] for tool in info.function_tools]
        step, place["step"] = place["step"], place["step"] + 1
        calls = [{"search_query": query(search, place["question"], step)}] if step < 3 else []
        recorder.request("\n".join(system), said, tools, calls)
        if not calls:
            return ModelResponse(parts=[TextPart(f"See {search.shown[-1][0]['url']}.")])
        return ModelResponse(parts=[ToolCallPart("retrieve", calls[0], f"call-{place['question']}-{step}")])

    model, history, more = FunctionModel(answer), None, {}
    if recorder.settings is not None:
        from remora.integrations.pydantic_ai import TwoTracks

        more = {"capabilities": [TwoTracks(**recorder.settings)]}
    deps: Any = rag.Deps(openai=search, pool=search)  # type: ignore[arg-type]
    for number, package in enumerate(PACKAGES):
        place.update(question=number, step=0)
        asked = f"How do I install {package} and use it? Compare it with the page that you found first."
        result = await rag.agent.run(asked, deps=deps, model=model, message_history=history, **more)
        history = result.all_messages()
    assert any(isinstance(part, UserPromptPart) for part in history[0].parts)
    recorder.save()


asyncio.run(main())
