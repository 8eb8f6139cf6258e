"""Run pytest again, in another process inside the sandbox, with other environment variables and plugins."""

import contextlib
import importlib.util
import os
import resource
import signal
import subprocess
import sys
import time

INSIDE = "REMORA_INSIDE"
"""Set in every run that another run has started."""


def run_again(words, config, folders, environment, work, until):
    """What pytest printed, and whether it ended by itself. The project's own options apply as in this run.

    It is stopped after `work` seconds of CPU time, so that a busy machine gives the same result, or at `until`.
    """
    paths = [os.path.abspath(one) for one in folders]
    paths += [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    env = {**os.environ, **environment, INSIDE: "1", "PYTHONPATH": os.pathsep.join(paths)}
    argv = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "--color=no"]
    argv += [f"-o{one}" for one in config.option.override_ini or []]
    argv += ["-n0"] if importlib.util.find_spec("xdist") else []
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
    child = subprocess.Popen([*argv, *words], env=env, start_new_session=True, **pipes)
    if hasattr(resource, "prlimit"):
        resource.prlimit(child.pid, resource.RLIMIT_CPU, (work, work))
    try:
        said = child.communicate(timeout=max(0.1, until - time.monotonic()))[0].decode(errors="replace")
        return said, child.returncode not in (-signal.SIGXCPU, -signal.SIGKILL)
    except subprocess.TimeoutExpired:
        return "", False
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def is_inside():
    """Whether `run_again` has started this run."""
    return bool(os.environ.get(INSIDE))
