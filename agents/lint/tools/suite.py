"""The project's own tests, run with an edit before it is kept."""

import re

from remora.scripts import external


@external
async def run_command(argv: list[str], stdin: str = "", files: dict = {}, seconds: int = 30) -> dict: ...


SECONDS = 90
"""Most seconds for one run of the tests."""
ARGV = ["pytest", "-q", "-rfE", "--tb=no", "--no-header", "-p", "no:cacheprovider"]
NO_TESTS = 5
"""pytest's exit status if it found no test."""


async def refusal_by_tests(file, text, before):
    """Why the project's tests refuse a file with this text; empty if they do not. `before` is the file's text now."""
    after, problem = await run_suite({file: text})
    if problem:
        return f"The project's tests cannot judge it: {problem}"
    if after is None:
        return ""
    old, problem = await run_suite({file: before}) if after else ([], "")
    if problem:
        return f"The project's tests cannot judge it: {problem}"
    new = [name for name in after if name not in (old or [])]
    return f"It fails with the project's suite: {new[0]}" if new else ""


async def run_suite(files):
    """The tests that fail with these files, None without tests; and why they cannot be run, empty if they can."""
    try:
        done = await run_command(ARGV, files=files, seconds=SECONDS)
        if needs_plugin(done):
            done = await run_command([*ARGV, "-o", "addopts="], files=files, seconds=SECONDS)
    except OSError as error:  # no sandbox, or stopped at its limit
        return [], " ".join(str(error).split())[:120]
    if done["returncode"] == NO_TESTS:
        return None, ""
    said = done["stdout"] + "\n" + done["stderr"]
    failed = [name.split(" - ")[0] for name in re.findall(r"^(?:FAILED|ERROR) (\S[^\n]*)", said, re.MULTILINE)]
    if done["returncode"] in (0, 1) or failed:
        return failed, ""
    lines = [line for line in said.split("\n") if line.strip()]
    return [], (lines[-1] if lines else "pytest failed")[:120]


def needs_plugin(done):
    """Whether the project's pytest options need a plugin that is not installed."""
    return done["returncode"] != 0 and bool(re.search(r"unrecognized arguments: ", done["stderr"] + done["stdout"]))
