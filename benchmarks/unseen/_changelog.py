"""Tasks for `changelog`: a version in code, and a CHANGELOG.md that is behind it, ahead of it or level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.making import Case, call, made
from remora_lab.bench.tasks import Task

CHANGELOG = "CHANGELOG.md"
PACKAGE = '''"""Turns recipes into shopping lists."""

__version__ = "{version}"
'''
MODULE = """VERSION = "{version}"


def about():
    return f"postbox {VERSION}"
"""
COMPUTED = '''"""Draws maps of hiking trails."""

from importlib.metadata import version

__version__ = version("trails")
'''
PLAIN = """# Changelog

## Unreleased
{unreleased}
## 1.2.0

- Lists can be sorted by shop.

## 1.1.0

- Amounts are added up.
"""
LINKED = """# Changes

## [Unreleased]
{unreleased}
## [0.9.0]

- Letters have attachments.

## [0.8.1]

- Empty letters are refused.

## [0.8.0]

- First letters.

"""
LINKS = {
    "0.10.0": "[0.10.0]: https://code.example/postbox/compare/v0.9.0...v0.10.0\n",
    "0.9.0": "[0.9.0]: https://code.example/postbox/compare/v0.8.1...v0.9.0\n",
    "0.8.1": "[0.8.1]: https://code.example/postbox/compare/v0.8.0...v0.8.1\n",
    "0.8.0": "[0.8.0]: https://code.example/postbox/releases/tag/v0.8.0\n",
}
ONE = "- Recipes can be scaled."
TWO = "- Letters can be undone.\n- Stamps cost what they should."


@dataclass(frozen=True)
class _Case(Case):
    """A module with its version, a changelog, and what is right for them."""

    version: str
    changelog: str
    entries: str = ""
    """What is unreleased."""
    unlinked: Sequence[str] = ()
    """Versions of a changelog with links that have none, once everything is released."""
    release: bool = False
    newest: str = ""
    """The changelog's version, where the code is to take it over."""


CASES = (
    _Case("changelog-level", "easy", "recipes/__init__.py", PACKAGE, "1.2.0", PLAIN),
    _Case("changelog-pending", "medium", "kitchen/__init__.py", PACKAGE, "1.2.0", PLAIN, ONE),
    _Case("changelog-release", "easy", "recipes/version.py", PACKAGE, "1.3.0", PLAIN, ONE, release=True),
    _Case("changelog-forgotten", "easy", "cookbook/__init__.py", PACKAGE, "1.1.0", PLAIN, newest="1.2.0"),
    _Case("changelog-letters", "medium", "postbox/version.py", MODULE, "0.10.0", LINKED, TWO, ["0.10.0"], True),
    _Case("changelog-unlinked", "easy", "postbox/about.py", MODULE, "0.9.0", LINKED, "", ["0.9.0"]),
    _Case("changelog-links", "medium", "mailroom/about.py", MODULE, "0.9.0", LINKED, TWO, ["0.9.0", "0.8.1"]),
    _Case("changelog-stale", "hard", "post/version.py", MODULE, "0.8.1", LINKED, "", ["0.8.1"], newest="0.9.0"),
    _Case("changelog-unwritten", "medium", "meals/__init__.py", PACKAGE, "1.3.0", PLAIN),
    _Case("changelog-development", "hard", "meals/version.py", PACKAGE, "2.0.0.dev1", PLAIN, ONE),
    _Case("changelog-computed", "hard", "trails/__init__.py", COMPUTED, "", PLAIN, ONE),
    _Case("changelog-parcels", "hard", "parcels/version.py", MODULE, "0.10.0", LINKED, TWO, ["0.10.0", "0.8.1"], True),
)  # fmt: skip


def changelog_tasks() -> Iterator[Task]:
    """Every task of the agent."""
    for case in CASES:
        yield _task(case)


def _task(case: _Case) -> Task:
    files = {case.path: _source(case, case.version), CHANGELOG: _before(case)}
    after: dict[str, str | None] = {
        case.path: _source(case, case.newest or case.version),
        CHANGELOG: _after(case),
    }
    calls: list[object] = [call("release_changes", version=case.version)] if case.release else []
    calls += [call("set_version", version=case.newest)] if case.newest else []
    links = [call("add_link", version=version) for version in case.unlinked]
    return made(case.name, case.level, files, case.path, after, [*calls, links] if links else calls)


def _source(case: _Case, version: str) -> str:
    return case.source.replace("{version}", version)


def _before(case: _Case) -> str:
    unreleased = f"\n{case.entries}\n" if case.entries else ""
    linked = [version for version in LINKS if version != "0.10.0" and version not in case.unlinked]
    return case.changelog.replace("{unreleased}", unreleased) + _links(case, linked)


def _after(case: _Case) -> str:
    title = f"[{case.version}]" if case.changelog == LINKED else case.version
    released = f"\n## {title}\n\n{case.entries}\n"
    unreleased = f"\n{case.entries}\n" if case.entries else ""
    linked = [version for version in LINKS if version != "0.10.0" or case.release]
    text = case.changelog.replace("{unreleased}", released if case.release else unreleased)
    return text + _links(case, linked)


def _links(case: _Case, versions: Sequence[str]) -> str:
    return "".join(LINKS[version] for version in versions) if case.changelog == LINKED else ""
