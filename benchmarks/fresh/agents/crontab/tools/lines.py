"""Lines of the crontab, and what the docstrings of jobs say."""

import re

from remora.scripts import external


@external
async def read_file(path: str) -> str: ...


@external
async def write_file(path: str, content: str) -> None: ...


CRONTAB = "deploy/crontab"
DAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
LINE = r"(?m)^(\d+) (\d+) \* \* (\*|\d) run ([\w-]+)$"
RUNS = r"Runs: every (\w+) at (\d\d):(\d\d)"


def job_of(node):
    found = re.search(r"@job\(\"([\w-]+)\"\)", node)
    return found.group(1) if found else ""


def wanted_time(node):
    """Minute, hour and weekday as the docstring has them; None if it says nothing of the kind."""
    found = re.search(RUNS, node)
    if not found:
        return None
    day = found.group(1)
    weekday = str(DAYS.index(day)) if day in DAYS else "*"
    return {"minute": int(found.group(3)), "hour": int(found.group(2)), "weekday": weekday}


def active_lines(crontab):
    """Minute, hour, weekday and whether ops own it, by job."""
    lines = {}
    for found in re.finditer(LINE, crontab):
        above = crontab[: found.start()].rstrip("\n").split("\n")[-1]
        lines[found.group(4)] = {
            "minute": int(found.group(1)),
            "hour": int(found.group(2)),
            "weekday": found.group(3),
            "owner": "ops" if above.startswith("# ops") else "us",
        }
    return lines


def meet(one, other):
    """Whether both start at the same time of some day."""
    same_day = "*" in (one["weekday"], other["weekday"]) or one["weekday"] == other["weekday"]
    return same_day and one["hour"] == other["hour"] and one["minute"] == other["minute"]


def line_of(job, minute, hour, weekday):
    return f"{minute} {hour} * * {weekday} run {job}"


def judge(node, crontab):
    """The facts about a job."""
    job, wanted, lines = job_of(node), wanted_time(node), active_lines(crontab)
    own = lines.get(job)
    on_demand = "Runs: on demand" in node
    facts = {"job": job, "runs": "scheduled" if wanted else ("on demand" if on_demand else "unclear")}
    facts["line"] = line_of(job, own["minute"], own["hour"], own["weekday"]) if own else "none"
    facts["owner"] = own["owner"] if own else "us"
    taken = [name for name, line in lines.items() if name != job and wanted and meet(wanted, line)]
    if wanted:
        facts.update({f"wanted_{part}": value for part, value in wanted.items()})
        facts["taken_by"] = taken[0] if taken else "nobody"
    facts["line_missing"] = bool(wanted and not own)
    facts["line_differs"] = bool(wanted and own and differs(own, wanted, taken, job, lines))
    facts["should_not_run"] = bool(on_demand and own)
    facts["wrong"] = len([name for name in ("line_missing", "line_differs", "should_not_run") if facts[name]])
    return facts


def differs(own, wanted, taken, job, lines):
    """Whether a line has another time than it should. If that one is taken, any free minute of the hour is right."""
    if taken:
        alone = not any(meet(own, line) for name, line in lines.items() if name != job)
        return not alone or own["hour"] != wanted["hour"] or own["weekday"] != wanted["weekday"]
    return not meet(own, wanted) or own["weekday"] != wanted["weekday"]


async def done(node, text, failed=""):
    """What tools that change the crontab answer."""
    facts = judge(node, await read_file(CRONTAB))
    outcome = "error" if failed else ("partial" if facts["wrong"] else "success")
    return {
        "result": facts,
        "summary": failed or text,
        "knowledge_delta": facts,
        "outcome": outcome,
        "error": failed or None,
    }
