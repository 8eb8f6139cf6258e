"""The real weights, for tests that need a real model: from the cache, or fetched once; else the test is skipped."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from remora.app._models import cache_dir
from remora.errors import ConfigError
from remora.inference import present, pull


@cache
def _found() -> Path | str:
    if "REMORA_GGUF" in os.environ:
        return Path(os.environ["REMORA_GGUF"])
    try:
        return present(cache_dir(os.environ)) or pull(cache_dir(os.environ))
    except ConfigError as error:
        return error.message


def smollm2() -> Path:
    """The GGUF file of SmolLM2, or the test is skipped by name."""
    pytest.importorskip("xllamacpp", reason="the embedded model is not installed")
    found = _found()
    if isinstance(found, str):
        pytest.skip(f"weights of SmolLM2: {found}")
    return found
