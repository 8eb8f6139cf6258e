"""Run the new test on another day, and with the project's own tests, after or before them, and report."""

import json
import os
import tempfile
import time

from .again import run_again
from .elsewhere import other_place
from .exchange import SPEC, report

UNTIL = time.monotonic() + SPEC["seconds"]
SUITE_S = 10
"""Seconds of CPU time for one run of the project's own tests; if they take more, only those that name the code run."""
ALONE_S = 8


class Seen:
    """How one run ended, from the log of the plugin `order`."""

    def __init__(self, lines, in_time):
        rows = [json.loads(line) for line in lines]
        counts = next((row for row in rows if "collected" in row), {})
        self.own, self.files = counts.get("collected", 0), counts.get("files", 0)
        self.all_files = counts.get("all_files", 0)
        self.late = not in_time
        self.ended = any("ended" in row for row in rows)
        self.passed = sum(row.get("passed") is True for row in rows)
        self.new = [row for row in rows if row.get("new") is True]
        self.others = {row["id"]: row for row in rows if row.get("new") is False}


class Together:
    """The runs of one test file with the project's own tests."""

    def __init__(self, config):
        self.config = config
        self.near = []
        self.red = set()
        """The project's tests that fail without the new file too."""

    def run(self, order, files=None):
        """Run the tests in this order: `after`, `before`, or `own` without the new file."""
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            told = {"new": SPEC["path"], "order": order, "near": self.near, "files": files, "log": log}
            words = ["-p", f"{__package__}.order", "--continue-on-collection-errors", "--maxfail=0"]
            words += ["--ignore-glob=*/_remora_*"]
            place = {"REMORA_ORDER": json.dumps(told)}
            until = min(UNTIL, time.monotonic() + SPEC["seconds"] / 3)
            said, in_time = run_again(words, self.config, SPEC["folders"], place, SUITE_S, until)
            seen = Seen(lines_of(log), in_time)
        seen.said = said
        return seen

    def problem(self, order):
        """What is wrong when the new file runs in this place, and how the run ended."""
        seen = self.run(order)
        if seen.late and not self.near and in_own_tests(seen):
            self.near = SPEC["near"]
            seen = self.run(order)
        where = "after" if order == "after" else "before and after"
        if seen.late:
            return "it was not seen with the project's own tests for it: they do not end in time", seen
        if seen.new:
            return f"it fails {where} the project's own tests: {cause(seen.new[0])}", seen
        if not seen.passed or not seen.ended:
            return f"it does not run with the project's own tests: {last_line(seen.said)}", seen
        return self.harm(set(seen.others)), seen

    def harm(self, failed):
        """Which test of the project the new file breaks; empty if all that fail with it fail without it too."""
        files = sorted({name.partition("::")[0] for name in failed - self.red})
        for chosen in (files, None):  # the failed files first: that is quick, and most often enough
            if failed - self.red:
                alone = self.run("own", chosen)
                if alone.late:
                    return "it was not seen with the project's own tests: they do not end in time"
                self.red |= set(alone.others)
        harmed = sorted(failed - self.red)
        return f"with it `{harmed[0]}` of the project fails" if harmed else ""


def lines_of(log):
    """The lines of a log; none if it was not written."""
    if not os.path.exists(log):
        return []
    with open(log) as text:
        return text.read().splitlines()


def in_own_tests(seen):
    """Whether a run that took too long was in the project's own tests."""
    return seen.own or not seen.all_files


def cause(row):
    """The line of a failure that says what went wrong."""
    said = [line for line in row["why"].split("\n") if line.strip()]
    errors = [line[1:].strip() for line in said if line.startswith("E  ")]
    return f"{row['id'].split('::')[-1]}: {(errors or said or [''])[0 if errors else -1]}"


def last_line(said):
    """The last line of an output that is not blank."""
    return ([line for line in said.split("\n") if line.strip()] or ["it said nothing"])[-1]


def elsewhere(config):
    """What is wrong on another day in another place: on which of clock, time zone and so on the test depends."""
    other = other_place(later=False)
    if alone(config, other) == "passes":
        return ""
    kinds = {"clock": ["REMORA_SHIFT_S"], "time zone": ["TZ"], "hash seed": ["PYTHONHASHSEED"]}
    kinds["language"] = ["LC_ALL", "LANG", "LANGUAGE"]
    kinds["name"] = ["REMORA_HOST", "HOSTNAME", "USER", "LOGNAME"]
    ends = {kind: alone(config, {name: other[name] for name in names}) for kind, names in kinds.items()}
    guilty = [kind for kind, end in ends.items() if end == "fails"]
    if not guilty and "late" in ends.values():
        return "it was not seen with another clock, time zone, hash seed and language: it does not end in time"
    return f"it depends on the {' and the '.join(guilty or kinds)} of the machine"


def alone(config, place):
    """How the new file ends by itself with this environment."""
    words = ["-p", f"{__package__}.elsewhere", SPEC["path"]]
    said, ended = run_again(words, config, SPEC["folders"], place, ALONE_S, UNTIL)
    if not ended:
        return "late"
    last = last_line(said)
    return "passes" if " passed" in last and " failed" not in last and " error" not in last else "fails"


def names_this_folder():
    """What is wrong if the file names the project's folder, which differs on another machine."""
    with open(SPEC["path"], encoding="utf-8") as file:
        return "it names the folder of the project on this machine" if os.getcwd() in file.read() else ""


def look(config):
    """The report: a problem or an empty text, and how many of the project's tests ran."""
    problem = names_this_folder() or elsewhere(config)
    if problem:
        return {"problem": problem}
    both = Together(config)
    problem, seen = both.problem("after")
    if not problem and seen.own:
        problem, seen = both.problem("before")
    return {"problem": problem, "own": seen.own, "files": seen.files, "all_files": seen.all_files}


def test_together(pytestconfig):
    """Report what is wrong, or that nothing is."""
    report(look(pytestconfig))
