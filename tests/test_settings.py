"""Which setting wins, and that a repository cannot say where code and keys go."""

from __future__ import annotations

from pathlib import Path

import pytest

from remora.app._settings import read_settings
from remora.config import config_values
from remora.errors import ConfigError, DefinitionError
from remora.settings import Layer, environment_layer, flag_layer, merged


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
