"""Every command that reads says the same about a Postgres store as about the files that it was copied from."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postgres import Server
from remora.app import copy_store

pytestmark = pytest.mark.fleet
Remora = Callable[..., subprocess.CompletedProcess[str]]

COMMANDS = """
trace ls
trace ls --json
trace ls --run {run}
trace show {agent}
trace show {agent} --json
trace show {run}
trace tail {agent}
trace tail {run} --json
trace search E722
trace search lint --json
trace search errors --operation lint
trace get index:node:{node}
trace get index:run:{run}
trace replay {agent}
trace replay {agent} --to 1
trace explain lint_errors_remaining {agent}
trace tokens {agent}
trace transcript {agent} --full --json
trace escalate {agent}
trace report
trace report {agent} --format html
trace report --format json
trace report --format sarif
trace diff {agent} {other}
trace export --format otel
trace export --format atif
trace export --format openai
trace export --format csv
trace what-if
trace prune --older-than 0 --dry-run
diff
diff --json
trace show NOSUCH
"""


@pytest.fixture
def stores(analyzed: Callable[[str], Any], shop: Path, postgres: Server) -> tuple[dict[str, str], str]:
    """Names of what a run recorded, and the URL of a store with a copy of it."""
    told = analyzed("shop/cart.py")
    names = {"run": told["run_id"], "agent": told["agents"][-1]["agent_id"], "other": told["agents"][0]["agent_id"]}
    names["node"] = told["agents"][-1]["node_id"]
    url = postgres.new_url()
    done = copy_store(str(shop / ".agentfs"), url, lambda _done, _total: None)
    assert not done.refused
    return names, url


def test_every_reading_command_says_the_same_on_either_store(
    remora: Remora, stores: tuple[dict[str, str], str]
) -> None:
    names, url = stores
    for line in COMMANDS.strip().splitlines():
        words = line.format(**names).split()
        files, stored = remora(*words), remora(*words, "--store", url)
        assert "Traceback" not in files.stderr, line
        assert (stored.returncode, stored.stdout, stored.stderr) == (files.returncode, files.stdout, files.stderr), line


def test_a_store_verifies_as_the_files_do_and_says_where_they_are(
    remora: Remora, stores: tuple[dict[str, str], str]
) -> None:
    def verified(*where: str) -> list[tuple[str, ...]]:
        done = remora("trace", "verify", "--json", *where)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["streams"]
        return sorted((each["status"], str(each["events"]), Path(each["file"]).stem) for each in found)

    _, url = stores
    assert verified("--store", url) == verified()
    assert f"In the store {url}" in remora("trace", "verify", "--store", url).stdout
