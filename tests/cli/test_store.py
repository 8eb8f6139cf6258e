"""`remora store`, through the real command."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from postgres import Server

Remora = Callable[..., subprocess.CompletedProcess[str]]


def test_the_line_that_names_a_new_store_can_be_pasted_into_a_shell(
    remora: Remora, tmp_path: Path, postgres: Server
) -> None:
    url = f"{postgres.url()}?sslmode=prefer&schema=pasted"
    said = remora("store", "init", url, cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    line = said.stdout.splitlines()[-1].removeprefix("Use it: ")
    shell = ["sh", "-c", f'{line}; printf %s "$REMORA_RUNNER__MEMORY__TRACE_STORE"']
    assert subprocess.run(shell, capture_output=True, text=True, check=True).stdout == url


def test_the_index_of_a_store_is_built_again_by_a_command(remora: Remora, tmp_path: Path, postgres: Server) -> None:
    url = postgres.new_url()
    missing = remora("store", "reindex", url, cwd=tmp_path)
    assert missing.returncode == 3 and "There is no trace store" in missing.stderr
    assert remora("store", "init", url, cwd=tmp_path).returncode == 0
    assert remora("store", "reindex", url, cwd=tmp_path).stdout == "Indexed 0 events\n"
