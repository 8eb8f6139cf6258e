from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from remora.scripts import Script, ScriptPool, load


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[ScriptPool]:
    async with ScriptPool(max_processes=2) as opened:
        yield opened


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Script]:
    """Writes a `.pym` file and loads it."""

    def make(text: str, name: str = "tool") -> Script:
        path = tmp_path / f"{name}.pym"
        path.write_text(text)
        return load(path)

    return make
