"""Use Remora from a program: plan, run with live results, show a diff, accept one agent, and read its stream.

    pip install "remora-agents[agents]"
    python main.py path/to/project scripted

The second argument is the server: `scripted` (no model), `embedded`, `ollama`, or a URL.
"""

import asyncio
import sys
from pathlib import Path

import remora


async def main(folder: str, server: str) -> None:
    project = remora.open_project(folder, {"server.server": server})
    plan = project.runs.plan([Path(folder)], ["lint"])
    print(f"{len(plan.jobs)} agents")

    changed = []
    async for result in project.runs.run(plan):  # each result as the agent ends
        print(f"{result.verdict:<10} {result.node_id}")
        if result.files:
            changed.append(result)
    if not changed:
        return

    agent_id = changed[0].agent_id
    for diff in await project.review.diff(agent_id):
        print(diff.text)
    for done in await project.review.accept(agent_id):
        print(done.conflict or f"accepted {', '.join(file.path for file in done.files)}")

    for turn in project.streams.show(agent_id).turns:
        print(f"turn {turn.turn}: {turn.prompt_tokens} tokens, called {[call.tool for call in turn.calls]}")
    for entry in await project.streams.transcript(agent_id):
        print(f"seq {entry.seq} {entry.kind} {entry.who}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
