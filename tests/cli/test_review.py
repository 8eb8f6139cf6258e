"""Diff, accept, reject and undo, by the real command on a real project."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.app import open_project

Remora = Callable[..., subprocess.CompletedProcess[str]]
Json = Callable[..., Any]


def tree(project: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in project.rglob("*") if path.is_file() and ".agentfs" not in path.parts]
    return {str(path.relative_to(project)): (path.read_bytes(), path.stat().st_mode) for path in files}


def decided(shop: Path) -> list[str]:
    """The types of the events in which a run tells of decisions."""
    run = sorted((shop / ".agentfs/runs").glob("*.jsonl"))[0]
    types = [json.loads(line)["type"] for line in run.read_bytes().splitlines()]
    return [word for word in types if word.startswith(("workspace", "accept"))]


def test_an_undo_gives_back_every_file_and_the_changes_are_open_again(
    shop: Path, remora_json: Json, analyzed: Json
) -> None:
    (shop / "shop/cart.py").chmod(0o755)
    before = tree(shop)
    analyzed("shop")
    shown = remora_json("diff")
    taken = [item for item in shown if not item["unsafe"]]
    remora_json("accept")
    accepted = tree(shop)
    assert accepted != before
    assert {path: mode for path, (_, mode) in accepted.items()} == {path: mode for path, (_, mode) in before.items()}
    assert all(item["unsafe"] for item in remora_json("diff"))

    assert not [item for item in remora_json("undo") if item["conflict"]]
    assert tree(shop) == before
    assert remora_json("diff") == shown
    assert remora_json("undo") == []
    assert decided(shop) == ["workspace_accepted"] * len(taken) + ["accept_undone"] * len(taken)
    remora_json("accept")
    assert tree(shop) == accepted


def test_an_undo_keeps_what_was_changed_since_or_refuses(
    shop: Path, remora: Remora, remora_json: Json, analyzed: Json
) -> None:
    analyzed("shop/pricing.py")
    file, before = shop / "shop/pricing.py", (shop / "shop/pricing.py").read_bytes()
    remora_json("accept")
    file.write_bytes(b"# mine\n" + file.read_bytes())
    remora_json("undo")
    assert file.read_bytes() == b"# mine\n" + before

    file.write_bytes(before)
    remora_json("accept")
    mine = b"".join(line + b"  # mine\n" for line in file.read_bytes().splitlines())
    file.write_bytes(mine)
    done = remora("undo")
    assert done.returncode == 1
    assert "conflict" in done.stdout
    assert file.read_bytes() == mine


def test_one_agent_of_an_accept_can_be_undone_alone(shop: Path, remora_json: Json, analyzed: Json) -> None:
    analyzed("shop/cart.py")
    taken = remora_json("accept")
    remora_json("undo", taken[0]["agent_id"])
    assert [item["agent_id"] for item in remora_json("diff") if not item["unsafe"]] == [taken[0]["agent_id"]]
    assert len(remora_json("undo")) == len(taken) - 1


def test_rejected_changes_are_no_longer_open_and_no_file_changes(shop: Path, remora_json: Json, analyzed: Json) -> None:
    before = tree(shop)
    analyzed("shop")
    agents = [item["agent_id"] for item in remora_json("diff")]
    assert [item["agent_id"] for item in remora_json("reject", agents[0])] == agents[:1]
    assert [item["agent_id"] for item in remora_json("diff")] == agents[1:]
    remora_json("reject")
    assert remora_json("diff") == remora_json("accept") == remora_json("reject") == []
    assert tree(shop) == before


def test_only_the_named_file_is_shown_accepted_and_rejected(
    shop: Path, remora: Remora, remora_json: Json, analyzed: Json
) -> None:
    before = tree(shop)
    analyzed("shop")
    assert {path for item in remora_json("diff", "--file", "shop/cart.py") for path in item["files"]} == {
        "shop/cart.py"
    }
    remora_json("accept", "--file", "shop/cart.py")
    assert [path for path, file in tree(shop).items() if before[path] != file] == ["shop/cart.py"]
    remora_json("reject", "-f", "shop/report.py")
    left = {path for item in remora_json("diff") if not item["unsafe"] for path in item["files"]}
    assert left
    assert not left & {"shop/cart.py", "shop/report.py"}
    done = remora("accept", "--file", "shop/nothing.py")
    assert done.returncode == 1
    assert "Nothing is open for `shop/nothing.py`" in done.stderr
    inside = remora("diff", "--file", "pricing.py", cwd=shop / "shop")
    assert "+++ b/shop/pricing.py" in inside.stdout


def test_a_person_is_asked_file_by_file(shop: Path, remora: Remora, remora_json: Json, analyzed: Json) -> None:
    before = tree(shop)
    analyzed("shop")
    open_files = [path for item in remora_json("diff") for path in item["files"]]
    assert len(open_files) > 3
    done = remora("accept", "-i", text="what\nn\ny\nq\n")
    assert done.returncode == 0
    assert done.stdout.count("Accept the changes of") == 4
    assert [path for path, file in tree(shop).items() if before[path] != file] == [open_files[1]]
    assert len(remora_json("diff")) == len(open_files) - 1
    assert remora("accept", "-i").returncode == 0
    assert len(remora_json("diff")) == len(open_files) - 1


def test_a_file_whose_name_looks_like_a_secret_is_accepted_when_a_person_says_yes(shop: Path, remora: Remora) -> None:
    source = shop / "shop" / "sk_live_abcdefgh12345678.py"
    source.write_text("import os\n\n\ndef total(items):\n    return sum(items)\n")
    assert remora("analyze", str(source), "-o", "lint", "--policy", "first-candidate").returncode == 0
    done = remora("accept", "-i", text="y\n")
    assert (done.returncode, "abcdefgh12345678" in done.stdout) == (0, False)
    assert "import os" not in source.read_text()


def test_asking_a_person_and_answering_a_program_exclude_each_other(remora: Remora, analyzed: Json) -> None:
    analyzed("shop/pricing.py")
    assert remora("accept", "-i", "--json").returncode == 3


def test_a_run_without_agents_hides_no_earlier_one(shop: Path, remora_json: Json, analyzed: Json) -> None:
    analyzed("shop/pricing.py")
    shown = remora_json("diff")
    (shop / "empty").mkdir()
    assert remora_json("analyze", "empty")["agents"] == []
    assert remora_json("diff") == shown
    assert remora_json("accept")


def test_a_run_can_be_named(shop: Path, remora_json: Json, analyzed: Json) -> None:
    first = analyzed("shop/pricing.py")["run_id"]
    remora_json("analyze", "shop/report.py")
    assert {path for item in remora_json("diff", first) for path in item["files"]} == {"shop/pricing.py"}


def test_what_was_written_is_private_until_it_is_accepted(shop: Path, remora_json: Json, analyzed: Json) -> None:
    analyzed("shop/pricing.py")
    remora_json("accept")
    for path in (shop / ".agentfs").rglob("*"):
        mode = path.stat().st_mode & 0o777
        assert mode == (0o700 if path.is_dir() else 0o600), path
    assert not list(shop.rglob("*.remora"))
    assert not open_project(shop).changes.is_cut_off


@pytest.mark.parametrize("name", ["../../x", "a\nb", "x" * 5000, "../runs", "*", "%00"])
def test_a_hostile_name_of_an_agent_is_only_not_found(remora: Remora, name: str) -> None:
    done = remora("accept", name)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
