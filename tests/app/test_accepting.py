"""Many agents of one run that changed one file: accepted at once, undone alone or together, and who met whom."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from remora.app import Project
from remora.config import Config
from remora.events import (
    AgentEndEvent,
    AgentScheduledEvent,
    AgentStartEvent,
    Event,
    FileChange,
    RunStartEvent,
    ToolResultEvent,
)
from remora.trace import Disk, FileBlobs, FileTrace, read_events
from remora.workspaces import Door

FILE = "src/steps.py"
Texts = Mapping[str, bytes | None]


def text(count: int, *, documented: Sequence[int] = (), head: str = "") -> bytes:
    parts = [
        f"def step_{number}():\n" + (f'    """Do {number}."""\n' if number in documented else "") + "    return 0\n"
        for number in range(count)
    ]
    return (head + "\n\n".join(parts)).encode()


class Steps:
    """A project in which agents of one run changed files. Nothing is accepted yet."""

    def __init__(self, root: Path, clock: Any) -> None:
        self.root, self.state_dir, self.clock = root, root / ".agentfs", clock
        self.run: list[Event] = [RunStartEvent(run_id="01RUN")]

    def record(self, agents: Sequence[tuple[Texts, Texts]]) -> None:
        """Each agent's files as it found and as it left them."""
        asyncio.run(self._record(agents))

    async def _record(self, agents: Sequence[tuple[Texts, Texts]]) -> None:
        blobs = FileBlobs(self.state_dir)
        async with FileTrace(self.state_dir, clock=self.clock, sync="off") as trace:
            run: list[Event] = [RunStartEvent(run_id="01RUN")]
            for number, (before, after) in enumerate(agents):
                ids = {"run_id": "01RUN", "agent_id": agent(number), "node_id": f"{FILE}:step_{number}"}
                files = [
                    FileChange(path=path, **{
                        name: None if data is None else await blobs.put(data)
                        for name, data in (("before", before.get(path)), ("after", after[path]))
                    })
                    for path in after
                ]  # fmt: skip
                result = ToolResultEvent(call_id="c", tool="t", outcome="success", files=tuple(files), turn=1, **ids)
                events = [AgentStartEvent(**ids), result, AgentEndEvent(outcome="success", **ids)]
                await trace.append(f"traces/{agent(number)}", events)
                run.append(AgentScheduledEvent(**ids))
            await trace.append("runs/01RUN", run)

    def app(self) -> Project:
        return Project(self.root, self.state_dir, Config(), clock=self.clock)

    def decided(self, kind: str) -> list[Any]:
        return [event for event in read_events(self.state_dir / "runs/01RUN.jsonl") if event.type == kind]

    def now(self) -> bytes:
        return (self.root / FILE).read_bytes()


def agent(number: int) -> str:
    return f"01AGENT{number:05}"


@pytest.fixture
def steps(tmp_path: Path, clock: Any) -> Steps:
    (tmp_path / "src").mkdir()
    (tmp_path / FILE).write_bytes(text(40))
    return Steps(tmp_path, clock)


def documented(count: int, agents: int) -> list[tuple[Texts, Texts]]:
    return [({FILE: text(count)}, {FILE: text(count, documented=[number])}) for number in range(agents)]


def test_agents_that_each_changed_another_function_are_all_accepted_and_undone(steps: Steps) -> None:
    steps.record(documented(40, 40))
    done = asyncio.run(steps.app().review.accept())
    assert [item.conflict for item in done] == [""] * 40
    assert steps.now() == text(40, documented=range(40))
    events = steps.decided("workspace_accepted")
    assert [event.agent_id for event in events] == [agent(number) for number in range(40)]
    assert all(one.files[0].after == two.files[0].before for one, two in pairwise(events))
    assert asyncio.run(steps.app().review.diff()) == []

    asyncio.run(steps.app().review.undo())
    assert steps.now() == text(40)
    assert len(steps.decided("accept_undone")) == 40
    assert len(asyncio.run(steps.app().review.diff())) == 40


