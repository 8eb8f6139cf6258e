"""Chat logs become sealed streams, whole or not at all, and the guide's commands work as written."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from remora.app import Project
from remora.config import Config
from remora.context.projection import project
from remora.context.secrets import Secrets
from remora.errors import ConfigError, TraceError
from remora.events import (
    AgentStartEvent,
    Event,
    ModelRequestEvent,
    NoticeEvent,
    ToolCallEvent,
    ToolResultEvent,
    canonical,
    digest,
)
from remora.trace import FileTrace, read_events, verify

Remora = Callable[..., subprocess.CompletedProcess[str]]
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "try-it-on-your-logs.md"
CHAT: dict[str, Any] = json.loads(re.findall(r"```json\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[0])


def saved(folder: Path, *lines: Any, name: str = "chats.jsonl") -> Path:
    path = folder / name
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def opened(folder: Path, **settings: Any) -> Project:
    return Project(folder, folder / ".agentfs", Config(), **settings)


def streams(folder: Path) -> list[Path]:
    return sorted((folder / ".agentfs" / "traces").glob("*.jsonl"))


def events(folder: Path) -> list[Event]:
    (stream,) = streams(folder)
    return list(read_events(stream))


async def test_a_conversation_becomes_a_sealed_stream_that_says_where_it_came_from(tmp_path: Path) -> None:
    log = saved(tmp_path, CHAT)
    done = await opened(tmp_path).streams.import_chats([log])
    assert [(item.source, item.turns, item.calls) for item in done.streams] == [("chats.jsonl:1", 2, 1)]
    assert verify(streams(tmp_path)[0]).status == "sealed"
    start = events(tmp_path)[0]
    assert isinstance(start, AgentStartEvent)
    assert start.parent == {
        "relation": "import",
        "source": "chats.jsonl:1",
        "sha256": digest(log.read_bytes()),
        "at": ":1",
        "format": "chat",
    }
    assert start.goal == "Which test is the slowest?"
    one_turn = ["turn_start", "model_response"]
    types = [event.type for event in events(tmp_path)]
    assert types == ["agent_start", *one_turn, "tool_call", "tool_result", *one_turn, "agent_end"]


async def test_raw_results_are_in_the_stream_and_their_distillate_is_in_the_packet(tmp_path: Path) -> None:
    await opened(tmp_path).streams.import_chats([saved(tmp_path, CHAT)])
    (result,) = (event for event in events(tmp_path) if isinstance(event, ToolResultEvent))
    assert result.raw == CHAT["messages"][3]["content"]
    assert result.duration_ms == 0
    packet = project(events(tmp_path))
    assert [action.tool for action in packet.recent_actions] == ["run_tests"]


@pytest.mark.parametrize("counts", [{"prompt_tokens": 3}, {"input_tokens": 3, "cache_read_input_tokens": 9000}])
async def test_what_a_server_counted_for_another_prompt_is_not_compared_with_ours(
    counts: dict[str, int], tmp_path: Path
) -> None:
    session = {"sessionId": "s", "parentUuid": None, "isSidechain": False}
    reply = {"role": "assistant", "id": "m", "content": [{"type": "text", "text": "Done."}], "usage": counts}
    log = saved(
        tmp_path,
        {"type": "user", "message": {"role": "user", "content": "Fix it"}, **session},
        {"type": "assistant", "message": reply, **session},
    )
    await opened(tmp_path).streams.import_chats([log])
    assert not [event for event in events(tmp_path) if event.type == "notice"]


async def test_each_receipt_is_of_the_packet_at_that_time(tmp_path: Path) -> None:
    await opened(tmp_path).streams.import_chats([saved(tmp_path, CHAT)])
    recorded = events(tmp_path)
    for event in recorded:
        if isinstance(event, ModelRequestEvent):
            assert event.packet_sha256 == digest(canonical(project(recorded[: event.seq])))


async def test_a_system_text_beyond_the_limit_gets_the_limit_beside_it(tmp_path: Path) -> None:
    long = {"messages": [{"role": "system", "content": "word " * 3000}, *CHAT["messages"][1:]]}
    done = await opened(tmp_path).streams.import_chats([saved(tmp_path, long), saved(tmp_path, CHAT, name="b.jsonl")])
    raised, usual = (item.limit for item in done.streams)
    assert raised > 6000
    assert 3000 < usual < 3500


async def test_a_call_without_a_result_is_told_and_nothing_is_made_up(tmp_path: Path) -> None:
    cut = {"messages": CHAT["messages"][:3]}
    await opened(tmp_path).streams.import_chats([saved(tmp_path, cut)])
    assert [event.tool for event in events(tmp_path) if isinstance(event, ToolCallEvent)] == ["run_tests"]
    assert not [event for event in events(tmp_path) if isinstance(event, ToolResultEvent)]
    assert [event.code for event in events(tmp_path) if isinstance(event, NoticeEvent)] == ["no_result"]


async def test_secrets_in_a_log_do_not_reach_the_stream(tmp_path: Path) -> None:
    log = saved(tmp_path, json.dumps(CHAT).replace("2.10s", "hunter22-hunter22"))
    await opened(tmp_path, secrets=Secrets({"KEY": "hunter22-hunter22"})).streams.import_chats([log])
    assert "hunter22" not in streams(tmp_path)[0].read_text()


async def test_an_import_that_breaks_off_leaves_what_was_whole_and_seals_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, append = set(), FileTrace.append

    async def failing(self: FileTrace, stream_id: str, drafts: Any) -> Any:
        written.add(stream_id)
        if len(written) > 1 and drafts[-1].type == "agent_end":
            raise TraceError("disk full")
        return await append(self, stream_id, drafts)

    monkeypatch.setattr(FileTrace, "append", failing)
    with pytest.raises(TraceError, match=r"stopped at chats.jsonl:2: disk full"):
        await opened(tmp_path).streams.import_chats([saved(tmp_path, CHAT, CHAT)])
    assert [verify(stream).status for stream in streams(tmp_path)] == ["sealed"]


def test_a_bad_line_is_named_and_the_others_are_imported(tmp_path: Path, remora: Remora) -> None:
    saved(tmp_path, CHAT, '{"messages": [', CHAT, {"messages": [{"role": "robot"}]})
    done = remora("trace", "import", "chats.jsonl", "missing.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    assert "skipped: chats.jsonl:2: not JSON" in done.stderr
    assert "skipped: chats.jsonl:4: messages[0]: `role` is `robot`" in done.stderr
    assert "skipped: missing.jsonl: cannot be read: No such file" in done.stderr
    assert "2 imported, 3 skipped" in done.stdout
    assert {verify(stream).status for stream in streams(tmp_path)} == {"sealed"}


def test_a_log_of_nothing_readable_makes_no_stream(tmp_path: Path, remora: Remora) -> None:
    saved(tmp_path, "hello")
    done = remora("trace", "import", "chats.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert streams(tmp_path) == []
    assert "Traceback" not in done.stderr


def test_a_file_of_garbage_does_not_fill_the_terminal(tmp_path: Path, remora: Remora) -> None:
    (tmp_path / "chats.jsonl").write_text("garbage\n" * 5000)
    done = remora("trace", "import", "chats.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert "more were skipped" in done.stderr
    assert len(done.stderr.splitlines()) < 200


def test_a_tokenizer_that_is_none_is_refused_before_anything_is_written(tmp_path: Path, remora: Remora) -> None:
    log = saved(tmp_path, CHAT)
    done = remora("trace", "import", "chats.jsonl", "--tokenizer", str(log), cwd=tmp_path)
    assert done.returncode == 3
    assert "is not a `tokenizer.json`" in done.stderr
    assert not (tmp_path / ".agentfs").exists()


def test_tokens_are_told_turn_by_turn(tmp_path: Path, remora: Remora) -> None:
    saved(tmp_path, CHAT)
    made = json.loads(remora("trace", "import", "chats.jsonl", "--packets", "--json", cwd=tmp_path).stdout)
    agent = made["streams"][0]["agent_id"]
    report = json.loads(remora("trace", "tokens", agent, "--json", cwd=tmp_path).stdout)
    assert [row["turn"] for row in report["rows"]] == [1, 2]
    assert report["rows"][1]["history"] > report["rows"][0]["history"]
    receipts = [event for event in events(tmp_path) if isinstance(event, ModelRequestEvent)]
    assert [row["packet"] for row in report["rows"]] == [receipt.tokens["total"] for receipt in receipts]
    shown = remora("trace", "tokens", agent, cwd=tmp_path).stdout
    assert "█" in shown
    assert "(estimated)" in shown


def test_the_commands_of_the_guide_work_as_written(tmp_path: Path, remora: Remora) -> None:
    saved(tmp_path, CHAT)
    tokenizer = Tokenizer(models.BPE(vocab={letter: n for n, letter in enumerate(sorted(_bytes()))}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    commands = re.findall(r"^ +(remora .*)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        argv = command.split()[1:]
        if "AGENT" in argv:
            argv[argv.index("AGENT")] = streams(tmp_path)[-1].stem[-7:]
        done = remora(*argv, cwd=tmp_path)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert len(streams(tmp_path)) == 2


def _bytes() -> list[str]:
    return pre_tokenizers.ByteLevel.alphabet()


async def test_a_budget_that_no_packet_fits_is_refused_before_anything_is_recorded(tmp_path: Path) -> None:
    project = opened(tmp_path)
    with pytest.raises(ConfigError, match="A packet of 50 tokens is too small: expected at least"):
        await project.streams.import_chats([saved(tmp_path, CHAT)], budget=50)
    assert not project.library.agents()


def test_a_folder_without_logs_is_told(remora: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("nothing")
    done = remora("trace", "import", str(tmp_path / "empty"))
    assert (done.returncode, done.stdout) == (0, "0 imported\n")
    assert f"notice: no log in {tmp_path / 'empty'}: expected files that end with" in done.stderr


def test_a_session_in_a_folder_that_nobody_answered_is_counted_and_is_no_error(
    remora: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    asked = {"type": "user", "sessionId": "s1", "uuid": "u1", "message": {"role": "user", "content": "Hello?"}}
    folder = tmp_path / "projects"
    folder.mkdir()
    file = folder / "s1.jsonl"
    file.write_text(json.dumps(asked) + "\n")
    done = remora("trace", "import", str(folder))
    assert (done.returncode, done.stdout) == (0, "0 imported\n")
    assert done.stderr == "notice: 1 conversation without a reply of an assistant: not imported\n"
    named = remora("trace", "import", str(file))
    assert (named.returncode, named.stdout) == (2, "0 imported, 1 skipped\n")
