"""Settings of a project that keep pytest from starting where Remora runs it."""

import re
from typing import Any

WITHOUT_SETTINGS = ["-o", "addopts=", "-o", "required_plugins=", "-o", "filterwarnings="]
"""Overrides settings of the project that keep pytest from starting."""


def refused_settings(done: dict[str, Any]) -> str:
    """What of the project's settings keeps pytest from starting here; empty if nothing does.

    Options or plugins that are not installed, or a warning of an installed plugin that the settings make an error.
    """
    said = done["stderr"] + "\n" + done["stdout"]
    missing = r"unrecognized arguments: ([^\n]+)|Missing required plugins: ([^\n]+)"
    warned = r"^(?:INTERNALERROR> )?(pytest\.Pytest\w*Warning): "
    found = re.search(rf"{missing}|{warned}", said, re.MULTILINE) if done["returncode"] != 0 else None
    return (found.group(1) or found.group(2) or found.group(3)).strip() if found else ""
