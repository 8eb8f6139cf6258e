"""Adapters: what a file says about itself, which one is used, and what the stream says about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.real import smollm2
from inference.tiny import gguf as gguf_bytes
from inference.tiny import lora, tokenizer_pairs
from remora.app._adapters import Adapters
from remora.app._models import model_deciders
from remora.config import ServerConfig
from remora.context.render import RENDERERS
from remora.errors import ConfigError
from remora.inference import Adapter, EmbeddedPolicy, EmbeddedServer, bundled_adapter, read_adapter, sha256_of
from remora.inference import _adapters as bundling
from remora.subagent import SubagentDefinition
from remora.twotrack import PromptSettings

PAIRS = {"general.type": "adapter", "adapter.type": "lora", "remora.calling": "text"}


def adapter(path: Path, **pairs: str) -> Path:
    path.write_bytes(gguf_bytes(PAIRS | {f"remora.{key.replace('_', '.')}": value for key, value in pairs.items()}))
    return path


def definition(name: str) -> SubagentDefinition:
    return SubagentDefinition.model_validate(
        {"name": name, "goal": "g", "system_prompt": "s", "tools": [{"name": "look", "description": "d"}]}
    )


def test_an_adapter_says_what_it_was_trained_for(tmp_path: Path) -> None:
    path = adapter(tmp_path / "a.gguf", renderer="json-2,markdown-2", base_sha256="sha256:ab")
    found = read_adapter(path)
    assert (found.renderers, found.base) == (("json-2", "markdown-2"), "sha256:ab")
    assert found.record(1.0) == {
        "file": "a.gguf", "sha256": sha256_of(path), "scale": 1.0, "renderers": ["json-2", "markdown-2"]
    }  # fmt: skip


def test_what_is_no_adapter_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(gguf_bytes(tokenizer_pairs()))
    (tmp_path / "text.gguf").write_text("no")
    for name, why in (
        ("model.gguf", "is not an adapter"),
        ("text.gguf", "not a GGUF"),
        ("none.gguf", "cannot be read"),
    ):
        with pytest.raises(ConfigError, match=why):
            read_adapter(tmp_path / name)


def test_the_bundled_adapter_is_used_for_its_own_base_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundling, "BUNDLED", tmp_path)
    assert bundled_adapter() is None
    assert Adapters.of(ServerConfig(), "ab").paths == []
    adapter(tmp_path / "decide.gguf", base_sha256="sha256:ab")
    assert Adapters.of(ServerConfig(), "ab").paths == [tmp_path / "decide.gguf"]
    assert Adapters.of(ServerConfig(), "cd").paths == []
    adapter(tmp_path / "decide-larger.gguf", base_sha256="sha256:cd")
    assert Adapters.of(ServerConfig(), "ab").paths == [tmp_path / "decide.gguf"]
    assert Adapters.of(ServerConfig(), "cd").paths == [tmp_path / "decide-larger.gguf"]
    assert Adapters.of(ServerConfig(adapter="requests"), "cd").paths == []
    assert Adapters.of(ServerConfig(adapter="none"), "ab").paths == []
    assert Adapters.of(ServerConfig(adapter=None), "ab").paths == []


def test_an_agent_may_have_the_adapter_for_requests() -> None:
    default = bundled_adapter()
    assert default
    weights = default.base
    found = Adapters.of(ServerConfig(adapters={"desk": "requests"}), weights)
    assert [path.name for path in found.paths] == ["decide.gguf", "requests.gguf"]
    assert found.for_operation("desk") == Adapter(1)
    assert found.for_operation("lint") == Adapter(0)
    assert found.describe()["adapters"]["desk"]["file"] == "requests.gguf"


def test_an_operation_may_have_an_adapter_of_its_own(tmp_path: Path) -> None:
    one, two = adapter(tmp_path / "one.gguf"), adapter(tmp_path / "two.gguf", renderer="json-2")
    found = Adapters.of(ServerConfig(adapter=one, adapters={"lint": two, "test": "none"}), "ab")
    assert found.paths == [one, two]
    assert found.for_operation("docstring") == Adapter(0)
    assert found.for_operation("lint") == Adapter(1)
    assert found.for_operation("test") is None
    told = found.describe()
    assert told["adapter"]["sha256"] == sha256_of(one)
    assert (told["adapters"]["lint"]["sha256"], told["adapters"]["test"]) == (sha256_of(two), {})


def test_prompts_that_an_adapter_was_not_trained_for_are_a_notice() -> None:
    manner = PromptSettings(limit=1000)
    trained = {"file": "a.gguf", "renderers": [RENDERERS["json"]]}
    other = {"file": "b.gguf", "renderers": ["json-0"]}
    assert manner.misfits({}, "lint") == []
    assert manner.misfits({"adapter": trained}, "lint") == []
    (notice,) = manner.misfits({"adapter": other}, "lint")
    assert notice.code == "adapter_renderer"
    assert "json-0" in notice.message
    assert manner.misfits({"adapter": other, "adapters": {"lint": trained}}, "lint") == []
    assert manner.misfits({"adapter": other, "adapters": {"lint": {}}}, "lint") == []


def test_weights_that_an_adapter_was_not_trained_on_are_a_notice(tmp_path: Path) -> None:
    path = adapter(tmp_path / "own.gguf", base_sha256="sha256:ab")
    assert PromptSettings(limit=1000).misfits(Adapters.of(ServerConfig(adapter=path), "ab").describe(), "lint") == []
    (notice,) = PromptSettings(limit=1000).misfits(Adapters.of(ServerConfig(adapter=path), "cd").describe(), "lint")
    assert notice.code == "adapter_weights"
    assert "own.gguf" in notice.message
    assert "sha256:ab" in notice.message


def test_an_adapter_that_the_server_does_not_have_is_refused(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / "model.gguf", adapters=[tmp_path / "one.gguf"])
    with pytest.raises(ConfigError, match="Adapter 1 is not loaded"):
        EmbeddedPolicy(server, adapter=Adapter(1))


async def test_each_operation_is_asked_with_its_own_adapter_and_the_stream_names_it(tmp_path: Path) -> None:
    gguf = smollm2()
    path = tmp_path / "loud.gguf"
    path.write_bytes(lora(fill=3.0))
    async with model_deciders(ServerConfig(gguf=gguf, adapter="none", adapters={"lint": path})) as found:
        assert found.record["adapters"]["lint"] == {"file": "loud.gguf", "sha256": sha256_of(path), "scale": 1.0}
        assert "adapter" not in found.record
        lint, other = found.policy(definition("lint")), found.policy(definition("docstring"))
        assert found.policy(definition("lint")) is lint
        assert isinstance(lint, EmbeddedPolicy)
        assert isinstance(other, EmbeddedPolicy)
        assert lint._adapters() == {"lora": [{"id": 0, "scale": 1.0}]}
        assert other._adapters() == {"lora": [{"id": 0, "scale": 0.0}]}
