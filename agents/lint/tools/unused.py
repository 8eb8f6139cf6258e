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

    A test may hold an object only to keep it alive, or to see that a second name makes no difference.
    """
    if any((edit["content"] or "").startswith("_") for edit in error["fix"]["edits"]):
        return True  # one of several names in an assignment, with an underscore
    left, line = what_is_left(error, whole), whole[error["location"]["row"] - 1]
    alias = re.fullmatch(r"\s*\w+\s*=\s*(?!None|True|False)[A-Za-z_][\w.]*\s*(?:#.*)?", line.rstrip())
    return bool(alias) or (bool(left) and not keeps_call(error, whole))


def is_held(error, whole, in_tests):
    """Whether an unused variable is likely to be meant: it names a result, is set in two branches, or is in a test."""
    assigned = re.match(r"\s*\w[\w\s,]*=", whole[error["location"]["row"] - 1])
    return keeps_call(error, whole) or is_set_again(error, whole) or (in_tests and bool(assigned))


def is_set_again(error, whole):
    """Whether the function of an unused variable sets it elsewhere too."""
    row = error["location"]["row"]
    name = re.match(r"\s*(\w+)\s*=", whole[row - 1])
    if not name:
        return False
    first = row - 1
    while first and not re.match(r"\s*(?:async\s+)?def\b", whole[first - 1]):
        first -= 1
    last = row
    while last < len(whole) and not re.match(r"\s*(?:async\s+)?(?:def|class)\b", whole[last]):
        last += 1
    again = [line for line in whole[first:last] if re.match(rf"\s*{name.group(1)}\s*=[^=]", line)]
    return len(again) > 1