def test_one_agent_of_many_can_be_undone_alone_and_then_the_others(steps: Steps) -> None:
    steps.record(documented(40, 40))
    (steps.root / FILE).write_bytes(text(40, head="# mine\n"))
    asyncio.run(steps.app().review.accept())
    (done,) = asyncio.run(steps.app().review.undo(agent(17)))
    assert not done.conflict
    rest = [number for number in range(40) if number != 17]
    assert steps.now() == text(40, documented=rest, head="# mine\n")
    assert [item.summary.agent_id for item in asyncio.run(steps.app().review.diff())] == [agent(17)]
    asyncio.run(steps.app().review.undo())
    assert steps.now() == text(40, head="# mine\n")


def test_an_undo_of_all_keeps_what_was_written_since_and_leaves_out_whose_lines_were_changed(steps: Steps) -> None:
    steps.record(documented(40, 40))
    asyncio.run(steps.app().review.accept())
    (steps.root / FILE).write_bytes(b"# mine\n" + steps.now().replace(b'"""Do 7."""', b'"""Do seven."""'))
    done = asyncio.run(steps.app().review.undo())
    assert [item.agent_id for item in done if item.conflict] == [agent(7)]
    expected = text(40, documented=[7], head="# mine\n").replace(b"Do 7", b"Do seven")
    assert steps.now() == expected


def test_a_conflict_names_the_agent_that_was_first_and_not_the_user(steps: Steps) -> None:
    other = text(40).replace(b"def step_3():\n", b"def step_3() -> int:\n")
    steps.record([*documented(40, 5), ({FILE: text(40)}, {FILE: other})])
    done = asyncio.run(steps.app().review.accept())
    assert [bool(item.conflict) for item in done] == [False] * 5 + [True]
    (found,) = done[5].conflicts
    assert [author.agent_id for author in found.agents] == [agent(3)]
    assert not found.others
    lines = steps.now().split(b"\n")
    assert [lines[at - 1] for first, last in found.lines for at in range(first, last + 1)] == [b'    """Do 3."""']
    assert f"`{agent(3)[-7:]}` ({FILE}:step_3)" in done[5].conflict
    assert f"remora undo {agent(3)[-7:]}" in done[5].hint

    (again,) = asyncio.run(steps.app().review.accept())
    assert again.conflicts == done[5].conflicts, "an earlier accept of the run is known, too"
    asyncio.run(steps.app().review.undo(agent(3)))
    (last,) = asyncio.run(steps.app().review.accept(agent(5)))
    assert not last.conflict, "what the hint says works"


def test_a_conflict_with_the_user_names_no_agent(steps: Steps) -> None:
    steps.record(documented(40, 3))
    (steps.root / FILE).write_bytes(text(40).replace(b"def step_1():", b"def one():"))
    done = asyncio.run(steps.app().review.accept())
    assert [bool(item.conflict) for item in done] == [False, True, False]
    assert done[1].conflicts[0].agents == ()
    assert done[1].conflicts[0].others
    assert "Changed since the agent read it" in done[1].conflict


def test_a_conflict_with_an_agent_that_found_another_text_names_it(steps: Steps) -> None:
    later = b"# saved while they ran\n" + text(40)
    first = ({FILE: later}, {FILE: later.replace(b"def step_3():\n", b"def step_3() -> int:\n")})
    second = ({FILE: text(40)}, {FILE: text(40).replace(b"def step_3():\n", b"def three():\n")})
    steps.record([first, second])
    (steps.root / FILE).write_bytes(later)
    done = asyncio.run(steps.app().review.accept())
    assert [author.agent_id for author in done[1].conflicts[0].agents] == [agent(0)]


