"""The real weights, for tests that need a real model: from the cache, or fetched once; else the test is skipped."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from remora.app._catalogue import cache_dir
from remora.errors import ConfigError
from remora.inference import DEFAULT_MODEL, bundled_catalogue, present, pull


@cache
def _found() -> Path | str:
    if "REMORA_GGUF" in os.environ:
        return Path(os.environ["REMORA_GGUF"])
    weights = bundled_catalogue()[DEFAULT_MODEL].weights
    assert weights is not None
    try:
        return present(cache_dir(os.environ), weights) or pull(cache_dir(os.environ), weights)
    except ConfigError as error:
        return error.message


def smollm2() -> Path:
    """The GGUF file of SmolLM2, or the test is skipped by name."""
    pytest.importorskip("xllamacpp", reason="the embedded model is not installed")
    found = _found()
    if isinstance(found, str):
        pytest.skip(f"weights of SmolLM2: {found}")
    return found


def qwen() -> Path:
    """The GGUF file of Qwen2.5-Coder, where it was pulled; else the test is skipped. Tests never download it."""
    pytest.importorskip("xllamacpp", reason="the embedded model is not installed")
    weights = bundled_catalogue()["qwen2.5-coder-1.5b"].weights
    assert weights is not None
    found = present(cache_dir(os.environ), weights)
    if found is None:
        pytest.skip("weights of qwen2.5-coder-1.5b: not pulled")
    return found
