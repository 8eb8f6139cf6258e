"""What can be done next: safe fixes, and what is suggested without being safe, proven before it is offered."""

import re

from edits import (
    MAX_LINES,
    NAMED,
    applied,
    chosen,
    indent,
    objection,
    parted,
    place,
    relapse,
    rewritten,
    worse,
)
from findings import counts, fixable, knowledge, last_row, listed, owned, plural, ruff, split

OFFERED, ASKED = 4, 8
"""Rules for which something is suggested at once, and times that ruff is asked to prove it."""
NOTHING = {"B018": r"\s*\w+\s*", "PLW0127": r"\s*(\w+) = \1\s*"}
"""By rule, lines that are a statement without any effect."""
OPENING = r"\s*(?:if|elif|else|for|while|with|async|try|except|finally|class|match|case)\b"


async def ways_on(text, reported, lines, without=""):
    """What is known of the errors, and what can be done: safe fixes; without any, what is suggested; and the end."""
    errors, _ = split(reported, lines)
    safe = counts([error for error in errors if fixable(error, lines) and error["code"] != without])
    if safe:
        steps = [fix_step(code, plural(number, "safe fix")) for code, number in safe.items()]
        return knowledge(errors, lines), steps[:6]
    if not errors:
        end = {"tool": "submit_result", "args": {"summary": "No lint errors left"}, "reason": "Done"}
        return knowledge(errors, lines), [end]
    found = await suggestions(text, reported, lines, [code for code in counts(errors) if code != without])
    left = f"{plural(len(errors))} left without a safe fix: {listed(counts(errors))}"
    end = {"tool": "submit_result", "args": {"summary": left[:150]}, "reason": "Nothing has a safe fix"}
    return knowledge(errors, lines, found), [*[fix_step(code, found[code]["reason"]) for code in found], end]


def fix_step(code, reason):
    return {"tool": "apply_fix", "args": {"code": code}, "reason": reason}


async def suggestions(text, reported, lines, codes):
    """By code, an edit that mends an error without a safe fix, and who says so. Each is proven."""
    found, asked = {}, 0
    errors, _ = split(reported, lines)
    for error in errors:
        edits, reason = repair(error, parted(text)[1])
        code = error["code"]
        if not edits or code not in codes or code in found or len(found) == OFFERED or asked + 2 > ASKED:
            continue
        edit, times = await proven(text, reported, lines, edits)
        asked += times
        if edit:
            found[code] = {"edit": edit, "reason": reason}
    return found


def repair(error, whole):
    """What would mend an error that has no safe fix, and who says so; no edits where nobody does."""
    fix, code = error["fix"], error["code"]
    if fix:
        edits = [] if fix["applicability"] == "safe" else fix["edits"]
        return edits, "ruff suggests it; may change behaviour"
    if code in NOTHING:
        return idle(code, whole, error["location"]["row"]), "The line does nothing"
    if code == "E701":
        return opened(whole, error["location"]["row"], error["location"]["column"]), "Gives it a line of its own"
    return [], ""


def idle(code, whole, row):
    """The edit that takes a statement without effect away."""
    above = headers(whole, row)
    # Under these a name may stand to see whether it is defined; and outside of a function `x = x` makes an attribute.
    guarded = any(re.match(r"(?:async\s+)?(?:try|with)\b", line) for line in above)
    inside = any(re.match(r"(?:async\s+)?def\b", line) for line in above)
    if guarded or not inside or not re.fullmatch(NOTHING[code], whole[row - 1]):
        return []
    return [replacement(row, 1, row + 1, 1, "")]


def opened(whole, row, column):
    """The edit that puts what follows a colon on a line of its own."""
    line = whole[row - 1]
    body = line[column:].lstrip()
    if not re.match(OPENING, line) or line[column - 1] != ":" or not body or body.startswith("\\"):
        return []
    end = (re.findall(r"(?:\r\n|\r|\n)$", line) or ["\n"])[0]
    return [replacement(row, column + 1, row, len(line) - len(body) + 1, end + indent([line]) + level(whole))]


def replacement(row, column, end_row, end_column, content):
    """An edit in ruff's own form."""
    start, end = {"row": row, "column": column}, {"row": end_row, "column": end_column}
    return {"location": start, "end_location": end, "content": content}


def headers(whole, row):
    """The lines that a line stands under, by their indentation, up to its function or class."""
    found, depth = [], len(indent([whole[row - 1]]))
    for line in reversed(whole[: row - 1]):
        if line.strip() and len(indent([line])) < depth:
            found.append(line.strip())
            # A closing bracket ends a header whose beginning is no deeper than it.
            depth = len(indent([line])) + (1 if line.strip().startswith(")") else 0)
            if re.match(NAMED, line):
                break
    return found


def level(whole):
    """One step of indentation as this file has it."""
    for number, line in enumerate(whole[1:]):
        above = whole[number]
        outer, inner = indent([above]), indent([line])
        if above.rstrip().endswith(":") and inner.startswith(outer) and inner != outer:
            return inner[len(outer) :]
    return "    "


async def proven(text, reported, lines, edits):
    """The edit of whole lines that comes to these edits, None if it would be refused; and how often ruff was asked."""
    own = [min(edit["location"]["row"] for edit in edits), max(last_row(edit) for edit in edits)]
    if not owned(own[0], own[1], lines) or own[1] - own[0] >= MAX_LINES:
        return None, 0
    edits = sorted(edits, key=place, reverse=True)
    after, now = applied(text, edits, [own])
    again, asked = await ruff(after), 1
    # One rule's suggestion can be another's error, with a safe fix.
    safe = [error for error in again if error["code"] in worse(reported, again) and fixable(error, now)]
    if safe:
        after, now = applied(after, chosen(safe), now)
        again, asked = await ruff(after), 2
    new = parted(after)[1][own[0] - 1 : now[0][1]] if now else []
    edit = {"first": own[0], "last": own[1], "text": "\n".join(line.rstrip("\r\n") for line in new)}
    if objection(text, reported, lines, edit):
        return None, asked
    made, made_lines = rewritten(text, lines, edit)
    return (edit if made == after and not relapse(reported, again, made_lines) else None), asked
