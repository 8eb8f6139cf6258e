"""What the fix of an unused variable leaves of its assignment."""

import re


def keeps_call(error, whole):
    """Whether the fix of an unused variable leaves the call that it was assigned from."""
    left, depth = what_is_left(error, whole), 0
    if not re.match(r"(?:await\s+)?[\w.]+\(", left):
        return False
    for place, sign in enumerate(left):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == ")" and not depth:
            return bool(re.match(r"\s*(?:[.(\[#]|$)", left[place + 1 :]))
    return True


def what_is_left(error, whole):
    """What the fix of an unused variable leaves of its assignment; empty if nothing, or if it is no assignment."""
    row, fix = error["location"]["row"], error["fix"]
    line = whole[row - 1] if row <= len(whole) else ""
    if not fix or not re.match(r"\s*\w+\s*(?::[^=]*)?=", line):
        return ""
    edit = fix["edits"][0]
    return line[edit["end_location"]["column"] - 1 :].strip() if edit["end_location"]["row"] == row else ""


def loses_meaning(error, whole):
    """Whether the fix of an unused variable leaves what does nothing, drops a reference to an object, or only renames.

    Code may hold an object only to keep it alive, and a test may see that a second name makes no difference.
    """
    if any((edit["content"] or "").startswith("_") for edit in error["fix"]["edits"]):
        return True  # one of several names in an assignment, with an underscore
    left, line = what_is_left(error, whole), whole[error["location"]["row"] - 1]
    if is_given(error, whole):
        return True
    if re.match(HOLDS, left) or is_aligned(left):
        return True
    alias = re.fullmatch(r"\s*\w+\s*=\s*(?!None|True|False)[A-Za-z_][\w.]*\s*(?:#.*)?", line.rstrip())
    return bool(alias) or (bool(left) and not keeps_call(error, whole))


def is_given(error, whole):
    """Whether an unused variable is a parameter of its function: that it is set without effect is the mistake."""
    row = error["location"]["row"]
    name, first = re.match(r"\s*(\w+)\s*=", whole[row - 1]), rows_around(row, whole)[0]
    header = re.search(r"\(([^)]*)\)", "".join(whole[max(0, first - 1) : row]))
    return bool(name and header) and bool(re.search(rf"\b{name.group(1)}\b", header.group(1)))


HOLDS = r"(?:await\s+)?(?:\w+\.)*(?:_*[A-Z]|weakref|proxy|finalize|ref|open|connect|acquire|lock|patch|start)\w*[.(]"
"""What makes an object that may be needed only because it lives: a class, a reference with a callback, a lock."""


def is_aligned(call):
    """Whether a call goes on in further lines that are aligned with its first argument."""
    return call.count("(") > call.count(")") and bool(re.search(r"\([^\s(#][^(]*$", call))


def is_in_comment(whole, row, message):
    """Whether a comment in the lines after an unused variable names it: it is code that was switched off."""
    name = (re.findall(r"`(\w+)`", message) or [""])[0]
    return any(re.search(rf"#.*\b{name}\b", line) for line in whole[row - 1 : row + COMMENTED])


COMMENTED = 4
MOST = 2
"""More unused variables than that in one function are read in another way, such as by a look at the frame."""


def many_in_a_function(errors, whole):
    """The unused variables of functions that have several, set one by one."""
    found = {}
    for error in errors:
        if error["code"] == "F841" and re.match(r"\s*\w+\s*=", whole[error["location"]["row"] - 1]):
            found.setdefault(rows_around(error["location"]["row"], whole), []).append(error)
    return [error for each in found.values() if len(each) > MOST for error in each]


def is_held(error, whole):
    """Whether an unused variable is likely to be meant: it names a result, or is set in two branches."""
    return keeps_call(error, whole) or is_set_again(error, whole)


def is_named(error, whole):
    """Whether an unused variable names a value, for a reader: it is set by an assignment or by `with`."""
    return bool(re.match(r"\s*(?:async\s+)?(?:with\b|\w[\w\s,]*=)", whole[error["location"]["row"] - 1]))


def is_set_again(error, whole):
    """Whether the function of an unused variable sets it elsewhere too."""
    row = error["location"]["row"]
    name = re.match(r"\s*(\w+)\s*=", whole[row - 1])
    if not name:
        return False
    first, last = rows_around(row, whole)
    again = [line for line in whole[first:last] if re.match(rf"\s*{name.group(1)}\s*=[^=]", line)]
    return len(again) > 1


def rows_around(row, whole):
    """The rows between the `def` before a line and the next one that is not deeper than it."""
    first = row - 1
    while first and not re.match(r"\s*(?:async\s+)?def\b", whole[first - 1]):
        first -= 1
    depth = len(whole[first - 1]) - len(whole[first - 1].lstrip()) if first else -1
    last = row
    while last < len(whole) and (not whole[last].strip() or len(whole[last]) - len(whole[last].lstrip()) > depth):
        last += 1
    return first, last
