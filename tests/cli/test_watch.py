"""`remora watch`, as a real process over real edits: every wait is for something that it says."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from remora.trace import make_own

MESSY = (
    "import os\nimport sys\n\n\ndef load() -> None:\n    import json\n\n\ndef save() -> None:\n    print(sys.path)\n"
)


class Watcher:
    """A running `remora watch --json`, and what it says."""

    def __init__(self, project: Path, *args: str) -> None:
        command = [sys.executable, "-c", "from remora.cli import main; main()", "watch", *args]
        self.process = subprocess.Popen(
            command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.guard = threading.Timer(120, self.process.kill)  # a silent one fails the test, and does not hang it
        self.guard.start()
        assert self.process.stderr is not None
        self.said = self.process.stderr.readline()

    def result(self) -> dict[str, Any]:
        """The next agent that ends."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())  # type: ignore[no-any-return]

    def results(self, number: int) -> set[str]:
        return {self.result()["node_id"] for _ in range(number)}

    def stop(self) -> tuple[str, str]:
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=60)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "remora.yaml").write_text("watch: {debounce_ms: 20}\n")
    (tmp_path / ".gitignore").write_text("made/\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "store.py").write_text(MESSY)
    (tmp_path / "src" / "other.py").write_text("def other() -> int:\n    return 1\n")
    return tmp_path


@pytest.fixture
def watch(project: Path) -> Iterator[Callable[..., Watcher]]:
    started: list[Watcher] = []

    def start(*args: str) -> Watcher:
        started.append(Watcher(project, *args, "--policy", "scripted"))
        return started[-1]

    yield start
    for each in started:
        each.guard.cancel()
        each.process.kill()
        each.process.communicate()


def test_only_the_nodes_whose_own_lines_changed_are_run(project: Path, watch: Callable[..., Watcher]) -> None:
    watcher, file = watch("src", "--json"), project / "src" / "store.py"
    assert watcher.said.startswith("Watching src for lint")
    file.write_text("# moved down\n\n" + MESSY)
    assert watcher.results(1) == {"src/store.py"}
    file.write_text("# moved down\n\n" + MESSY.replace("sys.path", "sys.argv"))
    assert watcher.results(1) == {"src/store.py:save"}
    file.write_text(file.read_text())  # written again, and nothing is new
    (project / "src" / "other.py").write_text("def other() -> int:\n    return 2\n")
    assert watcher.results(1) == {"src/other.py:other"}


def test_files_of_a_new_folder_are_run_and_hidden_ones_are_not(project: Path, watch: Callable[..., Watcher]) -> None:
    make_own(project / ".agentfs")
    watcher = watch(".", "--json")
    for folder in ("made", ".agentfs/inner", ".venv", "new/deep/deeper"):
        (project / folder).mkdir(parents=True)
        (project / folder / "fresh.py").write_text("import os\n")
    assert watcher.results(1) == {"new/deep/deeper/fresh.py"}
    (project / "new" / "later.py").write_text("import os\n")
    assert watcher.results(1) == {"new/later.py"}


def test_a_file_that_an_editor_puts_in_place_of_the_old_one_is_seen(
    project: Path, watch: Callable[..., Watcher]
) -> None:
    watcher, file = watch("src/store.py", "--json"), project / "src" / "store.py"
    for number in range(3):
        draft = file.with_suffix(".tmp")
        draft.write_text(MESSY.replace("sys.path", f"sys.argv[{number}]"))
        draft.replace(file)
        assert watcher.results(1) == {"src/store.py:save"}
    file.unlink()
    file.write_text(MESSY)
    assert watcher.results(1) == {"src/store.py:save"}


def test_what_it_did_can_be_reviewed_and_ctrl_c_ends_it_cleanly(
    project: Path, watch: Callable[..., Watcher], gone: Callable[[int], None]
) -> None:
    watcher, file = watch("src"), project / "src" / "store.py"
    file.write_text(MESSY.replace("import os", "import os, re"))
    assert watcher.process.stdout is not None
    line, review = watcher.process.stdout.readline(), watcher.process.stdout.readline()
    assert "src/store.py" in line
    assert review.startswith("Review: remora diff ")
    out, err = watcher.stop()
    assert (out, watcher.process.returncode) == ("", 130)
    assert "Traceback" not in err
    gone(watcher.process.pid)
    run_id = review.split()[3]
    command = [sys.executable, "-c", "from remora.cli import main; main()", "accept", run_id]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    assert "import os" not in file.read_text()


def test_a_path_that_is_not_there_is_refused_at_the_start(project: Path, watch: Callable[..., Watcher]) -> None:
    watcher = watch("src", "nowhere")
    assert watcher.said.startswith("error: `nowhere` does not exist")
    assert watcher.process.wait(timeout=60) == 3
