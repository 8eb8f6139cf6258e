"""What ruff reports about the lines that an agent owns, and how the tools describe it."""

import json
import re

from exports import guard_imports, regroups
from kept import find_unkept
from mistakes import is_mistake
from settings import OTHER_TOOLS, find_settings, is_off, without_linter
from unused import is_held, is_in_comment, is_named, many_in_a_function

from remora.scripts import external
from remora.scripts.shared.places import is_beside, is_in_tests


@external
async def run_command(argv: list[str], stdin: str = "", files: dict = {}, seconds: int = 30) -> dict: ...


LINE = r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+"
DESIGN = r"C901|FBT\d+|PERF401|PLR09\d\d|RUF059|E712|E501|E722|D\d\d\d"
"""Rules about design (too many branches, a flag as an argument), names, what an error handler is for, long lines, words
of docstrings, or lines that are far apart: of these, no edit of a model in its own words was one to keep."""
COMMENTS = r"RUF10\d"
"""Rules about comments for linters, such as `noqa`: not needed, renamed, in a new form."""
MISFITS = ("F502", "F503", "F504", "F505", "F506", "F507", "F508", "F522", "F523", "F524", "F525")
"""Texts and arguments that do not fit: the mistake may be in the text, and ruff's fix would only hide it."""
MOST_OF_FLAKE8 = 12
"""More errors than that in a file mean that flake8 has settings, and nobody runs it any more."""
LEFT = {}
"""By file, how many errors of such settings were left alone."""
MOST_IN_TESTS = 12
"""More errors than that in a file of tests mean that the project's linter is for its code only."""
STALE = {"label": "read_file", "text": "", "start_line": 1}
"""Replaces the excerpt of `read_file` by an empty one, because lines have moved."""


async def ruff(file, text):
    """Every error that ruff reports by the project's own settings, if the file has this text."""
    settings = await find_settings(file)
    unkept = await find_unkept(file, settings)
    settings = without_linter(settings) if unkept["all"] else settings
    whole = re.findall(LINE, text)
    argv = ["ruff", "check", "--output-format=json", "--no-cache", "--no-fix", "--force-exclude"]
    done = await run_command([*argv, *settings["flags"], f"--stdin-filename={file}", "-"], stdin=text)
    if done["returncode"] not in (0, 1):
        raise RuntimeError(done["stderr"].strip() or "ruff failed")
    every = json.loads(done["stdout"])
    every = [error for error in every if error["code"] not in unkept["rules"]]
    reported = [error for error in every if counts(error, file, whole, settings)]
    if settings["words"].startswith("flake8") and len(reported) > MOST_OF_FLAKE8:
        LEFT[file] = len(reported)
        settings = without_linter(settings)
        reported = [error for error in every if counts(error, file, whole, settings)]
    reported = [{**error, "fix": None} if hides_mistake(error, whole) else error for error in reported]
    reported = [with_bytes_first(error, whole) for error in reported]
    several = many_in_a_function(reported, whole)
    reported = [error for error in reported if settings["linter"] or error not in several]
    return await guard_imports(file, whole, reported)


async def unreported_imports(file, text, reported):
    """How many imports nothing uses and no rule of the project reports."""
    argv = [
        "ruff",
        "check",
        "--output-format=json",
        "--no-cache",
        "--no-fix",
        "--select=F401",
        f"--stdin-filename={file}",
        "-",
    ]
    done = await run_command(argv, stdin=text)
    unused = len(json.loads(done["stdout"])) if done["returncode"] in (0, 1) else 0
    return unused - len([error for error in reported if error["code"] == "F401"])


def counts(error, file, whole, settings):
    """Whether an error counts in this project: its rule is on, and no comment for another tool allows it."""
    code, row = error["code"], error["location"]["row"]
    if code in (None, "invalid-syntax"):
        return True
    line = whole[row - 1] if row <= len(whole) else ""
    if re.fullmatch(COMMENTS, code):
        return False  # for another tool, or for the version of ruff that the project runs: there it may be needed
    if code in settings["more"] and not is_mistake(error, file, whole):
        return False  # nobody named its rule, and nothing proves it
    if code == "F841" and not settings["chosen"] and is_held(error, whole):
        return False  # no rule that somebody chose minds it
    if code == "F841" and is_in_tests(file) and is_named(error, whole):
        return False  # held to keep it alive, or named for a reader; where a linter runs on tests there are none
    if regroups(error, whole):
        return False  # where the project is developed, other packages stand beside it
    if code in ("E711", "E712", "E713", "E714") and is_in_tests(file):
        return False  # a test of `==` is about `==`
    if code == "F841" and "`__" in error["message"]:
        return False  # such as `__traceback_hide__`, which others read from the frame
    if code == "F841" and is_in_comment(whole, row, error["message"]):
        return False  # code that is switched off uses the name
    return not is_off(code, file, settings) and not re.search(OTHER_TOOLS, line)


