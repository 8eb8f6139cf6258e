from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from remora.analysis import explain, replay
from remora.context.projection import project
from remora.events import ModelRequestEvent, canonical, digest
from remora.trace import read_events

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
    assert not explain(read_events(GOLDEN), "colour").known
    gone = explain(read_events(GOLDEN), "lint_errors_remaining", at=2)
    assert not gone.known
    assert len(gone.sources) == 1


def test_fields_of_the_packet_are_explained_too() -> None:
    found = explain(read_events(GOLDEN), "last_error", at=3)
    assert (found.value, found.sources[-1].turn) == ("No safe fix for E741", 3)


def _interpreters() -> list[str]:
    names = [f"python3.{minor}" for minor in range(11, 16)]
    return [path for name in names if (path := shutil.which(name))]


@pytest.mark.parametrize("python", _interpreters(), ids=lambda path: Path(path).name)
def test_every_interpreter_here_folds_the_stream_to_the_same_bytes(python: str) -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from remora.trace import read_events; from remora.context.projection import project\n"
        "from remora.events import canonical, digest; from pathlib import Path\n"
        "print(digest(canonical(project(read_events(Path(sys.argv[1]))))))"
    )
    packages = [path for path in sys.path if path.endswith("site-packages")]
    done = subprocess.run(
        [python, "-c", code, GOLDEN, SRC, *packages],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")},
    )
    if done.returncode:
        # The compiled parts of pydantic and orjson belong to one version of Python.
        pytest.skip(f"{Path(python).name} has no pydantic or orjson: {done.stderr.strip().splitlines()[-1]}")
    assert done.stdout.strip() == digest(canonical(project(read_events(GOLDEN))))
