"""What can be done next: safe fixes, and edits that are proven before they are offered."""

import re

from edits import (
    MAX_LINES,
    MAX_TEXT,
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
from findings import counts, fixable, last_row, listed, owned, plural, ruff, split

OFFERED, ASKED = 3, 6
"""Edits that are offered at once, and times that ruff is asked to prove them."""
NOTHING = {"B018": r"\s*\w+\s*", "PLW0127": r"\s*(\w+) = \1\s*"}
"""By rule, lines that are a statement without any effect."""
OPENING = r"\s*(?:if|elif|else|for|while|with|async|try|except|finally|class|match|case)\b"


async def next_steps(text, reported, lines, without=""):
    """The safe fixes there are; without any, the edits that are proven, and the end."""
    errors, _ = split(reported, lines)
    codes = counts([error for error in errors if fixable(error, lines) and error["code"] != without])
    steps = [
        {"tool": "apply_fix", "args": {"code": code}, "reason": f"{number} safe fix{'' if number == 1 else 'es'}"}
        for code, number in codes.items()
    ]
    if steps:
        return steps[:6]
    if not errors:
        return [{"tool": "submit_result", "args": {"summary": "No lint errors left"}, "reason": "Done"}]
    left = f"{plural(len(errors))} left without a safe fix: {listed(counts(errors))}"
    end = {"tool": "submit_result", "args": {"summary": left[:150]}, "reason": "Nothing has a safe fix"}
    return [*await suggestions(text, reported, lines), end]


async def suggestions(text, reported, lines):
    """Edits for what has no safe fix, each proven: `edit_lines` would take it."""
    found, asked, room = [], 0, MAX_TEXT
    errors, _ = split(reported, lines)
    for error in errors:
        edits, reason = repair(error, parted(text)[1])
        if not edits or len(found) == OFFERED or asked + 2 > ASKED:
            continue
        edit, times = await proven(text, reported, lines, edits)
        asked += times
        if edit and len(edit["text"]) <= room and edit not in [step["args"] for step in found]:
            found.append({"tool": "edit_lines", "args": edit, "reason": reason})
            room -= len(edit["text"])
    return found


def repair(error, whole):
    """What would mend an error that has no safe fix, and who says so; no edits where nobody does."""
    fix, code = error["fix"], error["code"]
    if fix:
        edits = [] if fix["applicability"] == "safe" else fix["edits"]
        return edits, f"ruff suggests it for {code}; may change behaviour"
    if code in NOTHING:
        return idle(code, whole, error["location"]["row"]), f"For {code}: this line does nothing"
    if code == "E701":
        return opened(whole, error["location"]["row"], error["location"]["column"]), "For E701: a line of its own"
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
