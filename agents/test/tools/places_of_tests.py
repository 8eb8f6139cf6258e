"""What a test needs to know about a function and its project."""

import re

from cases import why_not
from runs import MOST_CHANGES, SECONDS

from remora.scripts import external
from remora.scripts.shared.places import enclosing_kinds, is_in_tests, module_place, tests_folder


@external
async def read_file(path: str) -> str: ...


@external
async def list_dir(path: str = ".") -> list[str]: ...


@external
async def search_files(pattern: str) -> list[str]: ...


@external
async def search_content(pattern: str, glob: str = "") -> list[dict]: ...


async def folder_for_tests(file):
    """Where the project keeps the tests of a file: a `tests` folder near it, or the folder of its test files."""
    folder = await tests_folder(file)
    if await list_files(folder):
        return folder
    others = [path for path in await search_files("**/test_*.py") if "/_remora" not in path]
    return others[0].rpartition("/")[0] + "/" if others and "/" in others[0] else "" if others else folder


async def list_files(folder):
    """The names in a folder; none if there is no folder."""
    try:
        return await list_dir(folder)
    except OSError:
        return []


async def find_target(file, facts):
    """The function under test: its module, where its tests belong, and why it has none, if so."""
    module, root, qualified = await module_place(file, facts["qualified"])
    marks = [mark.split("(")[0].split(".")[-1] for mark in facts["decorators"]]
    spec = {"module": module, "names": qualified.split("."), "first": facts["first"], "most": MOST_CHANGES}
    return {
        "module": module,
        "root": root,
        "qualified": qualified,
        "folder": await folder_for_tests(file),
        "bound": facts["kind"] == "method" and "staticmethod" not in marks,
        "refused": why_not(file, facts, await enclosing_kinds(file, facts["qualified"].partition("#")[0])),
        "spec": {**spec, "file": file, "name": facts["name"], "seconds": SECONDS},
    }


async def quotes_of(file):
    """The quotes that most strings of the project's code have, as far as this file shows."""
    text = await read_file(file)
    return "'" if text.count("'") > 2 * text.count('"') else '"'


async def is_unittest():
    """Whether the project writes its tests as classes of `unittest` only."""
    try:
        classes = await search_content(r"^class \w+\(.*TestCase\)", "**/test*.py")
        functions = await search_content(r"^(?:async )?def test_|^import pytest|^from pytest", "**/test*.py")
    except OSError:  # the search takes too long
        return False
    return bool(classes) and not functions


RUNS_DOCTESTS = r"\bdoctest|\bxdoctest|\bsybil\b"
SETTINGS_FILES = ("*.cfg", "*.toml", "*.ini", "Makefile", "*.yml", "*.yaml", "*.py", "**/test*.py")


async def runs_doctests():
    """Whether the project runs the examples of its documents already."""
    try:
        return any([await search_content(RUNS_DOCTESTS, glob) for glob in SETTINGS_FILES])
    except OSError:  # the search takes too long
        return True


DOCUMENTS = ("*.md", "*.rst", "*.txt", "docs/**/*.md", "docs/**/*.rst", "doc/**/*.rst")


async def is_documented(name, file):
    """Whether a document or a docstring of the file seems to show a call of a function."""
    source = await read_file(file)
    if re.search(rf"(?m)^[ \t]*(?:>>>|\.\.\.) .*\b{re.escape(name)}\b", source):
        return True
    try:
        return any([await search_content(rf"\b{re.escape(name)}\(", glob) for glob in DOCUMENTS])
    except OSError:  # the search takes too long
        return False


async def is_called_in_tests(name):
    """Whether a file of tests calls a function, also one that pytest does not collect."""
    try:
        hits = await search_content(rf"\b{re.escape(name)}\(", "**/*.py")
    except OSError:  # the search takes too long
        return False
    return any(is_in_tests(hit["path"]) and f"def {name}(" not in hit["text"] for hit in hits)
