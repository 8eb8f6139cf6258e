"""Trains an adapter and measures it, on a machine that is lent for minutes at a time.

    python -m remora_lab.trainer.steps --work DIR --base FILE.gguf --rows ROWS… --suite FOLDER… --minutes 9

Joins the weights from their parts, trains an adapter for packets and one for chat history, asks both on the suites, and
packs everything to take along. Every call continues where the last one stopped: a step that is done is not done again.
Ends with 0 when all is done, with 3 when the time is over, and with 2 when a step failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import remora
import remora_lab
from remora_lab.trainer.parts import join, split

DONE, FAILED, TIME_OVER = 0, 2, 3
MAX_PART = 15 * 1024 * 1024
"""Bytes of a packed file."""
LEAST_S = 20.0
"""Seconds that must be left for a step to begin."""
ROWS = {"packet": ("adapter",), "history": ("adapter-history", "adapter-cut")}
"""The rows of `remora bench` by the adapter that they need."""
STAND_IN = Path(__file__).with_name("stand_in")


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """What is to be done, from the command line."""
    parser = argparse.ArgumentParser(prog="python -m remora_lab.trainer.steps", description=__doc__)
    add = parser.add_argument
    add("--work", type=Path, required=True, help="folder for everything that is made; it must outlast the calls")
    add("--out", type=Path, default=None, help="folder for what is taken along; default: `out` in --work")
    add("--base", type=Path, required=True, help="the GGUF file; made from its parts if it is missing")
    add("--parts", type=Path, default=None, help="folder with the parts of the GGUF file")
    add("--sha256", default="", help="digest of the GGUF file")
    add("--rows", type=Path, nargs="+", required=True, help="rows of packets")
    add("--chats", type=Path, nargs="*", default=[], help="the same turns as chat history")
    add("--valid", type=Path, nargs="*", default=[], help="rows to judge by")
    add("--suite", type=Path, nargs="*", default=[], help="folders of tasks")
    add("--model", default="", help="name of the model in the catalogue; the file's own defaults without one")
    add("--tasks", default="", help="at most this many tasks of a suite")
    add("--jobs", default="12", help="trials at once")
    add("--slots", default="32", help="prompts that a server answers at once")
    add("--port", type=int, default=8301, help="the first of two ports on this machine")
    add("--minutes", type=float, default=9.0, help="stop after so long")
    add("--trainer", default=sys.executable, help="the Python that has torch")
    add("options", nargs="*", help="options of the trainer, after `--`")
    return parser.parse_args(words)


@dataclass(frozen=True)
class Step:
    """One step. `run` gets the seconds that are left and returns DONE, TIME_OVER or FAILED."""

    name: str
    run: Callable[[float], int]


class Steps:
    """All steps of one plan, with what is done already."""

    def __init__(self, given: argparse.Namespace, clock: Callable[[], float] = time.monotonic) -> None:
        self.given = given
        self.work: Path = given.work
        self.work.mkdir(parents=True, exist_ok=True)
        self._clock = clock
        self._until = clock() + given.minutes * 60
        self._file = self.work / "done.json"
        self.done: list[str] = json.loads(self._file.read_text()) if self._file.exists() else []

    def plan(self) -> list[Step]:
        """The steps in their order."""
        kinds = {"packet": self.given.rows, "history": self.given.chats}
        learned = [kind for kind, rows in kinds.items() if rows]
        steps = [Step("join", self._join)]
        steps += [
            Step(f"train {kind}", lambda left, kind=kind: self._train(kind, kinds[kind], left)) for kind in learned
        ]
        steps += [Step("adapters", lambda _: self._pack([self.work / f"{kind}.gguf" for kind in learned]))]
        for suite in self.given.suite:
            steps.append(Step(f"measure {suite.name}", lambda left, suite=suite: self._measure(suite, learned, left)))
        return [
            *steps,
            Step("results", lambda _: self._pack([*self.work.glob("*.jsonl"), *self.work.glob("*/metrics.json")])),
        ]

    def run(self) -> int:
        """Do what is left, until the time is over."""
        for step in self.plan():
            if step.name in self.done:
                continue
            left = self._until - self._clock()
            if left < LEAST_S:
                return TIME_OVER
            began = self._clock()
            status = step.run(left)
            told = {DONE: "done", TIME_OVER: "time over", FAILED: "failed"}[status]
            _say(f"{step.name}: {told}, {self._clock() - began:.0f} s")
            if status != DONE:
                return status
            self.done.append(step.name)
            self._file.write_text(json.dumps(self.done))
        return DONE

    def _join(self, _: float) -> int:
        if not self.given.base.exists() and self.given.parts is None:
            _say(f"error: `{self.given.base}` is missing, and `--parts` names no folder to join it from")
            return FAILED
        try:
            join(self.given.parts, self.given.base, self.given.sha256)
        except ValueError as error:
            _say(f"error: {error}")
            return FAILED
        return DONE

    def _train(self, kind: str, rows: list[Path], left: float) -> int:
        """Train until the time is over, but for a minute to write the adapter and judge it."""
        minutes = max(0.2, (left - 60) / 60)
        words = ["-m", "remora_lab.trainer", "--base", self.given.base, "--out", self.work / kind, "--resume"]
        words += ["--minutes", f"{minutes:.2f}", "--rows", *rows]
        words += ["--valid", *self.given.valid] if self.given.valid and kind == "packet" else []
        status = self._python(self.given.trainer, [*words, *self.given.options])
        if status == DONE:
            # Rows of both kinds are measured at once, and the servers are known by the names of their files.
            (self.work / f"{kind}.gguf").write_bytes((self.work / kind / "adapter.gguf").read_bytes())
        return status if status in (DONE, TIME_OVER) else FAILED

    def _measure(self, suite: Path, learned: list[str], left: float) -> int:
        """Ask the adapters on the tasks of a suite: packets, chat history, and history that is cut."""
        servers = [self._serve(kind, self.given.port + place) for place, kind in enumerate(learned)]
        try:
            addresses = {
                f"{self.given.base.name}+{kind}.gguf": url for kind, (url, _) in zip(learned, servers, strict=True)
            }
            home = self.work / "home"
            home.mkdir(exist_ok=True)
            (home / ".remora-torch.json").write_text(json.dumps(addresses))
            if not all(_listens(url, process, self._until - self._clock(), self._clock) for url, process in servers):
                return TIME_OVER if self._until - self._clock() < LEAST_S else FAILED
            return self._bench(suite, learned, home)
        finally:
            for _, process in servers:
                process.kill()
                process.wait()

    def _bench(self, suite: Path, learned: list[str], home: Path) -> int:
        words = ["-m", "remora", "bench", "--suite", suite.absolute(), "--seeds", "1", "--threads", "1"]
        words += ["--jobs", self.given.jobs, "--gguf", self.given.base.absolute(), "--resume"]
        words += ["--out", (self.work / f"{suite.name}.jsonl").absolute()]
        words += ["--model", self.given.model] if self.given.model else []
        words += ["--tasks", self.given.tasks] if self.given.tasks else []
        for kind in learned:
            option = "--adapter" if kind == "packet" else "--history-adapter"
            words += [option, (self.work / f"{kind}.gguf").absolute()]
            words += [word for row in ROWS[kind] for word in ("--row", row)]
        left = max(1.0, self._until - self._clock())
        environment = {"HOME": str(home), "PYTHONPATH": os.pathsep.join(_paths(STAND_IN))}
        try:
            return DONE if self._python(sys.executable, words, environment, timeout=left) == 0 else FAILED
        except subprocess.TimeoutExpired:
            return TIME_OVER  # what was measured is kept

    def _serve(self, kind: str, port: int) -> tuple[str, subprocess.Popen[bytes]]:
        words = ["-m", "remora_lab.trainer.serve", "--base", self.given.base, "--adapter", self.work / f"{kind}.gguf"]
        command = [self.given.trainer, *words, "--port", port, "--slots", self.given.slots]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(_paths())}
        return f"http://127.0.0.1:{port}", subprocess.Popen([str(word) for word in command], env=environment)

    def _pack(self, files: list[Path]) -> int:
        """Copy the files to take along, the large ones in parts."""
        out = self.given.out or self.work / "out"
        out.mkdir(parents=True, exist_ok=True)
        for file in files:
            name = file.name if file.parent == self.work else f"{file.parent.name}-{file.name}"
            split(file, out, MAX_PART, name)
        return DONE

    def _python(
        self,
        python: str,
        words: list[str | Path],
        environment: dict[str, str] | None = None,
        timeout: float | None = None,
    ) -> int:
        env = os.environ | {"PYTHONPATH": os.pathsep.join(_paths())} | (environment or {})
        return subprocess.run([python, *map(str, words)], env=env, timeout=timeout, check=False).returncode


def _paths(*first: Path) -> list[str]:
    """What Python finds first: `first`, then the folders of a checkout. Installed packages are found without help."""
    own = dict.fromkeys(Path(str(package.__file__)).parents[1] for package in (remora, remora_lab))
    return [*map(str, first), *(str(path) for path in own if path.name != "site-packages")]


def _listens(url: str, process: subprocess.Popen[bytes], left: float, clock: Callable[[], float]) -> bool:
    """Wait until the server answers. False if it ended, or the time is over."""
    from urllib.error import URLError
    from urllib.request import urlopen

    until = clock() + left
    while process.poll() is None and clock() < until:
        try:
            with urlopen(f"{url}/health", timeout=5):  # noqa: S310 - a server of our own, on this machine
                return True
        except (URLError, OSError):
            time.sleep(0.2)
    return False


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - a program of its own


def main(words: list[str] | None = None) -> int:
    """Do the steps that are left."""
    return Steps(arguments(words)).run()


if __name__ == "__main__":
    sys.exit(main())
