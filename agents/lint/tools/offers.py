"""What can be done next: safe fixes, and what is suggested without being safe, proven before it is offered."""

from edits import MAX_LINES, applied, chosen, objection, parted, place, relapse, rewritten, worse
from findings import counts, fixable, knowledge, last_row, listed, owned, plural, ruff, split
from repairs import repair

OFFERED, ASKED = 4, 8
"""Rules for which something is suggested at once, and times that ruff is asked to prove it."""


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
