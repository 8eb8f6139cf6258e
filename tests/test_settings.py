"""Which setting wins, and that a repository cannot say where code and keys go."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

import remora
from remora.app._project import project_root
from remora.app._settings import read_settings
from remora.config import NOT_FOR_REPOSITORIES, Config, config_values, setting_paths
from remora.errors import ConfigError, DefinitionError
from remora.repository import FOR_REPOSITORIES
from remora.settings import Layer, environment_layer, flag_layer, merged, nested


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "config.yaml").write_text("server: {server: ollama}\nrunner: {max_turns: 9, max_errors: 2}\n")
    return {"REMORA_CONFIG_DIR": str(folder)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "remora.yaml").write_text("runner: {max_turns: 7, memory: {packet_size_limit: 700}}\n")
    return folder


def test_flag_beats_environment_beats_project_beats_own_file(own: dict[str, str], root: Path) -> None:
    env = own | {"REMORA_RUNNER__MAX_TURNS": "5"}
    assert read_settings(root, own, {}).config.runner.max_turns == 7
    assert read_settings(root, env, {}).config.runner.max_turns == 5
    assert read_settings(root, env, {"runner.max_turns": 3, "server.model": None}).config.runner.max_turns == 3
    merged_config = read_settings(root, env, {}).config
    assert merged_config.runner.max_errors == 2
    assert merged_config.runner.memory.packet_size_limit == 700
    assert merged_config.server.server == "ollama"


def test_every_value_knows_who_gave_it(own: dict[str, str], root: Path) -> None:
    env = own | {"REMORA_WATCH__DEBOUNCE_MS": "50"}
    found = {item.path: item for item in read_settings(root, env, {"event_stream.sync": "off"}).listed()}
    assert found["event_stream.sync"].origin == "flag"
    assert found["watch.debounce_ms"].origin == "environment"
    assert found["runner.max_turns"].origin == "remora.yaml"
    assert found["runner.max_errors"].origin.endswith("config.yaml")
    assert found["runner.retries"].origin == "default"


@pytest.mark.parametrize("block", ["server: {server: 'http://evil.example'}", "sandbox: {allow_unsandboxed: true}"])
def test_a_repository_may_not_say_where_code_and_keys_go(root: Path, own: dict[str, str], block: str) -> None:
    (root / "remora.yaml").write_text(block)
    with pytest.raises(DefinitionError, match="a repository may not set this"):
        read_settings(root, own, {})


@pytest.mark.parametrize("text", ["- 1", "runner: 3", "runner: {max_turnz: 3}", "nobody: 1", "runner: {max_turns: 0}"])
def test_a_file_that_makes_no_sense_is_refused_by_name(text: str) -> None:
    with pytest.raises(DefinitionError, match=r"remora\.yaml"):
        config_values(text, "remora.yaml", of_repository=True)


def test_an_unknown_key_gets_a_suggestion() -> None:
    with pytest.raises(DefinitionError, match="did you mean `max_turns`"):
        config_values("runner: {max_turnz: 3}", "remora.yaml", of_repository=True)


def test_a_bad_variable_is_named_as_the_environment() -> None:
    with pytest.raises(ConfigError, match="environment"):
        merged([environment_layer({"REMORA_RUNNER__MAX_TURNS": "many"})])


def test_variables_that_say_where_things_lie_are_no_settings() -> None:
    assert environment_layer({"REMORA_CACHE_DIR": "/x", "REMORA_CONFIG_DIR": "/y", "HOME": "/z"}).values == {}
    assert environment_layer({"REMORA_AGENTS_DIR": "mine"}).values == {"agents_dir": "mine"}
    with pytest.raises(ConfigError, match="did you mean `runner`"):
        merged([environment_layer({"REMORA_RUNER__MAX_TURNS": "3"})])


def test_an_operation_keeps_what_an_upper_layer_does_not_name() -> None:
    low = Layer("low", {"operations": {"lint": {"max_turns": 4}, "test": {"enabled": False}}})
    high = Layer("high", {"operations": {"lint": {"priority": 2}}})
    operations = merged([low, high]).config.operations
    assert (operations["lint"].max_turns, operations["lint"].priority, operations["test"].enabled) == (4, 2, False)


def test_flags_that_were_not_given_change_nothing() -> None:
    assert flag_layer({"runner.max_turns": None}).values == {}


def as_yaml(path: str, value: Any) -> str:
    return orjson.dumps(nested(path.replace("*", "lint").split("."), value)).decode()  # JSON is YAML


def test_every_setting_has_a_decision_on_whether_a_repository_may_set_it() -> None:
    blocks = {path for path in FOR_REPOSITORIES if path in Config.model_fields and path != "agents_dir"}
    decided = {path for path in setting_paths() if path in FOR_REPOSITORIES or path.split(".")[0] in blocks}
    assert set(setting_paths()) - decided == set(), "decide in `remora/repository.py`"
    assert set(FOR_REPOSITORIES) - set(setting_paths()) == blocks, "these settings do not exist"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("event_stream.sync", "off"),
        ("event_stream.sync", "turn"),
        ("runner.max_concurrent", 1_000),
        ("runner.max_concurrent", "1000"),
        ("runner.memory.enabled", False),
        ("runner.memory.packet_size_limit", 1_000_000),
        ("runner.memory.history_limit", 1_000_000),
        ("runner.max_errors", 5_000),
        ("runner.max_repeats", 5_000),
        ("runner.retries", 50),
        ("workspace.max_file_bytes", 1024**3),
        ("workspace.max_files", 50_000),
        ("watch.debounce_ms", 50_000),
        ("discovery.exclude", ["x"] * 5_000),
        ("agents_dir", "/elsewhere"),
        ("agents_dir", "a/../../b"),
        ("discovery.queries", "/elsewhere"),
        ("server.gguf", "/elsewhere"),
        ("sandbox.allow_unsandboxed", True),
    ],
)
def test_what_weakens_a_run_or_fills_the_machine_is_for_the_user_alone(path: str, value: Any) -> None:
    text = as_yaml(path, value)
    with pytest.raises(DefinitionError, match=r"a repository may") as caught:
        config_values(text, "remora.yaml", of_repository=True)
    assert f"$.{path.split('.')[0]}" in str(caught.value)
    assert config_values(text, "config.yaml", of_repository=False)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("runner.max_concurrent", 1_000_000),
        ("runner.deadline_s", 1e300),
        ("runner.deadline_s", float("inf")),
        ("runner.total_deadline_s", 1e300),
        ("runner.max_turns", 10**9),
        ("runner.retries", 10**9),
        ("runner.memory.packet_size_limit", 10**12),
        ("operations.*.max_turns", 10**9),
        ("workspace.max_file_bytes", 10**15),
        ("workspace.max_files", 10**12),
        ("watch.debounce_ms", 10**12),
        ("server.timeout_s", 1e300),
        ("server.max_tokens", 10**12),
        ("server.threads", 10**6),
        ("server.seed", 2**63),
    ],
)
def test_an_absurd_number_is_refused_for_everyone(path: str, value: Any) -> None:
    text = as_yaml(path, value).replace("null", ".inf")  # JSON has no word for it
    with pytest.raises(DefinitionError, match=r"less than or equal|finite"):
        config_values(text, "config.yaml", of_repository=False)


def test_the_defaults_are_what_a_repository_may_set() -> None:
    default = Config().model_dump(mode="json")
    for path in NOT_FOR_REPOSITORIES:
        *blocks, name = path.split(".")
        inner = default
        for block in blocks:
            inner = inner[block]
        del inner[name]
    config_values(orjson.dumps(default).decode(), "remora.yaml", of_repository=True)


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "large", "circle"])
def test_a_settings_file_that_is_not_the_projects_own_is_refused_and_nothing_of_it_is_quoted(
    root: Path, own: dict[str, str], kind: str, tmp_path: Path
) -> None:
    file, private = root / "remora.yaml", tmp_path / "private"
    private.write_text("hunter2: {hunter2: hunter2}\n")
    file.unlink()
    if kind == "link":
        file.symlink_to(private)
    elif kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "circle":
        file.symlink_to(file)
    else:
        file.write_text("# hunter2\n" * 100_000)
    with pytest.raises(ConfigError) as caught:
        read_settings(root, own, {})
    assert "remora.yaml" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_settings_file_may_be_a_link_inside_the_project(root: Path, own: dict[str, str]) -> None:
    (root / "remora.yaml").rename(root / "settings.yaml")
    (root / "remora.yaml").symlink_to("settings.yaml")
    assert read_settings(root, own, {}).config.runner.max_turns == 7


def test_your_own_settings_may_be_a_link_but_not_somebody_elses(root: Path, own: dict[str, str]) -> None:
    file = Path(own["REMORA_CONFIG_DIR"]) / "config.yaml"
    file.rename(root / "mine.yaml")
    file.symlink_to(root / "mine.yaml")
    assert read_settings(root, own, {}).config.server.server == "ollama"
    (root / "mine.yaml").chmod(0o666)
    with pytest.raises(ConfigError, match="others may write"):
        read_settings(root, own, {})


def test_settings_may_stand_in_pyproject_below_those_of_remora_yaml(root: Path, own: dict[str, str]) -> None:
    table = "[project]\nname = 'x'\n[tool.remora.runner]\nmax_turns = 6\nretries = 1\n"
    (root / "pyproject.toml").write_text(table)
    found = read_settings(root, own, {})
    assert (found.config.runner.max_turns, found.config.runner.retries) == (7, 1)
    assert {item.path: item.origin for item in found.listed()}["runner.retries"] == "pyproject.toml"


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("[tool.remora.server]\nserver = 'http://evil.example'", "a repository may not set this"),
        ("[tool.remora.runer]\nmax_turns = 1", "runer"),
        ("[tool.remora]\nx = ", "not TOML"),
        ("[tool.remora]\nrunner = 3", "runner"),
    ],
)
def test_pyproject_is_held_to_the_rules_of_a_repository(table: str, told: str, root: Path, own: dict[str, str]) -> None:
    (root / "pyproject.toml").write_text(table)
    with pytest.raises(DefinitionError, match=told):
        read_settings(root, own, {})


@pytest.mark.parametrize("text", ["this is no TOML", "[tool.other]\nx = 1", "[tool.remora-else"])
def test_a_pyproject_without_our_table_is_none_of_our_business(text: str, root: Path, own: dict[str, str]) -> None:
    (root / "pyproject.toml").write_text(text)
    if text.endswith("else"):
        (root / "pyproject.toml").write_text(text + "]\nx = 1\n")
    assert read_settings(root, own, {}).config.runner.max_turns == 7


def test_a_table_marks_the_root_and_names_no_trusted_folder_of_agents(tmp_path: Path) -> None:
    inner = tmp_path / "packages" / "one"
    (inner / "src").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    assert project_root(inner / "src") == tmp_path
    (inner / "pyproject.toml").write_text("[tool.remora]\nagents_dir = 'link'\n")
    (inner / "link").symlink_to(tmp_path / "elsewhere")
    assert project_root(inner / "src") == inner
    with pytest.raises(ConfigError, match="lies outside the project"):
        remora.open_project(inner).agents.folder()
