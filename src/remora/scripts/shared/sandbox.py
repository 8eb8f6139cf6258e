"""Runs of pytest with the agent's own Python files, which CPython executes inside the OS sandbox.

A tool script cannot run project code, because Monty is not CPython. It gives files to one run of `run_command` instead:
a test file, and the agent's `sandboxed/` modules as a package `_remora_sandboxed` in the same folder.

- The modules import each other with a leading dot (`from .changes import Changes`).
- They read what the script asks for from `spec.json` in their own folder.
- They answer by printing JSON between two marks; the mark is `spec["mark"]`.
"""

import json
from typing import Any

from remora.scripts import external


@external
async def read_beside(name: str) -> str: ...


PACKAGE = "_remora_sandboxed"
MARK = "@@remora@@"


async def pytest_files(
    path: str, folders: list[str], imports: str, modules: list[str], spec: dict[str, Any], text: str = ""
) -> dict[str, str]:
    """The files of one run: a test file at `path`, the modules of `sandboxed/` that it needs, and their spec.

    The test file makes `folders` and its own folder importable, then holds `text`, then imports `imports` from the
    package, such as `search.test_search`: pytest collects what is imported as if the test file defined it.
    """
    here = path.rpartition("/")[0]
    paths = json.dumps(list(dict.fromkeys([*folders, here or "."])))
    lead = f"import os, sys; sys.path[:0] = [os.path.abspath(one) for one in {paths}]\n"
    module, _, names = imports.partition(".")
    package = f"{here}/{PACKAGE}" if here else PACKAGE
    files = {path: f"{lead}{text}from {PACKAGE}.{module} import {names}\n"}
    for name in modules:
        files[f"{package}/{name}.py"] = await read_beside(f"sandboxed/{name}.py")
    files[f"{package}/spec.json"] = json.dumps({**spec, "mark": MARK})
    return files


def read_report(stdout: str) -> Any:
    """What the sandboxed code answered, after all that project code may have printed; None without an answer."""
    parts = stdout.split(MARK)
    try:
        return json.loads(parts[-2]) if len(parts) > 2 else None
    except ValueError:
        return None
