"""Models by name: those of the package, and those that a user adds in their own settings folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import remora
from inference.fakes import FakeServer, says
from inference.real import smollm2
from remora.app import ModelHere, best_fit, catalogue, list_models, measure_models, models_here
from remora.app._catalogue import chosen_model, needs_weights, pull_model
from remora.app._models import FUNCTIONGEMMA, model_deciders
from remora.app._speed import PATIENCE_S
from remora.config import ServerConfig
from remora.errors import ConfigError
from remora.inference import Endpoint, ServerPolicy, Speed, bundled_catalogue, memory_needed, preset_of
from remora.ports import Prompt


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own catalogue, and an empty cache."""
    monkeypatch.setenv("REMORA_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("REMORA_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "config").mkdir(mode=0o700)
    return tmp_path / "config" / "models.yaml"


def test_every_bundled_model_has_a_licence_and_every_download_a_digest() -> None:
    for name, entry in bundled_catalogue().items():
        assert entry.license, name
        assert entry.attribution, name
        assert bool(entry.sources) == bool(entry.sha256 and entry.size), name
        weights = entry.weights
        assert weights is not None
        assert entry.attribution in weights.notice
        assert ("TERMS AND CONDITIONS" in weights.notice) == (entry.license == "Apache-2.0")


def test_a_user_adds_models_and_replaces_bundled_ones(own: Path) -> None:
    own.write_text("models: {mine: {path: mine.gguf, window: 2048}, smollm2-135m: {path: /other.gguf}}\n")
    found = catalogue()
    assert found["mine"].path == own.parent / "mine.gguf"
    assert found["smollm2-135m"].path == Path("/other.gguf")
    assert "qwen2.5-coder-1.5b" in found
    rows = {row.name: row for row in list_models()}
    assert (rows["mine"].state, rows["mine"].origin) == ("missing", "user")
    (own.parent / "mine.gguf").write_bytes(b"GGUF")
    assert chosen_model(ServerConfig(model="mine")).file == own.parent / "mine.gguf"
    assert not needs_weights(ServerConfig(model="mine"))
    with pytest.raises(ConfigError, match="used where it is"):
        pull_model("mine")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: {m: {path: x.gguf, colour: red}}", "unknown key"),
        ("models: {m: {}}", "either `file`, the name in the cache, or `path`"),
        ("models: {m: {file: ../../x.gguf}}", "pattern"),
        ("models: {m: {file: x.gguf, sources: [{url: 'https://x/y'}]}}", "needs `sha256` and `size`"),
        ("models: {m: {file: x.gguf, sources: [{url: 'http://x/y'}]}}", "https"),
        ("models: {m: {file: x.gguf, sources: [{wheel: 'x>=1', member: y}]}}", "pinned"),
        ("models: {'../x': {path: x.gguf}}", "cannot be a model's name"),
        ("models: [", "not YAML"),
    ],
)
def test_a_mistake_in_the_catalogue_is_told_with_its_place(own: Path, text: str, said: str) -> None:
    own.write_text(text)
    with pytest.raises(ConfigError) as told:
        catalogue()
    assert said in told.value.message
    assert "models.yaml" in told.value.message


def test_a_repository_cannot_add_a_model(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "models.yaml").write_text("models: {theirs: {path: x.gguf}}\n")
    monkeypatch.chdir(tmp_path / "project")
    assert "theirs" not in catalogue()


def test_a_model_is_named_by_the_catalogue_or_by_its_file(own: Path) -> None:
    assert chosen_model(ServerConfig()).name == "smollm2-135m"
    assert chosen_model(ServerConfig(model="qwen2.5-coder-1.5b")).entry.packet_tokens == 3000
    mine = chosen_model(ServerConfig(model="~/models/mine.gguf"))
    assert (mine.name, mine.file) == ("mine", Path("~/models/mine.gguf").expanduser())
    with pytest.raises(ConfigError, match="no embedded model `qwen3:4b`") as told:
        chosen_model(ServerConfig(model="qwen3:4b"))
    assert "--server" in (told.value.hint or "")


def test_a_wrong_name_on_the_command_line_is_a_sentence_and_ls_tells_every_state(own: Path, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    environment = {name: value for name, value in os.environ.items() if name != "REMORA_SERVER__SERVER"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "remora", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)

    refused = run("analyze", "a.py", "--model", "nosuch")
    assert refused.returncode == 3
    assert refused.stderr.startswith("error: There is no embedded model `nosuch`: the catalogue has `smollm2-135m`")
    listed = json.loads(run("model", "ls", "--json").stdout)
    assert {row["state"] for row in listed} == {"missing"}
    by_file = run("model", "pull", "functiongemma-270m")
    assert "--from FILE" in by_file.stderr


async def test_functiongemma_is_asked_as_its_documentation_says(own: Path) -> None:
    own.write_text(f"models: {{gemma: {{path: {smollm2()}, calls: functiongemma, window: 512}}}}\n")
    async with model_deciders(ServerConfig(model="gemma")) as found:
        assert (found.calling, found.record["mode"], found.record["model"], found.window) == (
            "native", "tools", "gemma", 512
        )  # fmt: skip
    reply = says("<start_function_call>call:stop{why:<escape>done<escape>}<end_function_call>")
    tool = remora.context.contracts.ToolSpec(name="stop", parameters={"type": "object", "properties": {"why": {}}})
    with FakeServer(reply) as server:
        endpoint = Endpoint(preset_of(server.url)[0], server.url, model="m", mode="tools", **FUNCTIONGEMMA)
        async with ServerPolicy(endpoint) as policy:
            decision = await policy.decide(Prompt(({"role": "system", "content": "s"},), (tool,)))
    assert [(call.tool, call.args) for call in decision.calls] == [("stop", {"why": "done"})]
    assert server.asked[0].body["messages"][0]["role"] == "developer"
    assert server.asked[0].body["stop"] == ["<start_function_response>"]


@pytest.mark.faults
def test_a_measurement_is_kept_and_told_again(own: Path) -> None:
    own.write_text(f"models: {{tiny: {{path: {smollm2()}, window: 1024}}}}\n")
    (before,) = [model for model in models_here() if model.path]
    assert before.speed is None
    told: list[str] = []
    measure_models(told.append)
    (after,) = [model for model in models_here() if model.path]
    assert told == ["tiny"]
    assert after.speed is not None
    assert after.speed.reads > 0 < after.speed.writes
    assert smollm2().stat().st_size < after.memory == memory_needed(smollm2(), 1024)
    Path(os.environ["REMORA_CACHE_DIR"], "speed.json").write_text("[]")
    assert [model.speed for model in models_here()] == [None] * len(models_here())


GB = 10**9
SLOW = Speed(reads=1, writes=1, loads_s=1, threads=1, busy=0)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8), st.booleans()), max_size=6), st.integers(0, 8))
def test_the_model_that_fits_is_here_fits_the_memory_and_is_the_largest_such(
    given: list[tuple[bool, int, bool]], free: int
) -> None:
    models = [
        ModelHere(str(n), Path("x") if here else None, size * GB, SLOW if slow else None)
        for n, (here, size, slow) in enumerate(given)
    ]
    best = best_fit(models, free * GB)
    fits = [m for m in models if m.path and m.memory <= free * GB and (m.warm_s or 0) <= PATIENCE_S]
    assert (best is None) == (not fits)
    assert best is None or best.memory == max(model.memory for model in fits)
