"""Edits that mend an error which ruff offers no safe fix for, computed from the code around it."""

import re

from edits import NAMED, indent

NOTHING = {"B018": r"\s*\w+\s*", "PLW0127": r"\s*(\w+) = \1\s*"}
"""By rule, lines that are a statement without any effect."""
OPENING = r"\s*(?:if|elif|else|for|while|with|async|try|except|finally|class|match|case)\b"
TEXT = r"\"{3}(?s:.*?)\"{3}|'{3}(?s:.*?)'{3}|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*"
"""Strings and comments."""
BUILT_IN = ("class", "dict", "filter", "format", "hash", "id", "input", "list", "map", "object", "range", "set", "type")
IMPORT = r"(?:import|from)\s[^\\(]*"
PLAIN = r"\s*(?:#.*)?|[A-Za-z_]\w*\s*(?::[^=()]*)?=[^=()]*"
"""Lines of a module that run nothing: blank, a comment, a plain value."""


def repair(error, whole):
    """What would mend an error that has no safe fix, and who says so; no edits where nobody does."""
    fix, code = error["fix"], error["code"]
    if fix:
        edits = [] if fix["applicability"] == "safe" else fix["edits"]
        return edits, "ruff suggests it; may change behaviour"
    row, column = error["location"]["row"], error["location"]["column"]
    if code in NOTHING:
        return idle(code, whole, row), "The line does nothing"
    if code == "E701":
        return opened(whole, row, column), "Gives it a line of its own"
    if code == "E741":
        return renamed(whole, row, column), "Gives it a longer name in this function"
    if code == "B904":
        return chained(whole, row, error["end_location"]), "Names what was caught as the cause"
    if code == "E721":
        return compared(whole, row, column, error["end_location"]), "Compares types by identity"
    if code == "E402":
        return hoisted(whole, row), "Only plain values stand above it"
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


def renamed(whole, row, column):
    """The edits that give a one-letter variable another name, everywhere in its function."""
    name = whole[row - 1][column - 1]
    first, last = function(whole, row)
    parts = re.split(rf"({TEXT}|[\w.]+)", "".join(whole[first - 1 : last])) if first else []
    code = " ".join(part for part in parts if not re.match(r"[\"'#]", part))
    given = rf"\bdef\s+\w+\s*\([^)]*\b{name}\b|[(,]\s*{name}\s*=[^=]|\b(?:global|nonlocal)\b.*\b{name}\b"
    spoken = [text for text in formatted(parts) if re.search(rf"\b{name}\b", text)]
    better = name_for(name, code, "".join(whole))
    # Callers may say the name, what a formatted text says is code as well, and a quote that is left over hides code.
    if not better or spoken or re.search(given, code) or re.search(r"\"|'", code):
        return []
    edits, row, column = [], first, 1
    for part in parts:
        if part == name or part.startswith(name + "."):
            edits.append(replacement(row, column, row, column + 1, better))
        lines = re.split(r"\r\n|\r|\n", part)
        row, column = row + len(lines) - 1, len(lines[-1]) + (column if len(lines) == 1 else 1)
    return edits


def formatted(parts):
    """The texts with a prefix that makes what is between braces code."""
    return [
        text
        for prefix, between, text in zip(parts[1::2], parts[2::2], parts[3::2])
        if not between and re.fullmatch(r"[rR]?[fFtT][rR]?", prefix) and re.match(r"[\"']", text)
    ]


def name_for(name, code, everything):
    """A name that the file does not have: one of what it goes through, or a plain one. Nothing if all are taken."""
    through = re.findall(rf"\bfor\s+{name}\s+in\s+([\w.]+)", code)
    word = re.findall(r"[a-z]*$", through[0])[0] if through else ""
    own = ["line"] if word.endswith("lines") else re.findall(r"^(\w{2,}[^aeious])s$", word)
    names = [each for each in [*own, "item", "value", "entry", "element"] if each not in BUILT_IN]
    free = [each for each in names if not re.search(rf"\b{each}\b", everything)]
    return free[0] if free else ""


def function(whole, row):
    """The first and last row of the function that a line stands in; zeros outside of any."""
    rows = [number for number in above(whole, row) if re.match(NAMED, whole[number - 1])]
    if not rows or re.match(r"\s*class\b", whole[rows[0] - 1]):
        return 0, 0
    depth, last = len(indent([whole[rows[0] - 1]])), row
    while last < len(whole) and (not whole[last].strip() or len(indent([whole[last]])) > depth):
        last += 1
    return rows[0], last


def chained(whole, row, end):
    """The edits that raise an error from the one that was caught."""
    rows = [number for number in above(whole, row) if re.match(r"\s*except\b", whole[number - 1])]
    caught = re.match(r"(\s*except\*?\s+[^:#]*[^:#\s])\s*:", whole[rows[0] - 1]) if rows else None
    if not caught:
        return []
    head = caught.group(1)
    named = re.findall(r"\sas\s+(\w+)$", head)
    names = named or [each for each in ("error", "problem", "cause") if not re.search(rf"\b{each}\b", "".join(whole))]
    if not names:
        return []
    opening = [] if named else [replacement(rows[0], len(head) + 1, rows[0], len(head) + 1, f" as {names[0]}")]
    return [*opening, replacement(end["row"], end["column"], end["row"], end["column"], f" from {names[0]}")]


def compared(whole, row, column, end):
    """The edit that compares two types by `is`."""
    text = whole[row - 1][column - 1 : end["column"] - 1]
    if end["row"] != row or len(re.findall(r"[=!]=", text)) != 1:
        return []
    new = text.replace(" == ", " is ").replace(" != ", " is not ")
    return [replacement(row, column, row, end["column"], new)] if new != text else []


def hoisted(whole, row):
    """The edits that move an import up to the others, where nothing runs between."""
    line, top = whole[row - 1], row - 1
    while top and re.fullmatch(PLAIN, whole[top - 1].rstrip()):
        top -= 1
    if not top or not all(re.fullmatch(IMPORT, each.rstrip()) for each in (line, whole[top - 1])):
        return []
    moved = [replacement(top + 1, 1, top + 1, 1, line), replacement(row, 1, row + 1, 1, "")]
    return moved if re.findall(r"[\r\n]$", line) else []


def headers(whole, row):
    """The lines that a line stands under, up to its function or class."""
    return [whole[number - 1].strip() for number in above(whole, row)]


def above(whole, row):
    """The rows of the lines that a line stands under, by their indentation, up to its function or class."""
    found, depth = [], len(indent([whole[row - 1]]))
    for number in range(row - 1, 0, -1):
        line = whole[number - 1]
        if line.strip() and len(indent([line])) < depth:
            found.append(number)
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
