"""The project's own tests and its linter, asked about an edit before it is kept."""

import json
import re
from typing import Any

from remora.scripts import external
from remora.scripts.shared.settings_of_pytest import WITHOUT_SETTINGS, refused_settings


@external
async def run_command(argv: list[str], stdin: str = "", files: Any = None, seconds: int = 30) -> dict[str, Any]: ...


FAILS = "It fails with the project's suite"
"""How a refusal begins if a test fails that passed before."""
SECONDS = 90
"""Most seconds for one run of the tests."""
ARGV = ["pytest", "-q", "-rfE", "--tb=no", "--no-header", "-p", "no:cacheprovider"]
NO_TESTS = 5
"""pytest's exit status if it found no test."""


async def refusal_by_tests(texts: dict[str, str], before: dict[str, str], seconds: int = SECONDS) -> str:
    """Why the project's tests refuse files with these texts; empty if they do not. `before` are their texts now."""
    after, problem, _ = await run_suite(texts, seconds)
    if problem:
        return f"The project's tests cannot judge it: {problem}"
    if not after:
        return ""
    old, problem, passed = await run_suite(before, seconds)
    new = [name for name in after if name not in (old or [])]
    if problem or not (new or passed):
        return f"The project's tests cannot judge it: {problem or 'none of them passes here'}"
    return f"{FAILS}: {new[0]}" if new else ""


async def run_suite(files: dict[str, str], seconds: int) -> tuple[list[str] | None, str, bool]:
    """The tests that fail with these files, None without tests; why they cannot be run; and whether one passes."""
    try:
        done = await run_command(ARGV, files=files, seconds=seconds)
        if refused_settings(done):
            done = await run_command([*ARGV, *WITHOUT_SETTINGS], files=files, seconds=seconds)
    except OSError as error:  # no sandbox, or stopped at its limit
        return [], " ".join(str(error).split())[:120], False
    if done["returncode"] == NO_TESTS:
        return None, "", False
    said = done["stdout"] + "\n" + done["stderr"]
    failed = [name.split(" - ")[0] for name in re.findall(r"^(?:FAILED|ERROR) (\S[^\n]*)", said, re.MULTILINE)]
    if done["returncode"] in (0, 1) or failed:
        return failed, "", bool(re.search(r"\b\d+ passed\b", said))
    lines = [line for line in said.split("\n") if line.strip()]
    return [], (lines[-1] if lines else "pytest failed")[:120], False


async def refusal_by_linter(file: str, text: str, before: str) -> str:
    """What ruff, by the project's settings or its own defaults, reports more often with this text; empty if nothing."""
    was, now = [await count_errors(file, each) for each in (before, text)]
    more = [code for code in now if now[code] > was.get(code, 0)]
    return f"Then the linter would report {more[0]}" if more else ""


async def count_errors(file: str, text: str) -> dict[str, int]:
    """The number of errors by rule."""
    argv = ["ruff", "check", "--output-format=json", "--no-cache", "--no-fix", f"--stdin-filename={file}", "-"]
    done = await run_command(argv, stdin=text)
    found: dict[str, int] = {}
    for error in json.loads(done["stdout"]) if done["returncode"] in (0, 1) else []:
        found[str(error["code"])] = found.get(str(error["code"]), 0) + 1
    return found
