"""What ruff finds in the code that an agent owns, and how it is told."""

import json
import re

from remora.scripts import external


@external
async def run_command(argv: list[str], stdin: str = "") -> dict: ...


LINE = r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+"
DESIGN = r"C901|FBT\d+|PLR09\d\d"
"""Rules against the design (too many branches, a flag as an argument): no edit of some lines keeps callers working."""
STALE = {"label": "read_file", "text": "", "start_line": 1}
"""Takes away what `read_file` showed: lines have moved."""


async def ruff(text):
    """Every error that ruff reports in the text."""
    argv = ["ruff", "check", "--output-format=json", "--no-cache", "--no-fix", f"--stdin-filename={target_file}", "-"]
    done = await run_command(argv, stdin=text)
    if done["returncode"] not in (0, 1):
        raise RuntimeError(done["stderr"].strip() or "ruff failed")
    return json.loads(done["stdout"])


def split(reported, lines):
    """The errors that concern this node, and whether the text is Python at all."""
    # A syntax error anywhere keeps ruff from seeing the rest, so it concerns every node of the file.
    broken = [error for error in reported if error["code"] in (None, "invalid-syntax")]
    rows = [error for error in reported if owned(error["location"]["row"], error["location"]["row"], lines)]
    return (broken or rows), not broken


def owned(first, last, lines):
    return any(start <= first and last <= end for start, end in lines)


def last_row(edit):
    """An edit that ends before the first column has not touched that line."""
    end = edit["end_location"]
    return max(edit["location"]["row"], end["row"] - 1 if end["column"] == 1 else end["row"])


def fixable(error, lines):
    fix = error["fix"]
    if not fix or fix["applicability"] != "safe":
        return False
    return all(owned(edit["location"]["row"], last_row(edit), lines) for edit in fix["edits"])


def counts(errors):
    """How many of each rule, in order of the first one's line."""
    found = {}
    for error in errors:
        found[error["code"]] = found.get(error["code"], 0) + 1
    return found


def listed(codes):
    return ", ".join(name if number == 1 else f"{name} x{number}" for name, number in codes.items())


def plural(number, word="error"):
    return f"{number} {word}{'' if number == 1 else 'es' if word.endswith('x') else 's'}"


def told(error):
    return f"line {error['location']['row']}: {error['code']} {error['message']}"[:110]


def excerpt(text, errors, lines):
    """The lines around the first error that needs a look; nothing, in place of what was shown before, if none does."""
    hard = [error for error in errors if not fixable(error, lines)] or errors
    first = hard[0]["location"]["row"] if hard else 1
    rows = [error["location"]["row"] for error in errors if first <= error["location"]["row"] < first + 10]
    start = max(1, first - 1)
    shown = re.findall(LINE, text)[start - 1 : max(rows) + 1] if hard else []
    return {"label": "first errors", "text": "\n".join(line.rstrip()[:160] for line in shown), "start_line": start}


def knowledge(errors, lines, suggested=()):
    """What later turns should know: `apply_fix` can fix what has a safe fix, and what is suggested."""
    hard = [error for error in errors if not fixable(error, lines) and error["code"] not in suggested]
    design = [error for error in hard if re.fullmatch(DESIGN, error["code"] or "")]
    edits = [error for error in hard if error not in design]
    return {
        "lint_errors_remaining": len(errors),
        "lint_fixable": len(errors) - len(hard),
        "lint_codes": dict(list(counts(errors).items())[:8]),
        "fixable_codes": list(counts([error for error in errors if error not in hard]))[:8],
        "needs_edit": [told(error) for error in edits[:4]],
        **({"left_to_people": list(counts(design))[:4]} if design else {}),
    }