def hides_mistake(error, whole):
    """Whether ruff's fix may only hide a mistake: of a text that does not fit its arguments, or with doubled braces."""
    line = whole[error["location"]["row"] - 1] if error["location"]["row"] <= len(whole) else ""
    return error["code"] in MISFITS or (error["code"] == "F541" and "{{" in line)


def with_bytes_first(error, whole):
    """The error with a fix that writes `br` before a text of bytes: `rb` is no Python 2, where `u` matters too."""
    edits = error["fix"]["edits"] if error["fix"] and error["code"] == "W605" else []
    if len(edits) != 1:
        return error
    if edits[0]["location"] != edits[0]["end_location"]:
        return {**error, "fix": None}
    row, column = edits[0]["location"]["row"], edits[0]["location"]["column"]
    if whole[row - 1][column - 1] not in "bB":
        return error
    place = {"row": row, "column": column + 1}
    return {**error, "fix": {**error["fix"], "edits": [{**edits[0], "location": place, "end_location": place}]}}


def is_unlinted(file, reported):
    """Whether nobody runs the linter on a file of tests or documents: it reports more than anybody would leave."""
    return (is_in_tests(file) or is_beside(file)) and len(reported) > MOST_IN_TESTS


def split(reported, lines):
    """The errors that concern this node, and whether the text is valid Python."""
    # A syntax error anywhere keeps ruff from seeing the rest, so it concerns every node of the file.
    broken = [error for error in reported if error["code"] in (None, "invalid-syntax")]
    rows = [error for error in reported if is_owned(error["location"]["row"], error["location"]["row"], lines)]
    return (broken or rows), not broken


def is_owned(first, last, lines):
    """Whether one of the stretches in `lines` holds these lines."""
    return any(start <= first and last <= end for start, end in lines)


def last_row(edit):
    """The last row that an edit touches: one that ends before the first column of a line does not touch it."""
    end = edit["end_location"]
    return max(edit["location"]["row"], end["row"] - 1 if end["column"] == 1 else end["row"])


def is_fixable(error, lines):
    """Whether ruff has a safe fix that stays within these lines."""
    fix = error["fix"]
    if not fix or fix["applicability"] != "safe":
        return False
    return all(is_owned(edit["location"]["row"], last_row(edit), lines) for edit in fix["edits"])


def count_codes(errors):
    """The number of errors by rule, in order of the first one's line."""
    found = {}
    for error in errors:
        found[error["code"]] = found.get(error["code"], 0) + 1
    return found


def list_codes(codes):
    """Rule codes with their numbers as one text: `F401 x2, E711`."""
    return ", ".join(name if number == 1 else f"{name} x{number}" for name, number in codes.items())


def plural(number, word="error"):
    """A number with its word: `1 error`, `2 errors`, `2 safe fixes`."""
    return f"{number} {word}{'' if number == 1 else 'es' if word.endswith('x') else 's'}"


def describe_error(error):
    """One error in one short line."""
    return f"line {error['location']['row']}: {error['code']} {error['message']}"[:110]


def excerpt(text, errors, lines):
    """The lines around the first error without a safe fix, or around the first error; empty without errors."""
    hard = [error for error in errors if not is_fixable(error, lines)] or errors
    first = hard[0]["location"]["row"] if hard else 1
    rows = [error["location"]["row"] for error in errors if first <= error["location"]["row"] < first + 10]
    start = max(1, first - 1)
    shown = re.findall(LINE, text)[start - 1 : max(rows) + 1] if hard else []
    return {"label": "first errors", "text": "\n".join(line.rstrip()[:160] for line in shown), "start_line": start}


def knowledge(errors, lines, suggested=(), left=()):
    """What later turns should know. `apply_fix` can fix errors with a safe fix, and those in `suggested`.

    Rules in `left` are left to people, as those about design are.
    """
    hard = [error for error in errors if not is_fixable(error, lines) and error["code"] not in suggested]
    design = [error for error in hard if re.fullmatch(DESIGN, error["code"] or "") or error["code"] in left]
    edits = [error for error in hard if error not in design]
    return {
        "lint_errors_remaining": len(errors),
        "lint_fixable": len(errors) - len(hard),
        "lint_codes": dict(list(count_codes(errors).items())[:8]),
        "fixable_codes": list(count_codes([error for error in errors if error not in hard]))[:8],
        "needs_edit": [describe_error(error) for error in edits[:4]],
        **({"left_to_people": list(count_codes(design))[:4]} if design else {}),
    }
