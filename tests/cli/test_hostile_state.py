"""A state directory that was tampered with, lost, or is in the way: told, and never a way out of it."""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import PATIENT

Remora = Callable[..., subprocess.CompletedProcess[str]]
Json = Callable[..., Any]


def traces(shop: Path) -> list[Path]:
    return sorted((shop / ".agentfs" / "traces").glob("*.jsonl"))


def test_prune_deletes_nothing_through_a_planted_link(
    shop: Path, tmp_path: Path, remora: Remora, analyzed: Json
) -> None:
    analyzed("shop/pricing.py")
    home = tmp_path / "home"
    names = [path.stem for path in traces(shop)]
    for name in (*names, "Documents"):
        (home / name).mkdir(parents=True)
    shutil.rmtree(shop / ".agentfs" / "workspaces")
    (shop / ".agentfs" / "workspaces").symlink_to(home)
    traces(shop)[0].rename(shop / ".agentfs" / "traces" / "Documents.jsonl")
    remora("trace", "prune", "--keep-last", "0")
    assert sorted(path.name for path in home.iterdir()) == sorted([*names, "Documents"])
    done = remora("analyze", "shop/pricing.py")
    assert (done.returncode, "holds a link, `workspaces`" in done.stderr) == (3, True)
    assert sorted(path.name for path in home.iterdir()) == sorted([*names, "Documents"])


def test_verify_tells_of_a_lost_blob_and_of_a_lost_stream(shop: Path, remora: Remora, analyzed: Json) -> None:
    analyzed("shop/pricing.py")
    lost = traces(shop)[0]
    lost.unlink()
    done = remora("trace", "verify")
    assert done.returncode == 1
    assert f"{lost.relative_to(shop)}:1  the stream is gone, although its run tells of its end" in done.stdout
    blobs = [path for path in (shop / ".agentfs" / "blobs").rglob("*") if path.is_file()]
    for blob in blobs:
        blob.unlink()
    told = remora("trace", "verify", traces(shop)[0].stem)
    assert told.returncode == 1
    assert "which is gone" in told.stdout


def test_what_was_pruned_is_not_called_lost(remora: Remora, remora_json: Json, analyzed: Json) -> None:
    analyzed("shop/pricing.py")
    remora_json("trace", "prune", "--keep-last", "1")
    assert remora("trace", "verify").returncode == 0


def test_accept_changes_nothing_that_it_cannot_record(shop: Path, remora: Remora, analyzed: Json) -> None:
    analyzed("shop/pricing.py")
    before = (shop / "shop" / "pricing.py").read_bytes()
    (run,) = (shop / ".agentfs" / "runs").glob("*.jsonl")
    with run.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        done = remora("accept")
    assert done.returncode == 1
    assert "has another writer" in done.stderr
    assert (shop / "shop" / "pricing.py").read_bytes() == before
    assert remora("accept").returncode == 0


def test_a_state_directory_inside_the_project_is_not_taken_for_code(shop: Path, remora_json: Json) -> None:
    shutil.rmtree(shop / "tests")
    for path in {*(shop / "shop").glob("*.py")} - {shop / "shop" / "report.py"}:
        path.unlink()
    first = remora_json("analyze", ".", "--state-dir", "state")
    second = remora_json("analyze", ".", "--state-dir", "state")
    assert [agent["node_id"] for agent in first["agents"]] == [agent["node_id"] for agent in second["agents"]]


def test_a_file_in_place_of_the_state_directory_is_told_before_anything_runs(shop: Path, remora: Remora) -> None:
    (shop / "state").write_text("mine")
    done = remora("analyze", ".", "--state-dir", "state")
    assert (done.returncode, "is not a folder" in done.stderr) == (3, True)


def test_a_state_directory_that_cannot_be_written_is_told_before_anything_runs(remora: Remora) -> None:
    done = remora("analyze", "shop/pricing.py", "--state-dir", "/proc/state")
    assert (done.returncode, "cannot hold Remora's state: `/proc`" in done.stderr) == (3, True)


def test_the_commands_that_are_named_next_mean_the_same_state(shop: Path, remora: Remora) -> None:
    done = remora("analyze", "shop/pricing.py", "--state-dir", "state")
    assert "remora accept -i --state-dir state" in done.stdout


