"""Edits of lines: which ones are refused, and how the others are applied."""

import re

from blocks import NAMED, indent
from findings import LINE, count_codes, describe_error, is_owned, last_row, split

MAX_LINES = 30
"""Lines that one edit may replace."""
HIDING = r"#\s*(?:noqa|type:\s*ignore|(?:ruff|flake8|pylint|mypy|pyright):)"
THREE = r"(?:^|\n|\r)(?:[ \t]*(?:\r\n|\r|\n)){3}"


def refusal_before(text, reported, lines, edit):
    """Why an edit is refused without running ruff; empty if it is not."""
    whole, first, last, new = split_mark(text)[1], edit["first"], edit["last"], edit["text"]
    errors, _ = split(reported, lines)
    old = whole[first - 1 : last] if 1 <= first <= last <= len(whole) else []
    spans = [(error["location"]["row"], last_row(error)) for error in errors]
    if not old or not is_owned(first, last, lines):
        ranges = ", ".join(f"{start}-{end}" for start, end in lines[:4])
        return f"Lines {first}-{last} are not this node's: expected lines within {ranges}"
    if len(old) > MAX_LINES:
        return f"{len(old)} lines at once: expected at most {MAX_LINES}"
    if not any(start <= last and first <= end for start, end in spans):
        hint = f": the first is in {describe_error(errors[0])}" if errors else ""
        return f"Lines {first}-{last} have no error{hint}"
    if len(re.findall(HIDING, new)) > len(re.findall(HIDING, "".join(old))):
        return "A comment that hides an error is no fix"
    if not new.strip() and not any(start <= first and last <= end for start, end in spans):
        return "Only lines that are an error themselves can be taken away"
    if sorted(re.findall(NAMED, "".join(old), re.MULTILINE)) != sorted(re.findall(NAMED, new, re.MULTILINE)):
        return "A function or class would be gone, new or renamed: keep its `def` or `class` line"
    return ""


def replace_rows(text, lines, edit):
    """The text with some lines replaced, and where the owned lines are then."""
    mark, whole = split_mark(text)
    first, last = edit["first"], edit["last"]
    old = whole[first - 1 : last]
    new = fit_lines(edit["text"], old) if edit["text"].strip() else []
    grown = len(new) - len(old)
    now = [[start + grown if start > last else start, end + grown if end >= last else end] for start, end in lines]
    after = mark + "".join([*whole[: first - 1], *new, *whole[last:]])
    return after, [[start, end] for start, end in now if start <= end]


def refusal_after(before, after, lines):
    """Why an edit is refused by what ruff reports after it; empty if it is not."""
    errors, valid = split(after, lines)
    if not valid:
        return f"Then it would not be Python, {describe_error(errors[0])}"
    more = increased_codes(before, after)
    if more:
        fresh = [error for error in after if error["code"] == more[0]]
        return f"Then there would be a new error, {describe_error(fresh[-1])}"
    return "Then there would be as many errors as before" if len(after) >= len(before) else ""