def test_two_agents_that_make_the_same_new_file_differently_do_not_blame_the_user(steps: Steps) -> None:
    steps.record([({}, {"new/a.py": b"one\n"}), ({}, {"new/a.py": b"two\n"}), ({}, {"new": b"a file\n"})])
    done = asyncio.run(steps.app().review.accept())
    assert [author.agent_id for author in done[1].conflicts[0].agents] == [agent(0)]
    assert "another change needs a folder there" in done[2].conflict
    assert (steps.root / "new/a.py").read_bytes() == b"one\n"
    asyncio.run(steps.app().review.undo())
    assert not (steps.root / "new").exists()


def test_a_conflict_in_one_file_of_an_agent_leaves_its_other_files_to_others(steps: Steps) -> None:
    (steps.root / "src/b.py").write_bytes(b"b\n")
    both = {FILE: text(40), "src/b.py": b"b\n"}
    wrong = {FILE: text(40, documented=[9]), "src/b.py": b"mine\n"}
    steps.record([({"src/b.py": b"b\n"}, {"src/b.py": b"first\n"}), (both, wrong), *documented(40, 10)[9:]])
    done = asyncio.run(steps.app().review.accept())
    assert [bool(item.conflict) for item in done] == [False, True, False]
    assert steps.now() == text(40, documented=[9])
    assert done[2].files[0].before != done[2].files[0].after, "the refused agent's edit was not in it"


def test_a_save_right_before_the_write_is_merged_or_refused_and_never_lost(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.record(documented(40, 4))
    swap, saves = Door.swap, [b"# saved\n" + text(40)]

    def saving_first(self: Door, path: str, staged: str) -> None:
        if saves:
            (self.root / path).write_bytes(saves.pop())
        swap(self, path, staged)

    monkeypatch.setattr(Door, "swap", saving_first)
    done = asyncio.run(steps.app().review.accept())
    assert [item.conflict for item in done] == [""] * 4
    assert steps.now() == text(40, documented=range(4), head="# saved\n")
    assert [event.agent_id for event in steps.decided("workspace_accepted")] == [agent(number) for number in range(4)]


def test_what_was_cut_off_between_writing_and_recording_is_recorded_for_every_agent(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.record(documented(40, 4))
    app = steps.app()

    async def lost(*_: Any) -> None:
        raise KeyboardInterrupt

    app.changes._record = lost  # type: ignore[assignment, method-assign]
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(app.review.accept())
    assert steps.decided("workspace_accepted") == []
    asyncio.run(steps.app().changes.settle_and_record())
    assert asyncio.run(steps.app().review.diff()) == []
    assert len(steps.decided("workspace_accepted")) == 4
    asyncio.run(steps.app().review.undo())
    assert steps.now() == text(40)


def test_an_accept_of_many_writes_the_file_and_the_run_once(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    steps.record(documented(40, 40))
    staged, synced = [], []
    stage, sync = Door.stage, Disk.sync

    def counting_stage(self: Door, path: str, *args: Any, **more: Any) -> str:
        staged.append(path)
        return stage(self, path, *args, **more)

    def counting_sync(self: Disk, handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().suffix)
        sync(self, handle)

    monkeypatch.setattr(Door, "stage", counting_stage)
    monkeypatch.setattr(Disk, "sync", counting_sync)
    told: list[tuple[str, int, int]] = []
    asyncio.run(steps.app().review.accept(progress=lambda *step: told.append(step)))
    assert staged == [FILE]
    assert synced.count(".jsonl") <= 2, "one when the stream is opened, one for all events"
    assert told[0] == ("read", 0, 40)
    assert told[-1] == ("accept", 40, 40)


def test_accepts_recorded_one_by_one_as_before_are_undone_together(steps: Steps) -> None:
    """Streams of earlier versions: the same events, each written by itself."""
    steps.record(documented(40, 3))
    for number in range(3):
        asyncio.run(steps.app().review.accept(agent(number)))
    lines = (steps.state_dir / "runs/01RUN.jsonl").read_bytes().splitlines()
    kinds = [json.loads(line)["type"] for line in lines]
    assert kinds.count("workspace_accepted") == 3
    for expected in ([0, 1], [0], []):
        asyncio.run(steps.app().review.undo())
        assert steps.now() == text(40, documented=expected)
