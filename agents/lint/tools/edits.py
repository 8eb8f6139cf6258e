"""Edits of whole lines: which are refused, and what comes of the others."""

import re

from findings import LINE, counts, last_row, owned, split, told

MAX_LINES = 30
"""Lines that one edit may replace."""
HIDING = r"#\s*(?:noqa|type:\s*ignore|(?:ruff|flake8|pylint|mypy|pyright):)"
NAMED = r"^\s*(?:async\s+def|def|class)\s+(\w+)"


def objection(text, reported, lines, edit):
    """Why an edit is refused before ruff is asked; nothing if it is not."""
    whole, first, last, new = parted(text)[1], edit["first"], edit["last"], edit["text"]
    errors, _ = split(reported, lines)
    old = whole[first - 1 : last] if 1 <= first <= last <= len(whole) else []
    spans = [(error["location"]["row"], last_row(error)) for error in errors]
    if not old or not owned(first, last, lines):
        ranges = ", ".join(f"{start}-{end}" for start, end in lines[:4])
        return f"Lines {first}-{last} are not this node's: expected lines within {ranges}"
    if len(old) > MAX_LINES:
        return f"{len(old)} lines at once: expected at most {MAX_LINES}"
    if not any(start <= last and first <= end for start, end in spans):
        return f"Lines {first}-{last} have no error" + (f": the first is in {told(errors[0])}" if errors else "")
    if len(re.findall(HIDING, new)) > len(re.findall(HIDING, "".join(old))):
        return "A comment that hides an error is no fix"
    if not new.strip() and not any(start <= first and last <= end for start, end in spans):
        return "Only lines that are an error themselves can be taken away"
    if sorted(re.findall(NAMED, "".join(old), re.MULTILINE)) != sorted(re.findall(NAMED, new, re.MULTILINE)):
        return "A function or class would be gone, new or renamed: keep its `def` or `class` line"
    return ""


def rewritten(text, lines, edit):
    """The text with other lines in place of some, and where the owned lines are then."""
    mark, whole = parted(text)
    first, last = edit["first"], edit["last"]
    old = whole[first - 1 : last]
    new = fitted(edit["text"], old) if edit["text"].strip() else []
    grown = len(new) - len(old)
    now = [[start + grown if start > last else start, end + grown if end >= last else end] for start, end in lines]
    after = mark + "".join([*whole[: first - 1], *new, *whole[last:]])
    return after, [[start, end] for start, end in now if start <= end]


def relapse(before, after, lines):
    """Why what ruff reports after an edit is no better than before; nothing if it is."""
    errors, valid = split(after, lines)
    if not valid:
        return f"Then it would not be Python, {told(errors[0])}"
    more = worse(before, after)
    if more:
        fresh = [error for error in after if error["code"] == more[0]]
        return f"Then there would be a new error, {told(fresh[-1])}"
    return "Then there would be as many errors as before" if len(after) >= len(before) else ""


def parted(text):
    """The byte order mark, if there is one, and the lines with their ends."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return mark, re.findall(LINE, text[len(mark) :])


def indent(lines):
    """What all lines that are not blank begin with."""
    starts = [line[: len(line) - len(line.lstrip())] for line in lines if line.strip()]
    common = starts[0] if starts else ""
    for start in starts:
        while not start.startswith(common):
            common = common[:-1]
    return common


def fitted(new, old):
    """The new lines with the old lines' indentation and line ends."""
    lines = re.split(r"\r\n|\r|\n", new.strip("\r\n"))
    have, want = indent(lines), indent([line.rstrip("\r\n") for line in old])
    end = re.findall(r"[\r\n]+$", old[0])
    body = [(want + line[len(have) :] if line.strip() else "") + (end[0] if end else "\n") for line in lines]
    closed = re.findall(r"[\r\n]+$", old[-1])
    return body if closed else [*body[:-1], body[-1].rstrip("\r\n")]


def worse(before, after):
    """What there is more of than before."""
    was = counts(before)
    return [name for name, number in counts(after).items() if number > was.get(name, 0)]


def place(edit):
    """Where an edit stands, in a form that can be compared."""
    start, end = edit["location"], edit["end_location"]
    return (start["row"], start["column"]), (end["row"], end["column"])


def chosen(errors):
    """The edits of as many errors as can be applied together: one that overlaps waits for the next round."""
    edits = []
    for error in errors:
        mine = error["fix"]["edits"]
        clash = any(
            (place(one)[0] < place(other)[1] and place(other)[0] < place(one)[1]) or place(one)[0] == place(other)[0]
            for one in mine
            for other in edits
        )
        if not clash:
            edits += mine
    return sorted(edits, key=lambda edit: place(edit)[0], reverse=True)


def applied(text, edits, lines):
    """The text with the edits made from the bottom up, and where the owned lines are then."""
    mark, whole = parted(text)
    body, starts = "".join(whole), [0]
    for line in whole:
        starts.append(starts[-1] + len(line))
    now = [list(pair) for pair in lines]
    for edit in edits:
        (row, column), (end_row, end_column) = place(edit)
        first, last = starts[row - 1] + column - 1, starts[end_row - 1] + end_column - 1
        content = edit["content"] or ""
        grown = len(re.findall(r"\r\n|\r|\n", content)) - len(re.findall(r"\r\n|\r|\n", body[first:last]))
        body = body[:first] + content + body[last:]
        now = [[start + grown if start > row else start, end + grown if end >= row else end] for start, end in now]
    return mark + body, [[start, end] for start, end in now if start <= end]
