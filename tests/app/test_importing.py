"""A folder of logs becomes streams: sub-agents name their parents, and what is hostile is refused by name."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from remora.analysis.reporting.markdown import markdown
from remora.app import open_project
from remora.events import AgentStartEvent, Event, ModelRequestEvent, ModelResponseEvent, NoticeEvent, ToolResultEvent
from remora.trace import Filter, read_events, verify

SESSION = "5f0c3a52-0000-4000-8000-000000000001"
CHAT = {"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]}


def line(kind: str, content: Any, **more: Any) -> str:
    message = {"role": kind, "content": content, "id": more.pop("id", "")}
    return json.dumps({"type": kind, "sessionId": SESSION, "isSidechain": "agentId" in more, "message": message} | more)


def project_folder(tmp_path: Path) -> Path:
    """A folder like `~/.claude/projects`, with one session and one sub-agent in a file of its own."""
    folder = tmp_path / "projects" / "-home-me-shop"
    inner = folder / SESSION / "subagents"
    inner.mkdir(parents=True)
    call = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "Search", "data": "x" * 50_000}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "two hits"}
    (folder / f"{SESSION}.jsonl").write_text(
        "\n".join(
            [
                line("user", "Find it"),
                line("assistant", [{"type": "thinking", "thinking": "Ask."}, call], id="m1"),
                line("user", [result], toolUseResult={"agentId": "abc"}),
                json.dumps({"type": "novelty", "sessionId": SESSION}),
                line("assistant", "Found.", id="m2"),
            ]
        )
    )
    side = [line("user", "Search", agentId="abc"), line("assistant", "two hits", agentId="abc", id="n1")]
    (inner / "agent-abc.jsonl").write_text("\n".join(side))
    (inner / "agent-abc.meta.json").write_text('{"agentType": "Explore"}')
    return tmp_path / "projects"


def recorded(tmp_path: Path) -> list[list[Event]]:
    return [list(read_events(path)) for path in sorted((tmp_path / ".agentfs" / "traces").glob("*.jsonl"))]


async def test_a_sub_agent_in_its_own_file_names_the_call_that_started_it(tmp_path: Path) -> None:
    done = await open_project(tmp_path).streams.import_chats([project_folder(tmp_path)])
    session, agent = recorded(tmp_path)
    start = agent[0]
    assert isinstance(start, AgentStartEvent)
    assert start.parent is not None
    assert (start.parent["relation"], start.parent["agent_id"]) == ("child", session[0].agent_id)
    called = session[start.parent["seq"]]
    assert (called.type, called.call_id) == ("tool_call", "t1")  # type: ignore[attr-defined]
    assert [item.parent for item in done.streams] == ["", session[0].agent_id]
    assert {verify(path).status for path in (tmp_path / ".agentfs" / "traces").glob("*.jsonl")} == {"sealed"}


async def test_an_agent_that_a_sub_agent_started_is_below_the_call_of_the_sub_agent(tmp_path: Path) -> None:
    folder = project_folder(tmp_path)
    inner = folder / "-home-me-shop" / SESSION / "subagents"
    call = {"type": "tool_use", "id": "t2", "name": "Agent", "input": {"prompt": "Deeper"}}
    result = {"type": "tool_result", "tool_use_id": "t2", "content": "one hit"}
    side = [
        line("user", "Search", agentId="abc"),
        line("assistant", [call], agentId="abc", id="n1"),
        line("user", [result], agentId="abc", toolUseResult={"agentId": "aaa"}),
        line("assistant", "two hits", agentId="abc", id="n2"),
    ]
    (inner / "agent-abc.jsonl").write_text("\n".join(side))
    deeper = [line("user", "Deeper", agentId="aaa"), line("assistant", "one hit", agentId="aaa", id="o1")]
    (inner / "agent-aaa.jsonl").write_text("\n".join(deeper))
    (inner / "agent-aaa.meta.json").write_text('{"agentType": "Explore", "toolUseId": "t2", "spawnDepth": 2}')
    done = await open_project(tmp_path).streams.import_chats([folder])
    session, agent, below = recorded(tmp_path)
    called = next(event for event in agent if event.type == "tool_call")
    start = below[0]
    assert isinstance(start, AgentStartEvent)
    assert start.parent is not None
    assert (start.parent["relation"], start.parent["agent_id"]) == ("child", agent[0].agent_id)
    assert start.parent["seq"] == called.seq
    assert [item.parent for item in done.streams] == ["", session[0].agent_id, agent[0].agent_id]


@pytest.mark.parametrize("beside", ["", "[]", "{", '{"spawnDepth": "deep"}', '{"spawnDepth": -1}', "[" * 10_000])
async def test_a_file_beside_a_log_that_says_nothing_changes_no_order(tmp_path: Path, beside: str) -> None:
    folder = project_folder(tmp_path)
    (folder / "-home-me-shop" / SESSION / "subagents" / "agent-abc.meta.json").write_text(beside)
    done = await open_project(tmp_path).streams.import_chats([folder])
    assert [item.parent for item in done.streams] == ["", done.streams[0].agent_id]


async def test_a_sub_agent_of_codex_names_the_call_that_started_it(tmp_path: Path) -> None:
    def item(kind: str, **fields: Any) -> dict[str, Any]:
        return {"type": "response_item", "payload": {"type": kind, **fields}}

    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "top"}}}
    above = [
        {"type": "session_meta", "payload": {"id": "top", "timestamp": "t"}},
        item("message", role="user", content="Survey it"),
        item("function_call", name="spawn_agent", arguments="{}", call_id="c1"),
        item("function_call_output", call_id="c1", output='{"agent_id": "sub"}'),
    ]
    below = [
        {"type": "session_meta", "payload": {"id": "sub", "timestamp": "t", "source": spawned}},
        item("message", role="user", content="Look"),
        item("message", role="assistant", content="Done."),
    ]
    for name, records in {"rollout-1.jsonl": above, "rollout-2.jsonl": below}.items():
        (tmp_path / name).write_text("\n".join(map(json.dumps, records)))
    await open_project(tmp_path).streams.import_chats([tmp_path / "rollout-1.jsonl", tmp_path / "rollout-2.jsonl"])
    top, sub = recorded(tmp_path)
    call = next(event for event in top if event.type == "tool_call")
    assert isinstance(sub[0], AgentStartEvent)
    assert sub[0].parent is not None
    assert (sub[0].parent["agent_id"], sub[0].parent["seq"]) == (top[0].agent_id, call.seq)


@pytest.mark.parametrize("value", ["1 failed: test_x", [{"type": "image", "source": 1}], {"code": 7}], ids=str)
async def test_the_result_of_a_failed_call_is_exactly_what_the_log_says(tmp_path: Path, value: Any) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
    content = json.dumps(value) if isinstance(value, dict) else value
    result = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": content}
    lines = [line("user", "Go"), line("assistant", [call], id="m1"), line("user", [result])]
    (tmp_path / "s.jsonl").write_text("\n".join(lines))
    await open_project(tmp_path).streams.import_chats([tmp_path / "s.jsonl"])
    (events,) = recorded(tmp_path)
    (found,) = [event for event in events if isinstance(event, ToolResultEvent)]
    assert (found.raw, found.outcome) == (value, "error")
    assert found.delta.error.set  # type: ignore[union-attr]


async def test_what_was_not_understood_is_counted_in_the_report_and_in_the_stream(tmp_path: Path) -> None:
    done = await open_project(tmp_path).streams.import_chats([project_folder(tmp_path)])
    assert done.problems == []
    assert done.notices == [
        "1 .json file without a conversation",
        "Claude Code: 1 × `novelty` not understood, left out",
    ]
    (notice,) = (event for event in recorded(tmp_path)[0] if isinstance(event, NoticeEvent))
    assert notice.message == "1 × `novelty` in the log was not understood and is left out"


async def test_a_call_with_large_arguments_keeps_its_result_and_thinking_is_not_shown(
    tmp_path: Path,
) -> None:
    await open_project(tmp_path).streams.import_chats([project_folder(tmp_path)])
    session = recorded(tmp_path)[0]
    assert [event.raw for event in session if isinstance(event, ToolResultEvent)] == ["two hits"]
    assert next(event.reasoning for event in session if isinstance(event, ModelResponseEvent)) == "Ask."
    shown = str([event.messages for event in session if isinstance(event, ModelRequestEvent)])
    assert "Ask." not in shown


async def test_without_packets_the_same_packet_is_folded_and_no_prompt_is_recorded(tmp_path: Path) -> None:
    logs, packets = project_folder(tmp_path), []
    for number, wanted in enumerate((True, False)):
        folder = tmp_path / str(number)
        folder.mkdir()
        project = open_project(folder)
        done = await project.streams.import_chats([logs], packets=wanted)
        packet = project.streams.packet(done.streams[0].agent_id)
        packets.append(packet.model_dump(exclude={"agent_id"}))
        kinds = {event.type for event in recorded(folder)[0]}
        assert ("model_request" in kinds) is wanted
    assert packets[0]["goal"] == packets[1]["goal"]
    assert [action["tool"] for action in packets[0]["recent_actions"]] == ["Task"]
    assert packets[0]["recent_actions"] == packets[1]["recent_actions"]


async def test_links_and_special_files_in_a_folder_are_not_opened(tmp_path: Path) -> None:
    folder, secret = tmp_path / "logs", tmp_path / "secret.jsonl"
    folder.mkdir()
    secret.write_text(json.dumps(CHAT))
    (folder / "a.jsonl").symlink_to(secret)
    (folder / "b").symlink_to(tmp_path)
    os.mkfifo(folder / "c.jsonl")
    done = await open_project(tmp_path).streams.import_chats([folder])
    assert done.streams == []
    assert done.notices == [f"2 links in {folder} are not followed"]
    assert done.problems == [f"{folder / 'c.jsonl'}: not a regular file"]


def archive(path: Path, sample: bytes, *, name: str = "samples/1_epoch_1.json") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", "{}")
        packed.writestr(name, sample)
    return path


async def test_an_inspect_archive_is_read_sample_by_sample(tmp_path: Path) -> None:
    long = {"role": "user", "content": "attachment://abc"}
    sample = {
        "messages": [long, CHAT["messages"][1]],
        "attachments": {"abc": "A long task"},
        "scores": {},
        "target": "",
    }
    done = await open_project(tmp_path).streams.import_chats(
        [archive(tmp_path / "a.eval", json.dumps(sample).encode())]
    )
    assert [(item.source, item.goal, item.format) for item in done.streams] == [
        ("a.eval#samples/1_epoch_1.json", "A long task", "Inspect")
    ]


async def test_archives_that_are_bombs_or_broken_are_refused_with_a_sentence(tmp_path: Path) -> None:
    bomb = archive(tmp_path / "bomb.eval", b" " * 40_000_000)
    broken = tmp_path / "broken.eval"
    broken.write_bytes(b"PK\x03\x04 not really")
    other = archive(tmp_path / "other.eval", b"{}", name="else.json")
    done = await open_project(tmp_path).streams.import_chats([bomb, broken, other])
    assert done.streams == []
    first, second, third = done.problems
    assert first.startswith("bomb.eval#samples/1_epoch_1.json: ")
    assert "broken.eval: not an archive that can be read" in second
    assert "other.eval: an archive without `samples/`" in third


async def test_a_sample_that_unpacks_to_more_than_it_says_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remora.app._log_files.MAX_SAMPLE", 1000)
    done = await open_project(tmp_path).streams.import_chats([archive(tmp_path / "a.eval", b"x" * 5000)])
    assert "5,000 bytes, packed into" in done.problems[0]


async def test_progress_names_the_file_and_ends_before_the_whole(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    logs = project_folder(tmp_path)
    await open_project(tmp_path).streams.import_chats([logs], progress=lambda *now: told.append(now))
    assert [name for name, _, _ in told] == [f"{SESSION}.jsonl", "agent-abc.jsonl", "agent-abc.meta.json"]
    assert all(done <= total for _, done, total in told)


async def test_the_same_log_is_imported_once_whatever_its_name_unless_asked_again(tmp_path: Path) -> None:
    log = tmp_path / "chats.jsonl"
    log.write_text("\n".join([json.dumps(CHAT), json.dumps(CHAT)]))
    streams = open_project(tmp_path).streams
    first = await streams.import_chats([log])
    assert (len(first.streams), first.earlier, first.notices) == (2, [], [])
    renamed = log.rename(tmp_path / "renamed.jsonl")
    second = await streams.import_chats([renamed])
    assert second.streams == []
    assert second.earlier == [item.agent_id for item in first.streams]
    assert second.notices == ["2 conversations imported before: not imported again without `--again`"]
    third = await streams.import_chats([renamed], again=True)
    assert len(third.streams) == 2
    assert len(recorded(tmp_path)) == 4


async def test_a_log_that_is_listed_twice_is_imported_once(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(CHAT))
    done = await open_project(tmp_path).streams.import_chats([tmp_path / "a.json", tmp_path / "b.json"])
    assert (len(done.streams), len(done.earlier)) == (1, 1)


async def test_a_stream_that_is_not_sealed_does_not_count_as_imported(tmp_path: Path) -> None:
    log = tmp_path / "chat.json"
    log.write_text(json.dumps(CHAT))
    streams = open_project(tmp_path).streams
    await streams.import_chats([log])
    (stream,) = (tmp_path / ".agentfs" / "traces").glob("*.jsonl")
    stream.write_bytes(b"".join(stream.read_bytes().splitlines(keepends=True)[:-1]))
    assert len((await streams.import_chats([log])).streams) == 1


async def test_a_sub_agent_that_came_later_finds_its_parent_of_an_earlier_import(tmp_path: Path) -> None:
    folder = project_folder(tmp_path)
    (side,) = folder.rglob("agent-abc.jsonl")
    aside = side.rename(tmp_path / side.name)
    streams = open_project(tmp_path).streams
    (session,) = (await streams.import_chats([folder])).streams
    aside.rename(side)
    (agent,) = (await streams.import_chats([folder])).streams
    assert agent.parent == session.agent_id


async def test_a_session_that_grew_is_imported_again_and_said_to_be(tmp_path: Path) -> None:
    folder = project_folder(tmp_path)
    log = next(folder.rglob(f"{SESSION}.jsonl"))
    streams = open_project(tmp_path).streams
    await streams.import_chats([log])
    log.write_text(log.read_text() + "\n" + line("user", "Thanks") + "\n" + line("assistant", "Gladly.", id="m3"))
    done = await streams.import_chats([log])
    assert len(done.streams) == 1
    assert "1 session imported before, from a shorter log: now also as a new stream" in done.notices


async def test_a_report_on_a_log_has_its_own_counts_and_no_verdict_that_nobody_gave(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 900, "completion_tokens": 30}
    reply = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": "{}"}}],
    }
    first = {"request": {"messages": [{"role": "user", "content": "Find W12"}]}}
    exchange = {**first, "response": {"model": "m", "choices": [{"message": reply}], "usage": usage}}
    later = [
        {"role": "user", "content": "Find W12"},
        reply,
        {"role": "tool", "tool_call_id": "c", "content": "W12 is sent"},
    ]
    done = {"model": "m", "choices": [{"message": {"role": "assistant", "content": "Sent."}}], "usage": usage}
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, [exchange, {"request": {"messages": later}, "response": done}])))
    for packets in (False, True):
        project = open_project(tmp_path, state_dir=tmp_path / f"state-{packets}")
        await project.streams.import_chats([log], packets=packets)
        report = await project.streams.report(wanted=Filter(operation="import"))
        assert (report.statuses, report.prompt_tokens, report.output_tokens) == ({"imported": 1}, 1800, 60)
        assert (report.operations[0].succeeded, report.duration_s, report.losses) == (None, 0.0, ())
        assert "100%" not in markdown(report)


async def test_notices_about_many_conversations_are_told_up_to_a_number_and_all_recorded(tmp_path: Path) -> None:
    sample = CHAT | {"epoch": 1, "target": "", "scores": {}, "error": {"message": "out of time"}}
    log = tmp_path / "samples.jsonl"
    log.write_text("".join(json.dumps(sample | {"id": number}) + "\n" for number in range(60)))
    done = await open_project(tmp_path).streams.import_chats([log])
    told = [notice for notice in done.notices if "ended with an error: out of time" in notice]
    assert (len(told), done.notices[-1]) == (50, "10 more notices are in the streams")
    kept = [event for events in recorded(tmp_path) for event in events if isinstance(event, NoticeEvent)]
    assert [event.code for event in kept] == ["ended_with_error"] * 60
