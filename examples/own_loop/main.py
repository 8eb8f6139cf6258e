"""Your own loop with the plain `openai` client, on both tracks.

    pip install remora-agents openai
    OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_API_KEY=none python main.py qwen3:4b src

It finds the longest Python file of a folder. In every turn the model sees a prompt of at most 900 tokens. The stream
contains everything.
"""

import asyncio
import os
import sys
from pathlib import Path

from openai import AsyncOpenAI

import remora

FOLDER = {"type": "object", "properties": {"folder": {"type": "string"}}, "required": ["folder"]}
FILE = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [
    {"type": "function", "function": {"name": "list_files", "description": "Python files.", "parameters": FOLDER}},
    {"type": "function", "function": {"name": "count_lines", "description": "Lines of a file.", "parameters": FILE}},
]


def list_files(folder: str) -> dict:
    files = sorted(path.as_posix() for path in Path(folder).rglob("*.py"))
    return {"result": files, "summary": f"{len(files)} files", "knowledge_delta": {"files": files[:20]}}


def count_lines(path: str) -> dict:
    text = Path(path).read_text(encoding="utf-8")
    lines = len(text.splitlines())
    return {"result": text, "summary": f"{path}: {lines} lines", "knowledge_delta": {f"lines of {path}": lines}}


FUNCTIONS = {"list_files": list_files, "count_lines": count_lines}


async def main(model: str, folder: str) -> None:
    key = os.environ.get("OPENAI_API_KEY", "")
    secrets = {"OPENAI_API_KEY": key} if len(key) >= 8 else {}
    goal = f"Which Python file of {folder} has the most lines?"
    async with AsyncOpenAI() as client, remora.TwoTrack(goal=goal, tools=TOOLS, budget=900, secrets=secrets) as tt:
        for _ in range(20):
            prompt = await tt.request()
            reply = await client.chat.completions.create(
                model=model, messages=prompt.messages, tools=prompt.openai_tools()
            )
            calls = await tt.response(reply)
            for call in calls:
                await tt.call(call, FUNCTIONS[call.tool])
            if not reply.choices[0].message.tool_calls:
                await tt.submit(reply.choices[0].message.content or "")
                print(reply.choices[0].message.content)
                break
    print(tt.path)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
