"""Files of ours, and runs of pytest over files that are there for one run only."""

import json
import re

from places import digest

from remora.scripts import external


@external
async def read_beside(name: str) -> str: ...


@external
async def read_file(path: str) -> str: ...


@external
async def run_command(argv: list[str], stdin: str = "", files: dict = {}, seconds: int = 30) -> dict: ...


MARK = "# Written by remora "
SECONDS = 2.0
SPEC_MARK = "@@remora@@"
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
"""Which plugin an option belongs to, by how it begins."""


def sealed(head, body):
    """The text of a file of ours: its digest shows later whether someone has worked on it since."""
    return f"{head}\n{MARK}{digest(head + body)}.\n{body}"


def is_ours(text):
    """Whether the file is as we wrote it, so that nobody's work is lost if it is written again."""
    head, mark, rest = text.replace("\r\n", "\n").partition("\n" + MARK)
    seal, dot, body = rest.partition(".\n")
    return bool(mark and dot) and digest(head + body) == seal


async def own_file(stem, end, first_line):
    """The first of these names that is free, or is a file of ours about the same thing; and what is in it."""
    for extra in ("", "_remora", "_remora_2", "_remora_3"):
        path = f"{stem}{extra}{end}"
        try:
            text = await read_file(path)
        except FileNotFoundError:
            return path, ""
        if is_ours(text) and text.startswith(first_line):
            return path, text
    raise RuntimeError(f"`{stem}{end}` and the names after it are taken")


def last_words(done):
    """The line in which pytest says what went wrong."""
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


async def scratch_run(path, text, root, spec, code, helpers, seconds=30):
    """What pytest says about a text, with code of ours behind it, that stands in the test's place for this one run."""
    here = path.rpartition("/")[0]
    folders = list(dict.fromkeys([".", root, here or "."]))
    lead = f"import os, sys; sys.path[:0] = [os.path.abspath(one) for one in {json.dumps(folders)}]\n"
    told = {"path": path, "folders": folders, **spec, "mark": SPEC_MARK}
    files = {path: lead + text + (await read_beside(code)).replace("SPEC_TEXT", repr(json.dumps(told)))}
    for name in helpers:
        files[f"{here}/_remora_{name}" if here else f"_remora_{name}"] = await read_beside(name)
    argv = ["pytest", "-q", "-s", "--tb=short", "--no-header", "-p", "no:cacheprovider"]
    try:
        done = await run_command([*argv, path], files=files, seconds=seconds)
        refused = refused_options(done)
        if refused:
            done = await run_command([*argv, *WITHOUT_OPTIONS, path], files=files, seconds=seconds)
    except OSError as error:  # it may not be run, or was stopped at its limit
        return {"refused": " ".join(str(error).split())}
    return {"told": told_last(done["stdout"]), "done": done, "options": refused}


def refused_options(done):
    """What pytest does not take of the options that the project gives it; nothing if it took them."""
    said = done["stderr"] + "\n" + done["stdout"]
    found = re.search(r"unrecognized arguments: ([^\n]+)|Missing required plugins: ([^\n]+)", said)
    return (found.group(1) or found.group(2)).strip() if found and done["returncode"] != 0 else ""


def about_options(refused):
    """Which plugin is missing, and what its owner can do."""
    word = refused.split()[0] if refused else ""
    plugins = [name for start, name in PLUGINS.items() if word.startswith(start)]
    needs = f"needs {plugins[0]}, which" if plugins else "needs a plugin that"
    needs = needs if word.startswith("-") else "is required and"
    options = f"Run without the project's pytest options: {word[:40]}"
    return f"{options} {needs} is not installed; install it in `.venv`"


def told_last(said):
    """What our code said, after all that the project's code may have printed; None if it said nothing."""
    parts = said.split(SPEC_MARK)
    try:
        return json.loads(parts[-2]) if len(parts) > 2 else None
    except ValueError:
        return None
