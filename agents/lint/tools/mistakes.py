"""Mistakes that count although no settings name their rule, because the code or its tests prove them."""

import re

from blocks import NAMED, enclosing_headers, function_rows

from remora.scripts import external
from remora.scripts.shared.places import is_in_tests


@external
async def run_command(argv: list[str], stdin: str = "", files: dict = {}, seconds: int = 30) -> dict: ...


GROWS = r"append|extend|insert|update|setdefault|add|pop|popitem|remove|discard|clear|sort|reverse"
"""Methods that change a list, dictionary or set."""
ON_PURPOSE = r"_|cache|memo|seen|visited|store|registry|shared|state|count"
"""Parts of names of defaults that are meant to last from call to call."""
PASSES = ["pytest", "-q", "-rA", "--tb=no", "--no-header", "-p", "no:cacheprovider"]


def is_mistake(error, file, whole):
    """Whether an error of a rule that the project does not name is proven, or can be."""
    if error["code"] == "B015":
        return is_in_tests(file) and is_unchecked(error, whole)
    return error["code"] != "B006" or is_changed_default(error, whole)


def is_unchecked(error, whole):
    """Whether a comparison that does nothing is meant as a check of its test. Inside `with`, it may have to raise."""
    row, end = error["location"]["row"], error["end_location"]["row"]
    around = enclosing_headers(whole, row)
    in_test = len(around) == 1 and bool(re.match(r"(?:async\s+)?def\s+test", around[0]))
    return in_test and row == end and any(re.match(r"\s*assert\b", line) for line in whole)


def is_changed_default(error, whole):
    """Whether a function changes the list, dictionary or set that is the default of a parameter."""
    row, column = error["location"]["row"], error["location"]["column"]
    name = (re.findall(r"(\w+)\s*(?::[^=,]*)?=\s*$", whole[row - 1][: column - 1]) or [""])[0]
    head = row
    while head and not re.match(NAMED, whole[head - 1]):
        head -= 1
    if not name or not head or re.search(ON_PURPOSE, name) or "#" in whole[row - 1]:
        return False
    first, last = function_rows(whole, first_body_row(whole, row))
    body = "".join(whole[row:last]) if first == head else ""
    changed = rf"(?m)(?<![\w.]){name}(?:\.(?:{GROWS})\(|\[[^\]\n]*\]\s*[-+|*/]?=[^=]|\s*[+|]=)|\bdel\s+{name}\["
    replaced = rf"(?m)^\s*{name}\s*=[^=]|\bfor\s+{name}\b|\bglobal\b|\byield\b"
    return bool(re.search(changed, body)) and not re.search(replaced, body)


def first_body_row(whole, row):
    """The first row after a function's header, of which `row` is a part."""
    while row < len(whole) and not re.search(r":\s*(?:#.*)?$", whole[row - 1].rstrip()):
        row += 1
    return min(row + 1, len(whole))


def test_names(whole, rows):
    """The names of the functions around these rows."""
    firsts = [function_rows(whole, row)[0] for row in rows]
    return [re.findall(NAMED, whole[first - 1])[0] for first in firsts if first]


async def refusal_of_asserts(file, text, names, seconds):
    """Why new assertions in these tests are refused: a test does not pass with them, or was not run; else empty."""
    try:
        done = await run_command([*PASSES, file], files={file: text}, seconds=seconds)
    except OSError as error:  # no sandbox, or stopped at its limit
        return f"Nothing shows that it holds as an assertion, the tests cannot be run: {error}"[:150]
    for name in names:
        ends = re.findall(rf"(?m)^(PASSED|FAILED|ERROR) \S*::{name}\b", done["stdout"])
        if "PASSED" not in ends:
            return f"`{name}` does not pass if the comparison is an assertion, or is not run"
        if len(set(ends)) > 1:
            return f"`{name}` fails in some cases if the comparison is an assertion"
    return ""
