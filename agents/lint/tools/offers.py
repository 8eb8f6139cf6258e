"""The next calls that a tool offers: safe fixes, and suggestions, each tried with ruff before it is offered."""

from edits import (
    MAX_LINES,
    apply_edits,
    edit_range,
    increased_codes,
    refusal_after,
    refusal_before,
    replace_rows,
    select_edits,
    split_mark,
)
from findings import count_codes, is_fixable, is_owned, knowledge, last_row, list_codes, plural, ruff, split
from repairs import repair
from rewrites import codes_without_import

OFFERED, ASKED = 4, 8
"""Most rules that get a suggestion at a time, and most runs of ruff to verify them."""


async def next_steps(file, text, reported, lines, stage="", without=""):
    """Knowledge about the errors, and the next calls: safe fixes, or else suggestions and the end."""
    errors, valid = split(reported, lines)
    safe = count_codes([error for error in errors if is_fixable(error, lines) and error["code"] != without])
    if safe:
        steps = [fix_step(code, plural(number, "safe fix")) for code, number in safe.items()]
        return {**knowledge(errors, lines), "next_step": "fix_safe"}, steps[:6]
    if not errors:
        end = {"tool": "submit_result", "args": {"summary": "No lint errors left"}, "reason": "Done"}
        return {**knowledge(errors, lines), "next_step": "end", "lint_left": "No lint errors left"}, [end]
    codes = [code for code in count_codes(errors) if code != without]
    # Whole files are fixed safely or not at all: suggestions are for the agents of single functions.
    found = await find_suggestions(file, text, reported, lines, codes) if not stage else {}
    left = f"{plural(len(errors))} left without a safe fix: {list_codes(count_codes(errors))}"[:150]
    end = {"tool": "submit_result", "args": {"summary": left}, "reason": "Nothing has a safe fix"}
    hard = [error for error in errors if error["code"] not in found] if valid and not stage else []
    known = {**knowledge(errors, lines, found, await codes_without_import(text, hard)), "lint_left": left}
    known["next_step"] = "suggest" if found else "edit" if valid and known["needs_edit"] and not stage else "end"
    return known, [*[fix_step(code, found[code]["reason"]) for code in found], end]


def fix_step(code, reason):
    """A candidate call of `apply_fix`."""
    return {"tool": "apply_fix", "args": {"code": code}, "reason": reason}


async def find_suggestions(file, text, reported, lines, codes):
    """By rule code, a verified edit that fixes an error without a safe fix, and the reason for it."""
    found, asked = {}, 0
    errors, _ = split(reported, lines)
    for error in errors:
        edits, reason = repair(error, split_mark(text)[1])
        code = error["code"]
        if not edits or code not in codes or code in found or len(found) == OFFERED or asked + 2 > ASKED:
            continue
        edit, times = await verify_edits(file, text, reported, lines, edits)
        asked += times
        if edit:
            found[code] = {"edit": edit, "reason": reason}
    return found


async def verify_edits(file, text, reported, lines, edits):
    """The edit of whole lines that makes these edits, None if it would be refused; and how often ruff was run."""
    own = [min(edit["location"]["row"] for edit in edits), max(last_row(edit) for edit in edits)]
    if not is_owned(own[0], own[1], lines) or own[1] - own[0] >= MAX_LINES:
        return None, 0
    edits = sorted(edits, key=edit_range, reverse=True)
    after, now = apply_edits(text, edits, [own])
    again, asked = await ruff(file, after), 1
    # The suggestion for one rule can break another rule that has a safe fix.
    safe = [error for error in again if error["code"] in increased_codes(reported, again) and is_fixable(error, now)]
    if safe:
        after, now = apply_edits(after, select_edits(safe), now)
        again, asked = await ruff(file, after), 2
    new = split_mark(after)[1][own[0] - 1 : now[0][1]] if now else []
    edit = {"first": own[0], "last": own[1], "text": "\n".join(line.rstrip("\r\n") for line in new)}
    if refusal_before(text, reported, lines, edit):
        return None, asked
    made, made_lines = replace_rows(text, lines, edit)
    return (edit if made == after and not refusal_after(reported, again, made_lines) else None), asked
