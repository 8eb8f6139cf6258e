"""Runs inside the peer's environment: a LangGraph agent loop over the workload, told as one row of JSON.

Two nodes, `model` and `tools`, take turns, as in LangGraph's own agents: two supersteps, so two checkpoints, a turn.

    full        a messages list with `add_messages`, default durability: every checkpoint holds all messages
    delta       the same list in a `DeltaChannel` (beta), default durability: checkpoints hold what is new
    delta-sync  the same, each checkpoint written before the next step begins
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages
from typing_extensions import TypedDict

from benchmarks.workload import answer, output

USAGE = {"input_tokens": 640, "output_tokens": 31, "total_tokens": 671}


class Full(TypedDict):
    messages: Annotated[list, add_messages]


class Delta(TypedDict):
    messages: Annotated[list, DeltaChannel(_messages_delta_reducer)]


class Loop:
    """The two nodes, and when each turn began."""

    def __init__(self, turns: int, kb: float, patience_s: float) -> None:
        self.values = [json.dumps(output(turn, kb)) for turn in range(turns)]
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self._until = time.perf_counter() + patience_s

    def model(self, state: dict[str, Any]) -> dict[str, Any]:
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())
        turn = len(self.wall) - 1
        if turn == len(self.values) or self.wall[-1] > self._until:
            return {"messages": [AIMessage("Done.")]}
        call = {"name": "run_linter", "args": {"path": "src/shop/order.py"}, "id": f"call_{turn}"}
        return {"messages": [AIMessage(answer(turn), tool_calls=[call], usage_metadata=USAGE)]}

    def tools(self, state: dict[str, Any]) -> dict[str, Any]:
        call = state["messages"][-1].tool_calls[0]
        value = self.values[len(self.wall) - 1]
        return {"messages": [ToolMessage(value, tool_call_id=call["id"], name=call["name"])]}


def build(loop: Loop, variant: str, saver: SqliteSaver) -> Any:
    """The compiled graph."""
    graph = StateGraph(Full if variant == "full" else Delta)
    graph.add_node("model", loop.model)
    graph.add_node("tools", loop.tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


def main(variant: str, path: str, turns: str, kb: str, patience_s: str) -> None:
    loop = Loop(int(turns), float(kb), float(patience_s))
    db = sqlite3.connect(path, check_same_thread=False)
    graph = build(loop, variant, SqliteSaver(db))
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": 10 + 2 * int(turns)}
    durability = "sync" if variant.endswith("sync") else None
    goal = {"messages": [HumanMessage("Fix lint errors in src/shop/order.py:load")]}
    graph.invoke(goal, config, durability=durability)
    ended = time.perf_counter(), time.process_time()
    print(json.dumps({"variant": variant} | told(loop, ended, db, Path(path)) | {"output_kb": float(kb)}))


def told(loop: Loop, ended: tuple[float, float], db: sqlite3.Connection, path: Path) -> dict[str, Any]:
    """The row: times a turn, bytes a turn, and how the database was set."""
    done = len(loop.wall) - 1
    cpu = [after - before for before, after in zip(loop.cpu, loop.cpu[1:], strict=False)]
    tenth = max(1, done // 10)
    synchronous = db.execute("PRAGMA synchronous").fetchone()[0]
    journal = db.execute("PRAGMA journal_mode").fetchone()[0]
    db.close()  # what still stands in the journal is brought into the database: the journal is no lasting cost
    size = sum(file.stat().st_size for file in path.parent.glob(path.name + "*"))
    return {
        "turns": len(loop.values),
        "turns_done": done,
        "cpu_ms": round(1000 * (ended[1] - loop.cpu[0]) / done, 3),
        "wall_ms": round(1000 * (ended[0] - loop.wall[0]) / done, 3),
        "cpu_last_to_first": round(statistics.median(cpu[-tenth:]) / statistics.median(cpu[:tenth]), 2),
        "disk_bytes": round(size / done),
        "journal": journal,
        "synchronous": ("OFF", "NORMAL", "FULL", "EXTRA")[synchronous],
        "versions": {name: version(name) for name in ("langgraph", "langgraph-checkpoint-sqlite")},
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
