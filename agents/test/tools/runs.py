"""Test files that this agent has written, and runs of pytest with its sandboxed code."""

import re

from remora.scripts import external
from remora.scripts.shared.places import flat
from remora.scripts.shared.sandbox import pytest_files, read_report
from remora.scripts.shared.settings_of_pytest import WITHOUT_SETTINGS, refused_settings


@external
async def read_file(path: str) -> str: ...


@external
async def search_files(pattern: str) -> list[str]: ...


@external
async def run_command(argv: list[str], stdin: str = "", files: dict = {}, seconds: int = 30) -> dict: ...


SECONDS = 2.0
NO_TESTS = {"tests": 0, "survivors": None, "killed": 0, "calls": [], "untried": 0, "missed": ["any change of it"]}
"""What the tests of a project notice that has none: nothing needs to be run to know that."""
OWN_S = 85
"""Seconds for running the project's own tests against changes of a function."""
MOST_CHANGES = 24
PLUGINS = {
    "--cov": "pytest-cov", "--no-cov": "pytest-cov", "-n": "pytest-xdist", "--dist": "pytest-xdist",
    "--numprocesses": "pytest-xdist", "--timeout": "pytest-timeout", "--asyncio": "pytest-asyncio",
    "--benchmark": "pytest-benchmark", "--randomly": "pytest-randomly", "--mypy": "pytest-mypy",
    "--flake8": "pytest-flake8", "--black": "pytest-black", "--ruff": "pytest-ruff", "--isort": "pytest-isort",
    "--reruns": "pytest-rerunfailures", "--html": "pytest-html", "--ds": "pytest-django", "--reuse-db": "pytest-django",
    "--nbval": "nbval", "--snapshot": "syrupy", "--socket": "pytest-socket", "--disable-socket": "pytest-socket",
    "--xdoctest": "xdoctest", "--forked": "pytest-forked",
}  # fmt: skip
"""Which plugin an option belongs to, by its beginning."""


def header(module):
    """The first line of a test file that this agent writes for a module."""
    return f'"""Edge cases of `{module}`."""'


async def module_file(folder, module):
    """The file for new tests of a module: the first path that is free or that this agent began; and its text."""
    parts = module.split(".")
    stem = f"{folder}test_{flat('_'.join(parts[1:] if len(parts) > 1 else parts))}"
    names = [path.rpartition("/")[2] for path in await search_files("**/test_*.py")]
    for extra in ("", "_edges", "_edges_2", "_edges_3"):
        path = f"{stem}{extra}.py"
        try:
            text = await read_file(path)
        except FileNotFoundError:
            if path.rpartition("/")[2] in names:  # pytest cannot have two modules of one name
                continue
            return path, ""
        if text.startswith(header(module)):
            return path, text
    raise RuntimeError(f"`{stem}.py` and the names after it are taken")


async def own_tests(target, only=[]):
    """What the tests at `only`, by default the project's own ones, notice of changes of the function; or a problem."""
    if not only and not [*await search_files("**/test*.py"), *await search_files("**/*_test.py")]:
        return dict(NO_TESTS)
    here = target["folder"].rstrip("/")
    driver = f"{here}/_remora_own.py" if here else "_remora_own.py"
    spec = {**target["spec"], "bound": target["bound"], "only": only, "patience": OWN_S - 5}
    modules = ["own", "survivors", "again", "changes", "exchange"]
    done = await run_sandboxed(driver, "", target["root"], spec, "own.test_own", modules, OWN_S)
    if done.get("refused"):
        return {"problem": done["refused"]}
    told = done["told"] if done["told"] is not None else {"problem": last_error(done["done"])}
    return {**told, "options": done["options"]}


def own_tests_that(verb, number):
    """The project's own tests of a function with what they do: `its own test misses`, `its 3 own tests miss`."""
    if number == 1:
        return f"its own test {verb}{'es' if verb.endswith('s') else 's'}"
    return f"its {number} own tests {verb}"


def last_error(done):
    """The line of pytest's output that says what went wrong."""
    said = (done["stdout"] + "\n" + done["stderr"]).split("\n")
    errors = [line[1:].strip() for line in said if line.startswith("E  ")]
    own = [line.partition("error: ")[2] for line in said if ": error: " in line or line.startswith("error: ")]
    inner = [
        line.partition("> ")[2].strip() for line in said if re.match(r"INTERNALERROR> [\w.]+(?:Error|Warning): ", line)
    ]
    for found in (errors, own, inner):
        if found:
            return found[-1][:150]
    return " ".join(line for line in said[-4:] if line.strip())[:150]


async def run_sandboxed(path, text, root, spec, imports, modules, seconds=30):
    """Run pytest on a file at `path` for this one run: `text`, and what it imports from the agent's `sandboxed/`."""
    here = path.rpartition("/")[0]
    folders = list(dict.fromkeys([".", root, here or "."]))
    files = await pytest_files(path, folders, imports, modules, {"path": path, "folders": folders, **spec}, text)
    argv = ["pytest", "-q", "-s", "--tb=short", "--no-header", "-p", "no:cacheprovider"]
    try:
        done = await run_command([*argv, path], files=files, seconds=seconds)
        refused = refused_settings(done)
        if refused:
            done = await run_command([*argv, *WITHOUT_SETTINGS, path], files=files, seconds=seconds)
    except OSError as error:  # it may not be run, or was stopped at its limit
        return {"refused": " ".join(str(error).split())}
    return {"told": read_report(done["stdout"]), "done": done, "options": refused}


def describe_options(refused):
    """Which plugin is missing, and what the user can do."""
    word = refused.split()[0] if refused else ""
    if word.endswith("Warning"):
        return f"Run without the project's pytest options: they make {word} of an installed plugin an error"
    plugins = [name for start, name in PLUGINS.items() if word.startswith(start)]
    needs = f"needs {plugins[0]}, which" if plugins else "needs a plugin that"
    needs = needs if word.startswith("-") else "is required and"
    options = f"Run without the project's pytest options: {word[:40]}"
    return f"{options} {needs} is not installed; install it in `.venv`"
