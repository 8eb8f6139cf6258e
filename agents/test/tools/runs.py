"""Test files that this agent has written, and runs of pytest with its sandboxed code."""

import re

from remora.scripts import external
from remora.scripts.shared.places import digest
from remora.scripts.shared.sandbox import pytest_files, read_report


@external
async def read_file(path: str) -> str: ...


@external
async def run_command(argv: list[str], stdin: str = "", files: dict = {}, seconds: int = 30) -> dict: ...


SEAL = "# Written by remora "
SECONDS = 2.0
WITHOUT_OPTIONS = ["-o", "addopts=", "-o", "required_plugins="]
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


def seal(head, body):
    """The text of a file with a digest in its second line, which shows later whether someone has edited it."""
    return f"{head}\n{SEAL}{digest(head + body)}.\n{body}"


def is_ours(text):
    """Whether the file is as this agent wrote it: then no one's work is lost if it is written again."""
    head, mark, rest = text.replace("\r\n", "\n").partition("\n" + SEAL)
    seal, dot, body = rest.partition(".\n")
    return bool(mark and dot) and digest(head + body) == seal


async def own_file(stem, end, first_line):
    """The first path that is free or holds a file of this agent about the same function; and its text."""
    for extra in ("", "_remora", "_remora_2", "_remora_3"):
        path = f"{stem}{extra}{end}"
        try:
            text = await read_file(path)
        except FileNotFoundError:
            return path, ""
        if is_ours(text) and text.startswith(first_line):
            return path, text
    raise RuntimeError(f"`{stem}{end}` and the names after it are taken")


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
        refused = refused_options(done)
        if refused:
            done = await run_command([*argv, *WITHOUT_OPTIONS, path], files=files, seconds=seconds)
    except OSError as error:  # it may not be run, or was stopped at its limit
        return {"refused": " ".join(str(error).split())}
    return {"told": read_report(done["stdout"]), "done": done, "options": refused}


def refused_options(done):
    """The options or plugins of the project that pytest does not know; empty if it knows all."""
    said = done["stderr"] + "\n" + done["stdout"]
    found = re.search(r"unrecognized arguments: ([^\n]+)|Missing required plugins: ([^\n]+)", said)
    return (found.group(1) or found.group(2)).strip() if found and done["returncode"] != 0 else ""


def describe_options(refused):
    """Which plugin is missing, and what the user can do."""
    word = refused.split()[0] if refused else ""
    plugins = [name for start, name in PLUGINS.items() if word.startswith(start)]
    needs = f"needs {plugins[0]}, which" if plugins else "needs a plugin that"
    needs = needs if word.startswith("-") else "is required and"
    options = f"Run without the project's pytest options: {word[:40]}"
    return f"{options} {needs} is not installed; install it in `.venv`"