@pytest.mark.parametrize(
    "data", [{"attachments": [{"ref": 5}]}, {"attachments": [{"ref": {"size": "x"}}]}, {"raw": "DEEP"}, {"files": "x"}]
)
def test_a_foreign_record_ends_in_no_traceback(shop: Path, remora: Remora, data: dict[str, Any]) -> None:
    folder = shop / ".agentfs" / "traces"
    folder.mkdir(parents=True)
    deep = json.dumps(data).replace('"DEEP"', "[" * 900 + "]" * 900)
    body = '{"call_id": "c", "tool": "t", "outcome": "success", ' + deep[1:]
    (folder / "01FOREIGN.jsonl").write_text(f'{{"v":1,"seq":0,"type":"tool_result","data":{body},"prev":null}}\n')
    for command in (["show", "01FOREIGN"], ["show", "01FOREIGN", "--events"], ["verify"], ["ls"]):
        done = remora("trace", *command)
        assert "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize(("content", "words"), [(b"\xff\xfe\x00", "not UTF-8"), (b"a: 2026-99-99\n", "not YAML")])
def test_settings_that_are_no_text_or_no_yaml_are_told(shop: Path, remora: Remora, content: bytes, words: str) -> None:
    (shop / "remora.yaml").write_bytes(content)
    done = remora("trace", "ls")
    assert (done.returncode, words in done.stderr) == (3, True)


def test_a_path_too_long_for_the_system_is_told(remora: Remora) -> None:
    done = remora("analyze", "x" * 300)
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)


def test_a_polite_kill_seals_what_runs(shop: Path, remora_json: Json, gone: Callable[[int], None]) -> None:
    command = [sys.executable, "-c", PATIENT, "analyze", "."]
    run = subprocess.Popen(command, cwd=shop, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 60
    while len(list((shop / ".agentfs" / "traces").glob("*.jsonl"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=60)
    assert run.returncode == 130
    gone(run.pid)
    assert {report["status"] for report in remora_json("trace", "verify")["streams"] if report["kind"] == "traces"} == {
        "sealed"
    }


def test_a_diff_into_a_file_is_a_patch(shop: Path, remora: Remora, analyzed: Json) -> None:
    run = analyzed("shop/report.py")
    changed = [agent["agent_id"] for agent in run["agents"] if agent["files"]]
    patch = remora("diff", changed[0]).stdout
    git = shutil.which("git")
    if git is None:
        pytest.skip("no git here to judge the patch")
    done = subprocess.run(
        [git, "apply", "--check", "-"], cwd=shop, input=patch, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_verify_names_the_stream_the_seq_and_the_blob_that_was_altered(
    shop: Path, remora: Remora, remora_json: Json, analyzed: Json
) -> None:
    analyzed("shop/pricing.py")
    whole = remora_json("trace", "verify")
    assert whole["blobs"]["read"] == whole["blobs"]["named"] > 0
    assert (whole["heads"]["streams"], whole["not_checked"]) == (len(whole["streams"]), [])
    altered = next(path for path in (shop / ".agentfs" / "blobs").rglob("*") if path.suffix in (".raw", ".gz"))
    altered.write_bytes(altered.read_bytes()[:-1])
    done = remora("trace", "verify")
    name = f"sha256:{altered.parent.name}{altered.stem}"
    assert done.returncode == 1
    assert re.search(rf"\.jsonl:\d+  seq \d+: names blob {name}, which is damaged", done.stdout)
    quick = remora("trace", "verify", "--quick")
    assert quick.returncode == 0
    assert "not checked: Blobs were only looked up, not read" in quick.stdout


def test_verify_misses_a_run_that_was_deleted_and_a_decision_that_was_cut_off(
    shop: Path, remora: Remora, analyzed: Json
) -> None:
    analyzed("shop/pricing.py")
    remora("reject")
    (run,) = (shop / ".agentfs" / "runs").glob("*.jsonl")
    whole = run.read_bytes()
    run.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    done = remora("trace", "verify")
    assert (done.returncode, "the stream was cut: `heads.log` notes" in done.stdout) == (1, True)
    run.unlink()
    done = remora("trace", "verify")
    assert (done.returncode, f"{run.relative_to(shop)}:1  the stream is gone" in done.stdout) == (1, True)


def test_a_state_folder_that_is_not_there_is_no_clean_bill(remora: Remora) -> None:
    done = remora("trace", "verify", "--store", "nowhere")
    assert (done.returncode, done.stdout) == (3, "")
    assert "There is no folder `nowhere`" in done.stderr
