from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from remora.app import SystemClock
from remora.engines import LocalEngine
from remora.errors import ConfigError
from remora.events import Event, NoticeEvent, ids_behind, new_id
from remora.nodes import CodeNode, LineRange, NodeType
from remora.orchestrator import Coordinator, Plan, plan_jobs
from remora.ports import AgentResult, Job
from remora.subagent import SubagentDefinition
from remora.trace import MemoryTrace

DEFINITION = SubagentDefinition(
    name="lint", goal="g", system_prompt="s", targets=[NodeType.FUNCTION], tools=[{"name": "run_linter"}]
)


def node(name: str, kind: NodeType = NodeType.FUNCTION) -> CodeNode:
    lines = LineRange(first=1, last=1)
    return CodeNode(
        node_id=f"a.py:{name}", node_type=kind, name=name, file_path=Path("a.py"), lines=lines, owned=(lines,), text=""
    )


def plan(jobs: Sequence[Job]) -> Plan:
    return Plan("01RUN", "/p", ("a.py",), ("lint",), "scripted", 1000, tuple(jobs))


async def execute(job: Job) -> AgentResult:
    if job.node.name == "bad":
        raise ConfigError("it broke")
    if job.node.name == "worse":
        raise ZeroDivisionError("a defect of ours")
    return AgentResult(job.agent_id, job.node.node_id, job.operation, "success", head="sha256:00", last_seq=9)


def no_run_fails() -> None:
    raise AssertionError("the run's stream can be written")


def ids() -> Iterator[str]:
    return ids_behind(new_id(SystemClock().now()))


async def run(jobs: Sequence[Job]) -> tuple[list[AgentResult], list[Event]]:
    writer = MemoryTrace(clock=SystemClock())
    coordinator = Coordinator(writer, LocalEngine(execute, at_once=2, abandon=no_run_fails))
    results = [result async for result in coordinator.run(plan(jobs))]
    return results, [event async for event in writer.read("runs/01RUN")]


def test_only_nodes_that_an_operation_targets_get_an_agent() -> None:
    jobs = plan_jobs("01RUN", [node("f"), node("C", NodeType.CLASS), node("g")], {"lint": DEFINITION}, ids())
    assert [job.node.name for job in jobs] == ["f", "g"]
    assert len({job.agent_id for job in jobs}) == 2


async def test_one_agents_failure_stops_no_other() -> None:
    jobs = plan_jobs("01RUN", [node("bad"), node("f"), node("worse"), node("g")], {"lint": DEFINITION}, ids())
    results, _ = await run(jobs)
    assert sorted((result.node_id, result.outcome) for result in results) == [
        ("a.py:bad", "degraded"),
        ("a.py:f", "success"),
        ("a.py:g", "success"),
        ("a.py:worse", "degraded"),
    ]


async def test_the_runs_stream_says_who_ran_and_how_each_ended() -> None:
    jobs = plan_jobs("01RUN", [node("f"), node("g")], {"lint": DEFINITION}, ids())
    _, events = await run(jobs)
    types = [event.type for event in events]
    assert types == ["run_start", *["agent_scheduled"] * 2, *["agent_finished"] * 2, "run_end"]
    assert {event.agent_id for event in events if event.agent_id} == {job.agent_id for job in jobs}
    assert {event.run_id for event in events} == {"01RUN"}
    assert events[-1].body() == {"outcome": "finished", "counts": {"success": 2}}


async def test_an_agent_whose_stream_has_no_end_is_not_recorded_as_finished() -> None:
    jobs = plan_jobs("01RUN", [node("bad"), node("f")], {"lint": DEFINITION}, ids())
    _, events = await run(jobs)
    assert [event.agent_id for event in events if event.type == "agent_finished"] == [jobs[1].agent_id]
    (notice,) = [event for event in events if isinstance(event, NoticeEvent)]
    assert (notice.code, notice.agent_id) == ("not_over", jobs[0].agent_id)
    assert notice.message.startswith("lint a.py:bad: ")
    assert events[-1].body() == {"outcome": "finished", "counts": {"degraded": 1, "success": 1}}


async def test_leaving_a_run_early_is_recorded_as_cancelled() -> None:
    writer = MemoryTrace(clock=SystemClock())
    jobs = plan_jobs("01RUN", [node("f"), node("g")], {"lint": DEFINITION}, ids())
    engine = LocalEngine(execute, at_once=1, abandon=no_run_fails)
    results = Coordinator(writer, engine).run(plan(jobs))
    await anext(results)
    await results.aclose()
    events = [event async for event in writer.read("runs/01RUN")]
    assert events[-1].body()["outcome"] == "cancelled"
