"""mypy, asked about a file before and after types are added."""

import re

from remora.scripts import external


@external
async def run_command(argv: list[str], stdin: str = "", files: dict = {}, seconds: int = 30) -> dict: ...


@external
async def search_content(pattern: str, glob: str = "") -> list: ...


MYPY = [
    "mypy", "--cache-dir=/dev/null", "--no-incremental", "--no-error-summary", "--no-color-output", "--no-pretty",
    "--show-error-codes", "--hide-error-context",
]  # fmt: skip
ERROR = r"^(\S[^:\n]*):(\d+)(?::\d+)?: error: ([^\n]*?)(?:  \[([a-z-]+)\])?$"
CALLERS = 12
"""Other files that mypy checks together with this one."""
MYPY_S = 50
"""For one run: there are at least two in a call."""


async def files_with(file):
    """The file, and those that may call its functions."""
    stem = file.removesuffix(".py").split("/")[-1]
    stem = file.split("/")[-2] if stem == "__init__" and "/" in file else stem
    hits = await search_content(rf"\bimport\b.*\b{re.escape(stem)}\b|\bfrom\s+\S*\b{re.escape(stem)}\b", "**/*.py")
    others = [hit["path"] for hit in hits if hit["path"] != file]
    return [file, *list(dict.fromkeys(others))[:CALLERS]]


async def errors_with(paths, texts):
    """What mypy reports with these texts: path, line, message; and why it cannot be run, empty if it can."""
    try:
        done = await run_command([*MYPY, *paths], files=texts, seconds=MYPY_S)
    except OSError as error:  # not installed, no sandbox, or stopped at its limit
        return [], " ".join(str(error).split())[:150]
    if done["returncode"] not in (0, 1):
        lines = [line for line in (done["stdout"] + done["stderr"]).split("\n") if line.strip()]
        return [], f"mypy cannot check it: {(lines or ['it failed'])[-1]}"[:150]
    found = re.findall(ERROR, done["stdout"], re.MULTILINE)
    return [{"path": path, "line": int(line), "message": said, "code": code} for path, line, said, code in found], ""


def fresh_errors(before, after):
    """Errors that are new. A missing type of the same function in other words is not."""
    known = [(error["path"], error["line"], error["code"]) for error in before]
    return [error for error in after if (error["path"], error["line"], error["code"]) not in known]


def blamed(findings, file, errors):
    """The findings that the errors are about: by the lines of the function, or by its name in the message."""
    keys = []
    for error in errors:
        inside = [
            one["key"] for one in findings if error["path"] == file and one["line"] <= error["line"] <= one["last"]
        ]
        named = [one["key"] for one in findings if f'"{one["key"].split(".")[-1]}"' in error["message"]]
        keys += inside or named or [one["key"] for one in findings]
    return list(dict.fromkeys(keys))
