"""A user's mistake ends in a sentence and a fitting exit code, never in a traceback."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remora.cli._doctor import EXTRAS, extra_packages

Remora = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["analyze", "no/such/folder"], 3, "does not exist"),
        (["analyze", ".", "-o", "lnit"], 3, "There is no operation `lnit`: expected one of"),
        (["analyze", ".", "-o", " , "], 3, "No operation was named"),
        (["analyze", ".", "--policy", "oracle"], 3, "There is no policy `oracle`: expected one of `scripted`"),
        (["analyze", ".", "--policy", "random", "--model", "m"], 3, "`--policy random` decides without a model"),
        (["analyze", ".", "--policy", "random", "--server", "ollama"], 3, "`--server` names one"),
        (["analyze", ".", "--server", "random", "--model", "m"], 3, "`random` decides without a model"),
        (["analyze", ".", "/etc"], 3, "outside"),
        (["trace", "show", "ZZZZZZZ"], 1, "ZZZZZZZ"),
        (["diff"], 1, "No run in"),
        (["accept", "../../etc/passwd"], 1, "passwd"),
        (["trace", "verify", "nothing"], 1, "nothing"),
        (["trace", "prune", "--older-than", "nan", "--dry-run"], 3, "`max_age_days` is nan: expected 0 or more"),
    ],
)
def test_a_mistake_gets_a_sentence(remora: Remora, args: list[str], code: int, words: str) -> None:
    done = remora(*args)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("error: ")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_operations_that_are_named_one_by_one_all_run(remora: Remora) -> None:
    done = remora("analyze", "shop/cart.py", "-o", "lint", "-o", "docstring,lint", "--dry-run", "--json")
    assert {job["operation"] for job in json.loads(done.stdout)["agents"]} == {"lint", "docstring"}


@pytest.mark.parametrize(
    ("yaml", "words"),
    [
        (
            "runner: {memory: {packet_size_limt: 5}}",
            "$.runner.memory.packet_size_limt: unknown key; did you mean `packet_size_limit`?",
        ),
        ("runner: {max_concurrent: 0}", "$.runner.max_concurrent: Input should be greater than or equal to 1"),
        ("runner: [", "remora.yaml: 1:"),
        ("- a", "remora.yaml: $:"),
        ("runner: {memory: {packet_size_limit: 200}}", "too small"),
        ("runner: {max_turns: 5}\nrunner: {max_errors: 3}", "2:1: not YAML: `runner` is already set in line 1"),
        ("runner: 5", "$.runner: expected an object: keys with values"),
        ("operations: {lnt: {max_turns: 3}}", "$.operations.lnt: there is no such operation; did you mean `lint`?"),
        ("operations: {weather: {enabled: true}}", "there is no such operation; expected one of `annotations`"),
    ],
)
def test_a_wrong_setting_is_named_by_its_path(shop: Path, remora: Remora, yaml: str, words: str) -> None:
    (shop / "remora.yaml").write_text(yaml)
    done = remora("analyze", "shop/inventory.py")
    assert done.returncode in (2, 3)
    assert words in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_an_operation_that_the_settings_turn_off_is_named_with_its_setting(shop: Path, remora: Remora) -> None:
    (shop / "remora.yaml").write_text("operations: {lint: {enabled: false}}")
    for flag in ("--dry-run", "--json", "--policy=scripted"):
        done = remora("analyze", "shop/cart.py", flag)
        assert done.returncode == 0
        assert "`lint` is turned off: `operations.lint.enabled` in remora.yaml" in done.stderr


def test_operations_of_other_projects_may_be_in_the_users_own_settings(
    shop: Path, remora: Remora, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "config.yaml").write_text("operations: {weather: {max_turns: 3}}")
    assert remora("analyze", "shop/cart.py", "--dry-run", env={"REMORA_CONFIG_DIR": str(own)}).returncode == 0


def test_an_empty_path_is_not_the_current_folder(remora: Remora) -> None:
    for command in (["analyze", ""], ["analyze", "shop", ""], ["watch", ""], ["trace", "import", ""]):
        done = remora(*command)
        assert (done.returncode, done.stdout) == (2, "")
        assert "it is empty: expected a file or a folder" in done.stderr


def test_a_dry_run_tells_the_agent_of_a_whole_file_from_that_of_its_other_lines(remora: Remora, by_rule: None) -> None:
    lines = remora("analyze", "shop/cart.py", "--dry-run").stdout.splitlines()
    assert lines[:2] == [" lint        shop/cart.py as a whole", " lint        shop/cart.py"]


def test_a_check_that_failed_has_unknown_counts(shop: Path, remora: Remora) -> None:
    (shop / "pyproject.toml").write_text("[tool.ruff\n")
    done = remora("analyze", "shop/cart.py:load_cart", "--policy", "scripted")
    assert done.returncode == 2
    assert "Verdict failed: unknown lint_errors_remaining" in done.stdout
    assert "None" not in done.stdout


def test_escapes_in_displayed_data_never_reach_the_terminal(shop: Path, remora: Remora) -> None:
    name = "evil\x1b[2J\x07.py"
    (shop / name).write_text("import os\n")
    shown = remora("analyze", name).stdout + remora("trace", "ls").stdout + remora("diff").stdout
    assert "evil" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_a_file_that_is_not_python_text_is_skipped_and_told(shop: Path, remora: Remora) -> None:
    (shop / "odd").mkdir()
    (shop / "odd" / "latin.py").write_bytes("# caf\xe9\n".encode("latin-1"))
    (shop / "odd" / "utf.py").write_text("import os\n")
    done = remora("analyze", "odd")
    assert done.returncode == 0
    assert "latin.py" in done.stderr


def test_the_version_is_told(remora: Remora) -> None:
    assert remora("--version").stdout.startswith("remora 0.")
    as_module = [sys.executable, "-m", "remora", "--version"]
    done = subprocess.run(as_module, capture_output=True, text=True, check=True)
    assert done.stdout == remora("--version").stdout


def test_doctor_tells_what_is_there(remora: Remora) -> None:
    done = remora("doctor")
    assert done.returncode == 0
    assert "✓ [agents]" in done.stdout
    assert "OS sandbox" in done.stdout
    assert "remora model pull functiongemma-270m --from FILE" in done.stdout


def test_doctor_knows_every_extra_of_the_distribution_and_the_packages_behind_it() -> None:
    declared = set(importlib.metadata.metadata("remora-agents").get_all("Provides-Extra") or ())
    assert set(EXTRAS) == declared
    assert "starlette" in extra_packages("view")
    assert all(extra_packages(name) for name in EXTRAS)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--engine", "nosuch"), "`--engine` (the setting `engine.name`) should be `local` or `ray`"),
        (("--max-turns", "0"), "`--max-turns` (the setting `runner.max_turns`) should be greater than or equal to 1"),
    ],
)
def test_a_wrong_value_is_told_by_the_name_of_its_flag(words: tuple[str, str], sentence: str, remora: Remora) -> None:
    done = remora("analyze", "shop", *words)
    assert (done.returncode, done.stdout) == (3, "")
    assert sentence in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_an_engine_that_is_not_installed_is_told_before_anything_is_planned(remora: Remora) -> None:
    done = remora("analyze", "shop", "--engine", "ray")
    assert (done.returncode, done.stdout) == (3, "")
    assert "remora-agents[fleet]" in done.stderr


def test_runs_that_are_recorded_in_a_folder_below_are_named(
    analyzed: Callable[[str], Any], remora: Remora, shop: Path
) -> None:
    analyzed("shop/cart.py")
    above = shop.parent
    assert "add `-C shop`" in remora("trace", "ls", cwd=above).stderr
    assert "add `-C shop`" in remora("trace", "show", "ABCDEFG", cwd=above).stderr
    assert "-C" not in remora("trace", "ls").stderr


def test_a_list_of_nothing_says_where_was_looked(remora: Remora, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = remora("trace", "ls", cwd=empty)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"nothing is recorded in `{empty / '.agentfs'}` yet" in done.stderr


def test_a_command_of_an_extra_that_is_missing_says_which_to_install(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['tree_sitter'] = None; from remora.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hide, "analyze", ".", "-o", "lint"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr == (
        "error: `tree_sitter`, which this command needs, is not installed\n"
        'hint: Install it with `pip install "remora-agents[agents]"`\n'
    )
