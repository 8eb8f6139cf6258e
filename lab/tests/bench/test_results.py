"""Result files: appended line by line, gone on with after a kill, put together."""

from __future__ import annotations

from pathlib import Path

import pytest

from remora.errors import ConfigError
from remora_lab.bench.results import Header, Result, ResultFile, lines_to_publish, read_results


def head(command: str = "remora bench") -> Header:
    return Header(date="2026-11-16", command=command, machine={"cores": 2}, versions={}, suite="s", tasks=1)


def result(task: str = "t1", *, solved: bool = True, **fields: object) -> Result:
    named = {"operation": "lint", "level": "easy", "half": "eval", "row": "random"}
    return Result(task=task, solved=solved, **{**named, **fields})


def test_what_was_added_is_read_again(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "new" / "r.jsonl")
    file.begin(head())
    file.add(result("t1"))
    file.add(result("t2", solved=False, seed=2, problems=("F401 is still there",)))
    stored = read_results([file.path])
    assert stored.headers == (head(),)
    assert stored.results == (result("t1"), result("t2", solved=False, seed=2, problems=("F401 is still there",)))


def test_a_line_that_a_kill_cut_off_is_passed_over_and_the_next_one_is_whole(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "r.jsonl")
    file.begin(head())
    file.add(result("t1"))
    whole = file.path.read_bytes()
    for cut in range(len(whole) - 40, len(whole)):
        file.path.write_bytes(whole[:cut])
        file.begin(head("remora bench --resume"))
        file.add(result("t2"))
        stored = read_results([file.path])
        assert stored.headers[-1].command == "remora bench --resume"
        assert "t2" in {one.task for one in stored.results}


def test_the_later_of_two_equal_trials_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    for path, solved in ((first, False), (second, True)):
        ResultFile(path).begin(head())
        ResultFile(path).add(result(solved=solved))
        ResultFile(path).add(result(seed=1, solved=solved))
    assert [one.solved for one in read_results([first, second]).results] == [True, True]


def test_kept_results_say_the_same_without_leading_to_streams(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    ResultFile(path).begin(head())
    ResultFile(path).add(result("t2", stream="r.streams/x", agent_id="01"))
    ResultFile(path).add(result("t1"))
    kept = lines_to_publish(read_results([path]))
    path.write_bytes(kept)
    assert [one.task for one in read_results([path]).results] == ["t1", "t2"]
    assert b"streams" not in kept
    assert lines_to_publish(read_results([path])) == kept


@pytest.mark.parametrize("text", ["not json at all\n", '{"task": 1}\n', '{"bench": "x"}\n', "[]\n"])
def test_a_file_of_something_else_is_told_by_name(text: str, tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"other\.jsonl"):
        read_results([path])


def test_of_paths_on_a_machine_only_the_names_are_kept() -> None:
    told = head("remora bench --suite /home/me/tasks --adapter '/home/me/my adapter.gguf' --out out/a.jsonl").command
    assert told == "remora bench --suite tasks --adapter 'my adapter.gguf' --out out/a.jsonl"
