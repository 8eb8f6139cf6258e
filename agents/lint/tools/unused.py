"""What the fix of an unused variable leaves of its assignment."""

import re


def keeps_call(error, whole):
    """Whether the fix of an unused variable leaves the call that it was assigned from."""
    return bool(re.match(r"(?:await\s+)?[\w.]+\(", what_is_left(error, whole)))


def what_is_left(error, whole):
    """What the fix of an unused variable leaves of its assignment; empty if nothing, or if it is no assignment."""
    row, fix = error["location"]["row"], error["fix"]
    line = whole[row - 1] if row <= len(whole) else ""
    if not fix or not re.match(r"\s*\w+\s*(?::[^=]*)?=", line):
        return ""
    edit = fix["edits"][0]
    return line[edit["end_location"]["column"] - 1 :].strip() if edit["end_location"]["row"] == row else ""


def leaves_value(error, whole):
    """Whether the fix of an unused variable leaves an expression that does nothing."""
    return bool(what_is_left(error, whole)) and not keeps_call(error, whole)
