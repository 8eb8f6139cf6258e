"""The real command at a fraction of its start: a process that has imported Remora forks one for every call.

Each call is a process of its own, with its own arguments, folder, environment, input and end; only the import and
the parsed bundled agents are shared. Tests of the start itself, and of signals, start their own.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

TIMEOUT_S = 120

_CODE = """
import atexit, gc, json, os, sys, threading
import pathspec, platformdirs, pydantic_monty, re2, tomllib, tree_sitter_python, typer._adapters, yaml
import remora.app._agents, remora.app._changes, remora.app._hub, remora.app._open, remora.app._session
import remora.cli._analyze, remora.cli._hub, remora.cli._main, remora.cli._review, remora.cli._trace
import remora.discovery, remora.engines, remora.hub.client, remora.scripts, remora.trace.library, remora.workspaces
import remora.inference._policies, remora.inference._server_policy, remora.inference._weights
import remora.sandbox._probe, remora.sandbox._ruff_settings, remora.sandbox._spawner
from remora.cli import main

for source in remora.app._agents.bundled_agents().iterdir():
    if (source / "subagent.yaml").is_file():
        remora.scripts.agent_from(remora.app._agents.AgentSource(source.name, source, "bundled").read())

def job():
    # By hand: what a buffer holds, the process that is forked would hold too.
    line = b""
    while not line.endswith(b"\\n"):
        if not (byte := os.read(0, 1)):
            sys.exit()
        line += byte
    return json.loads(line)

gc.freeze()  # a forked process that collects garbage would copy every page of what was imported
while True:
    asked = job()
    if not (pid := os.fork()):
        break
    os.write(1, b"%d\\n" % pid)
    os.write(1, b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

for number, name in enumerate(("stdin", "stdout", "stderr")):
    handle = os.open(asked[name], os.O_RDONLY if number == 0 else os.O_WRONLY)
    os.dup2(handle, number)
    os.close(handle)
os.chdir(asked["cwd"])
os.environ.clear()
os.environ.update(asked["env"])
sys.argv = ["-c", *asked["args"]]
status = 0
try:
    exec(asked["before"])
    main()
except SystemExit as end:
    assert end.code is None or isinstance(end.code, int), end.code
    status = end.code or 0
except BaseException:
    sys.excepthook(*sys.exc_info())
    status = 1
# The end of an interpreter, without taking apart every module.
threading._shutdown()
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)
"""


class WarmCommand:
    """Runs the `remora` command, one call at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CODE], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run(
        self, args: tuple[str, ...], cwd: Path, env: dict[str, str], text: str, *, before: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """What the command said and how it ended, as `subprocess.run` tells it. `before`: code that is run first."""
        with tempfile.TemporaryDirectory() as folder:
            files = {name: str(Path(folder) / name) for name in ("stdin", "stdout", "stderr")}
            for name, file in files.items():
                Path(file).write_text(text if name == "stdin" else "")
            status = self._ask({"args": args, "cwd": str(cwd), "env": env, "before": before, **files})
            said = [Path(files[name]).read_bytes().decode() for name in ("stdout", "stderr")]
        return subprocess.CompletedProcess(list(args), status, *said)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._stdout.close()

    def _ask(self, job: dict[str, object]) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job).encode() + b"\n")
        pid = int(self._stdout.readline())
        if not select.select([self._stdout], [], [], TIMEOUT_S)[0]:
            os.kill(pid, signal.SIGKILL)
            self._stdout.readline()
            raise AssertionError(f"{job['args']} did not end within {TIMEOUT_S} s")
        return int(self._stdout.readline())

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout
