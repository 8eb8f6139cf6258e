"""The version of ruff that the project runs, and rules that are newer: there, nobody is asked to follow them."""

import re

from settings import join, read_text

PLACES = (
    "pyproject.toml", ".pre-commit-config.yaml", "uv.lock", "poetry.lock", "pdm.lock", "tox.ini", "setup.cfg",
    "ruff.toml", ".ruff.toml", "requirements-dev.txt", "requirements_dev.txt", "dev-requirements.txt",
    "requirements.txt", "requirements/dev.txt", "requirements/lint.txt",
)  # fmt: skip
"""Files that say which ruff a project runs."""
PINS = (
    r"(?m)(?:^|[\s\"'])ruff\s*(?:>=?\s*[\d.]+\s*,\s*)?(==|~=|<)\s*(\d+(?:\.\d+)+)",  # a requirement
    r"(?m)^ruff\s*=\s*\"(==|~=|~|\^|<|)\s*(\d+(?:\.\d+)+)",  # one of poetry
    r"ruff-pre-commit[\"']?\s*\n(?:\s*#[^\n]*\n)*\s*rev:\s*[\"']?v?()(\d+(?:\.\d+)+)",  # a hook
    r"name = \"ruff\"\r?\nversion = \"()(\d+(?:\.\d+)+)",  # a lock file
    r"(?m)^\s*required-version\s*=\s*[\"'](==|~=|<)?\s*(\d+(?:\.\d+)+)",  # ruff's own setting
)
"""A sign, and a version."""
LAST = 1_000_000
"""Stands for any later part of a version."""
NEWEST = {}
"""By folder, the newest ruff that the project may run; none if it says nothing."""


async def newer_rules(since, codes, place):
    """Which of these rules are newer than the ruff that the project pins; `since` has the version of each."""
    if place not in NEWEST:
        NEWEST[place] = await find_newest(place)
    newest = NEWEST[place]
    return [code for code in codes if newest and version_of(since.get(code, "0")) > newest]


async def find_newest(place):
    """The oldest of the versions that the settings beside the linter's, and those of the project, pin."""
    folders = dict.fromkeys((place, ""))
    texts = [await read_text(join(folder, name)) for folder in folders for name in PLACES]
    found = [newest_of(sign, said) for text in texts for pin in PINS for sign, said in re.findall(pin, text)]
    return min(found) if found else ()


def newest_of(sign, said):
    """The newest version that a requirement allows: `~=0.4.1` and `^0.4.1` mean any 0.4, `<0.5` all before it."""
    parts = [int(part) for part in said.split(".")][:3]
    if sign == "<":
        return (*parts, -1)
    if sign == "^" or (sign == "~=" and len(parts) == 2):
        return (*parts[: 1 if parts[0] or sign == "~=" else 2], LAST)
    return (*parts[:2], LAST) if sign in ("~=", "~") or len(parts) == 2 else (*parts,)


def version_of(said):
    """A version as numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", said)[:3])
