"""Run the project's own tests against changes of the function, and report which of them no test notices."""

import json
import os
import re
import tempfile
import time

from .again import run_again
from .exchange import SPEC, report

WORK_S = 40
ERROR = re.compile(r"(?:E\s+)?[\w.]*(?:Error|Exception|Exit)\b: ")


def look(config):
    """What the plugin `survivors` logged; None if it could not run."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        words = ["-p", f"{__package__}.survivors", "--continue-on-collection-errors", "--maxfail=0"]
        words += ["--ignore-glob=*/_remora_*", *SPEC["only"]]
        until = time.monotonic() + SPEC["patience"]
        said, in_time = run_again(words, config, SPEC["folders"], {"REMORA_SURVIVORS": log}, WORK_S, until)
        if os.path.exists(log):
            with open(log) as file:
                return json.load(file)
    lines = [line.partition("> ")[2] or line for line in said.split("\n") if line.strip()]
    errors = [line.strip() for line in lines if ERROR.match(line.strip())]
    last = (errors or lines or ["they said nothing"])[-1]
    return {"problem": last[:120] if in_time else "they do not end in time"}


def test_own(pytestconfig):
    """Report what the project's own tests miss."""
    report(look(pytestconfig))
