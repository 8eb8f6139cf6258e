from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from remora.analysis import explain, replay
from remora.context.projection import project
from remora.events import ModelRequestEvent
from remora.trace import read_changes, read_events

GOLDEN = Path(__file__).parents[1] / "golden" / "format-1-lint.jsonl"
SRC = Path(__file__).parents[2] / "src"


def test_a_replay_to_the_end_is_the_projection_and_every_receipt_agrees() -> None:
    result = replay(read_events(GOLDEN))
    assert result.packet == project(read_events(GOLDEN))
    assert (result.receipts, result.first_difference) == (6, None)


def test_a_replay_to_a_turn_knows_nothing_of_later_ones() -> None:
    result = replay(read_events(GOLDEN), to=1)
    assert result.packet.turn == 1
    assert list(result.packet.knowledge) == ["lint_errors_remaining"]


def test_a_receipt_that_names_another_packet_is_found() -> None:
    events = [
        event.model_copy(update={"packet_sha256": "sha256:00"})
        if isinstance(event, ModelRequestEvent) and event.turn == 3
        else event
        for event in read_events(GOLDEN)
    ]
    difference = replay(events).first_difference
    assert difference is not None
    assert events[difference].turn == 3


def test_an_explanation_leads_to_the_event_that_said_it() -> None:
    found = explain(read_events(GOLDEN), "lint_errors_remaining", at=1)
    assert (found.value, found.sources[-1].seq, found.sources[-1].tool) == (7, 5, "run_linter")
    replaced = explain(read_events(GOLDEN), "left")
    assert (replaced.sources[-1].supersedes, replaced.value) == ("lint_errors_remaining", 3)


def test_what_was_never_known_or_is_no_longer_known_is_said_so() -> None:
    unknown = explain(read_events(GOLDEN), "colour")
    assert not unknown.known
    assert {"left", "recent_actions"} <= set(unknown.keys)
    assert all(explain(read_events(GOLDEN), key).known for key in unknown.keys)
    gone = explain(read_events(GOLDEN), "lint_errors_remaining", at=2)
    assert not gone.known
    assert len(gone.sources) == 1


@pytest.mark.parametrize("key", ["lint_errors_remaining", "left", "last_error", "recent_actions", "colour"])
@pytest.mark.parametrize("turn", [None, 0, 1, 2, 3])
def test_an_explanation_from_changes_alone_is_that_from_all_events(key: str, turn: int | None) -> None:
    assert explain(read_changes(GOLDEN, turn), key, turn) == explain(read_events(GOLDEN), key, turn)


def test_fields_of_the_packet_are_explained_too() -> None:
    found = explain(read_events(GOLDEN), "last_error", at=3)
    assert (found.value, found.sources[-1].turn) == ("No safe fix for E741", 3)


REPLAY = """
import sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from remora.analysis import replay
from remora.events import canonical, digest
from remora.trace import read_events
events = list(read_events(Path(sys.argv[1])))
for turn in range(events[-1].turn + 1):
    result = replay(events, to=turn)
    print(turn, digest(canonical(result.packet)), result.receipts, result.first_difference)
"""
"""Prints a line for each turn: the packet's digest, and whether the receipts agree."""

NEEDS = ("pydantic", "orjson")


def _interpreters() -> dict[str, str]:
    """Every Python from 3.11 on that is installed here, by its version: on the path, and where pyenv keeps them."""
    names = [f"python3.{minor}" for minor in range(11, 16)]
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [path for name in names if (path := shutil.which(name))]
    found += [str(path) for name in names for path in sorted(kept.glob(f"*/bin/{name}"))]
    versions = {}
    for path in found:
        told = _run(path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
        if told.returncode == 0:
            versions.setdefault(told.stdout.strip(), path)
    return dict(sorted(versions.items()))


def _run(python: str | Path, *argv: str | Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}
    return subprocess.run([python, *argv], capture_output=True, text=True, check=False, timeout=300, env=env)


def _replayed(python: str | Path, *packages: str) -> subprocess.CompletedProcess[str]:
    return _run(python, "-c", REPLAY, GOLDEN, SRC, *packages)


def _here() -> str:
    done = _replayed(sys.executable)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 7
    return done.stdout


INTERPRETERS = _interpreters()


@pytest.mark.parametrize("version", INTERPRETERS)
def test_every_interpreter_here_folds_the_stream_to_the_same_bytes(version: str) -> None:
    done = _replayed(INTERPRETERS[version], *[path for path in sys.path if path.endswith("site-packages")])
    if done.returncode:
        # The compiled parts of pydantic and orjson belong to one version of Python; the test below installs them.
        pytest.skip(f"Python {version} has no pydantic or orjson: {done.stderr.strip().splitlines()[-1]}")
    assert done.stdout == _here()


@pytest.mark.faults
@pytest.mark.parametrize("version", INTERPRETERS)
def test_every_interpreter_folds_to_the_same_bytes_with_a_base_install_of_its_own(version: str, tmp_path: Path) -> None:
    made = _run(INTERPRETERS[version], "-m", "venv", tmp_path)
    if made.returncode:
        pytest.skip(f"Python {version} makes no environment: {(made.stderr or made.stdout).strip().splitlines()[-1]}")
    python = tmp_path / "bin" / "python"
    got = _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:", *NEEDS)
    if got.returncode:
        pytest.skip(f"Python {version} gets no {' and '.join(NEEDS)}: {got.stderr.strip().splitlines()[-1]}")
    done = _replayed(python)
    assert done.returncode == 0, done.stderr
    assert done.stdout == _here()