def split_mark(text):
    """The byte order mark, if there is one, and the lines with their ends."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return mark, re.findall(LINE, text[len(mark) :])


def fit_lines(new, old):
    """The new lines with the indentation and line ends of the old ones."""
    lines = re.split(r"\r\n|\r|\n", new.strip("\r\n"))
    have, want = indent(lines), indent([line.rstrip("\r\n") for line in old])
    end = re.findall(r"[\r\n]+$", old[0])
    body = [(want + line[len(have) :] if line.strip() else "") + (end[0] if end else "\n") for line in lines]
    closed = re.findall(r"[\r\n]+$", old[-1])
    return body if closed else [*body[:-1], body[-1].rstrip("\r\n")]


def increased_codes(before, after):
    """Rule codes with more errors than before."""
    was = count_codes(before)
    return [name for name, number in count_codes(after).items() if number > was.get(name, 0)]


def loses_name(before, after):
    """Whether a name that was there is undefined now. An import that is no longer used is only the next error."""
    return any(code.startswith("F82") for code in increased_codes(before, after))


def spoils(before, after, lines):
    """Whether fixes leave no valid Python, lose a name, or put an error without a safe fix in place of another."""
    if not split(after, lines)[1] or loses_name(before, after):
        return True
    worse = increased_codes(before, after)
    fixes = [error["fix"] for error in after if error["code"] in worse]
    return any(not fix or fix["applicability"] != "safe" for fix in fixes)


def describe_fix(error):
    """A fix, wherever its line is now."""
    return error["code"], error["message"], str([edit["content"] for edit in error["fix"]["edits"]])


def without_blank_start(before, text, lines):
    """The text without blank lines at its start that were not there before, and where the owned lines are then."""
    blank = re.match(r"(?:[ \t]*(?:\r\n|\r|\n))+", text)
    if not blank or re.match(r"\s*[\r\n]", before):
        return text, lines
    gone = len(re.findall(r"\r\n|\r|\n", blank.group(0)))
    return text[blank.end() :], [[max(1, start - gone), max(1, end - gone)] for start, end in lines]


def without_extra_blanks(before, text, lines):
    """The text without third blank lines in a row, if there were none before, and where the owned lines are then."""
    if re.search(THREE, before):
        return text, lines
    kept, gone, blanks = [], [], 0
    for row, line in enumerate(split_mark(text)[1], 1):
        blanks = 0 if line.strip() else blanks + 1
        if blanks > 2:
            gone.append(row)
        else:
            kept.append(line)
    moved = [[end - len([row for row in gone if row <= end]) for end in pair] for pair in lines]
    return split_mark(text)[0] + "".join(kept), moved if gone else lines


def spare_blanks(above, below):
    """How many characters of blank lines at the start of `below` are too many after the end of `above`."""
    after = re.findall(r"^(?:[ \t]*(?:\r\n|\r|\n))*", below)[0]
    before = re.findall(r"(?:^|[^\s])[ \t]*(?:\r\n|\r|\n)((?:[ \t]*(?:\r\n|\r|\n))*)$", above)
    blanks = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)", after)
    spare = len(re.findall(r"\r\n|\r|\n", before[0])) if before else 0
    if re.search(r":[ \t]*(?:\r\n|\r|\n)$", above):
        spare = len(blanks)
    return sum([len(line) for line in blanks[:spare]])


def edit_range(edit):
    """Start and end of an edit as tuples, which can be compared."""
    start, end = edit["location"], edit["end_location"]
    return (start["row"], start["column"]), (end["row"], end["column"])


def select_edits(errors):
    """The edits of all errors that can be fixed in one round: edits that overlap wait for the next one."""
    edits = []
    for error in errors:
        mine = error["fix"]["edits"]
        clash = any(
            (edit_range(one)[0] < edit_range(other)[1] and edit_range(other)[0] < edit_range(one)[1])
            or edit_range(one)[0] == edit_range(other)[0]
            for one in mine
            for other in edits
        )
        if not clash:
            edits += mine
    return sorted(edits, key=lambda edit: edit_range(edit)[0], reverse=True)


def apply_edits(text, edits, lines, tidy=False):
    """The text with the edits applied from the bottom up, and where the owned lines are then.

    With `tidy`, lines that are taken away leave no blank line at the start of a block, and not more than there were.
    """
    mark, whole = split_mark(text)
    body, starts = "".join(whole), [0]
    for line in whole:
        starts.append(starts[-1] + len(line))
    now = [list(pair) for pair in lines]
    for edit in edits:
        (row, column), (end_row, end_column) = edit_range(edit)
        first, last = starts[row - 1] + column - 1, starts[end_row - 1] + end_column - 1
        content = edit["content"] or ""
        if tidy and not content and column == 1 and end_column == 1:
            last += spare_blanks(body[:first], body[last:])
        grown = len(re.findall(r"\r\n|\r|\n", content)) - len(re.findall(r"\r\n|\r|\n", body[first:last]))
        body = body[:first] + content + body[last:]
        now = [[start + grown if start > row else start, end + grown if end >= row else end] for start, end in now]
    return mark + body, [[start, end] for start, end in now if start <= end]
