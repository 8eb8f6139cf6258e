"""Projects for tests of whole runs: pytest starts in them at half the cost."""

from __future__ import annotations

import shutil
from pathlib import Path

from sandbox.boxes import no_plugins, without_plugins

SHOP = Path(__file__).parents[1] / "examples" / "shop"


def copy_shop(folder: Path, *without: str) -> Path:
    """A copy of the example project as `folder`, without what earlier runs left and without the named files."""
    ignored = shutil.ignore_patterns(".agentfs", "__pycache__", ".pytest_cache", *without)
    shutil.copytree(SHOP, folder, ignore=ignored)
    settings = folder / "pyproject.toml"
    settings.write_text(f'{settings.read_text()}addopts = "{without_plugins("xdist")}"\n')
    return folder


def leave_out_plugins(root: Path) -> None:
    """Give a project a `pytest.ini` by which pytest loads none of the plugins that are installed here."""
    (root / "pytest.ini").write_text(no_plugins("xdist"))
