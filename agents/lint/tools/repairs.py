"""Edits for errors without a safe fix of ruff, computed from the code around them."""

import re

from blocks import enclosing_headers, enclosing_rows, function_rows, indent
from mistakes import is_unchecked
from prints import is_output
from unused import loses_meaning

UNWANTED = ("RUF059", "E712", "W291", "W293")
"""Rules whose fix only puts an underscore before a name, asks for truth instead of equality, or changes a text."""
OVERLOADED = r"\s*(?:import|from)\s+(?:sqlalchemy|numpy|pandas|peewee|pony|polars|dask|sympy|playhouse|mongoengine)\b"
"""Libraries whose objects are compared with `== None` on purpose."""
NOTHING = {"B018": r"\s*\w+\s*", "PLW0127": r"\s*(\w+) = \1\s*"}
"""By rule, the form of a line that is a statement without effect."""
OPENING = r"\s*(?:if|elif|else|for|while|with|async|try|except|finally|class|match|case)\b"
TEXT = r"\"{3}(?s:.*?)\"{3}|'{3}(?s:.*?)'{3}|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*"
"""Strings and comments."""
TAKEN = (
    "bin", "bool", "chr", "dict", "dir", "except", "filter", "float", "format", "hash", "help", "hex", "import",
    "input", "int", "iter", "len", "list", "map", "max", "min", "next", "object", "oct", "open", "ord", "print",
    "return", "round", "set", "str", "sum", "super", "zip",
)  # fmt: skip
"""Names that Python uses already."""
INDIRECT = r"\b(?:class|locals|globals|vars|eval|exec)\b"
"""Ways to reach a variable other than by its name."""
TYPE, NAME = r"type\([^()]*\)", r"[A-Za-z_][\w.]*"
IMPORT = r"(?:import|from)\s+[^\s.*][^\\(*]*"
PLAIN = r"\s*(?:#.*)?|[A-Za-z_]\w*(?:\s*:\s*\w+)?\s*=\s*(?:-?[\d_.]+|\"[^\"']*\"|'[^\"']*'|None|True|False)\s*(?:#.*)?"
"""Lines of a module without side effects: blank, a comment, a plain value."""


def repair(error, whole):
    """Edits that fix an error without a safe fix, and the reason to offer them; no edits if none is known."""
    fix, code = error["fix"], error["code"]
    if fix and code != "E402":  # newer versions of ruff move an import over any statement, such as one of `sys.path`
        unwanted = adds_brackets(fix["edits"]) or code in UNWANTED or (code == "F841" and loses_meaning(error, whole))
        unwanted = unwanted or loses_comment(fix["edits"], whole) or contradicts_type(fix["edits"], whole)
        unwanted = unwanted or (code in ("T201", "T203") and is_output(error, whole))
        unwanted = unwanted or (code == "E711" and any(re.match(OVERLOADED, line) for line in whole))
        edits = [] if fix["applicability"] == "safe" or unwanted else fix["edits"]
        return edits, "ruff suggests it; may change behaviour"
    row, column = error["location"]["row"], error["location"]["column"]
    if code in NOTHING:
        return delete_statement(code, whole, row), "The line does nothing"
    if code == "F401" and re.fullmatch(r"import \w+", whole[row - 1].rstrip()):
        return [replacement(row, 1, row + 1, 1, "")], "The package's `__all__` does not name it"
    if code == "E701":
        return split_statement(whole, row, column), "Gives it a line of its own"
    if code == "E741":
        return rename_variable(whole, row, column), "Gives it a longer name in this function"
    if code == "B904":
        return chain_exception(whole, row, error["end_location"]), "Names what was caught as the cause"
    if code == "E721":
        return compare_types(whole, row, column, error["end_location"]), "Compares types by identity"
    if code == "B015" and is_unchecked(error, whole):
        return [replacement(row, column, row, column, "assert ")], "The comparison does nothing without `assert`"
    if code == "E402":
        return move_import(whole, row), "Only plain values stand between; may change behaviour"
    return [], ""


def loses_comment(edits, whole):
    """Whether edits take a line away that has a comment behind its code: it says more than the code."""
    gone = [edit for edit in edits if not edit["content"] and edit["location"]["row"] < edit["end_location"]["row"]]
    rows = [row for edit in gone for row in range(edit["location"]["row"], edit["end_location"]["row"])]
    return any(re.search(r"\S\s+#", whole[row - 1]) for row in rows)


def contradicts_type(edits, whole):
    """Whether edits give a parameter the default None, and its type does not say so: a type checker would object."""
    starts = [edit["location"] for edit in edits if edit["content"] == "None"]
    heads = [whole[start["row"] - 1][: start["column"] - 1] for start in starts]
    types = [found for head in heads for found in re.findall(r":\s*([^=:]*[^=:\s])\s*=\s*$", head)]
    return any(not re.search(r"\b(?:None|Optional|Any|object)\b", said) for said in types)


def adds_brackets(edits):
    """Whether edits only put brackets around several lines: those lines need a formatter afterwards."""
    first, last = edits[0], edits[-1]
    added = [edit["content"] for edit in edits if edit["location"] == edit["end_location"]]
    return added == ["(", ")"] and len(edits) == 2 and first["location"]["row"] < last["location"]["row"]


def delete_statement(code, whole, row):
    """The edit that deletes a statement without effect."""
    above = enclosing_headers(whole, row)
    # Inside `try` and `with`, a bare name may test whether it is defined. In a class body, `x = x` makes an attribute.
    guarded = any(re.match(r"(?:async\s+)?(?:try|with)\b", line) for line in above)
    inside = any(re.match(r"(?:async\s+)?def\b", line) for line in above)
    if guarded or not inside or not re.fullmatch(NOTHING[code], whole[row - 1]):
        return []
    return [replacement(row, 1, row + 1, 1, "")]


def split_statement(whole, row, column):
    """The edit that moves the statement after a colon to a line of its own."""
    line = whole[row - 1]
    body = line[column:].lstrip()
    if not re.match(OPENING, line) or line[column - 1] != ":" or not body or body.startswith("\\"):
        return []
    end = (re.findall(r"(?:\r\n|\r|\n)$", line) or ["\n"])[0]
    return [replacement(row, column + 1, row, len(line) - len(body) + 1, end + indent([line]) + indent_step(whole))]


def replacement(row, column, end_row, end_column, content):
    """An edit in the form that ruff uses."""
    start, end = {"row": row, "column": column}, {"row": end_row, "column": end_column}
    return {"location": start, "end_location": end, "content": content}


def rename_variable(whole, row, column):
    """The edits that rename a one-letter variable everywhere in its function."""
    name = whole[row - 1][column - 1]
    first, last = function_rows(whole, row)
    parts = re.split(rf"({TEXT}|[\w.]+)", "".join(whole[first - 1 : last])) if first else []
    code = " ".join(part for part in parts if not re.match(r"[\"'#]", part))
    better = name_for(name, code, "".join(whole))
    if not better or not is_local(name, code) or is_mentioned(name, parts):
        return []
    edits, row, column = [], first, 1
    for part in parts:
        if part == name or part.startswith(name + "."):
            edits.append(replacement(row, column, row, column + 1, better))
        lines = re.split(r"\r\n|\r|\n", part)
        row, column = row + len(lines) - 1, len(lines[-1]) + (column if len(lines) == 1 else 1)
    return edits


def is_local(name, code):
    """Whether a name in a function is only a local variable: no parameter, keyword, attribute or outer variable."""
    said = rf"[(,]\s*{name}\s*=[^=]|\b(?:global|nonlocal)\b.*\b{name}\b|\blambda\b[^:]*\b{name}\b|\.\s+{name}\b"
    given = any(re.search(rf"\b{name}\b", header_of(rest)) for rest in re.split(r"\bdef\b", code)[1:])
    # An unmatched quote would hide code.
    return not given and not re.search(rf"{said}|{INDIRECT}|[\"']", code)


def header_of(code):
    """The code up to the colon that ends the header of a function."""
    depth = 0
    for at, sign in enumerate(code):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == ":" and not depth:
            return code[:at]
    return code


def is_mentioned(name, parts):
    """Whether a string may refer to the name, or is an f-string that the pattern has cut."""
    texts = [part for part in parts if re.match(r"[\"']", part)]
    code = format_strings(parts)
    inside = any(re.search(rf"\b{name}\b", text) or text.count("{") != text.count("}") for text in code)
    return inside or any(re.search(rf"@{name}\b|\{{{name}\b|\({name}\)", text) for text in texts)


def format_strings(parts):
    """The strings with an `f` or `t` prefix: what is between braces is code."""
    return [
        text
        for prefix, between, text in zip(parts[1::2], parts[2::2], parts[3::2])
        if not between and re.fullmatch(r"[rR]?[fFtT][rR]?", prefix) and re.match(r"[\"']", text)
    ]


def name_for(name, code, everything):
    """The singular of what the loop runs over, if the file does not use it; empty without one.

    A plain word such as `item` says no more than the letter did: such a rename is nobody's improvement.
    """
    through = re.findall(rf"\bfor\s+{name}\s+in\s+([\w.]+)", code)
    word = re.findall(r"[a-z]*$", through[0])[0] if through else ""
    single = ["line"] if word.endswith("lines") else re.findall(r"^(\w{2,}[^aeious])s$", word)
    free = [each for each in single if each not in TAKEN and not re.search(rf"\b{each}\b", everything)]
    return free[0] if free else ""


def chain_exception(whole, row, end):
    """The edits that add `from error` to a `raise` inside `except`."""
    rows = [number for number in enclosing_rows(whole, row) if re.match(r"\s*except\b", whole[number - 1])]
    caught = re.match(r"(\s*except\*?\s+[^:#]*[^:#\s])\s*:", whole[rows[0] - 1]) if rows else None
    if not caught or not re.match(r"\s*raise\b", whole[row - 1]):
        return []
    head = caught.group(1)
    named = re.findall(r"\sas\s+(\w+)$", head)
    names = named or [each for each in ("error", "problem", "cause") if not re.search(rf"\b{each}\b", "".join(whole))]
    if not names or is_rebound(names[0], whole[rows[0] : row]):
        return []
    opening = [] if named else [replacement(rows[0], len(head) + 1, rows[0], len(head) + 1, f" as {names[0]}")]
    return [*opening, replacement(end["row"], end["column"], end["row"], end["column"], f" from {names[0]}")]


def is_rebound(name, lines):
    """Whether the name of a caught error is assigned again or deleted before the last line, or raised itself."""
    new = rf"\b{name}\s*(?::[^=]*)?=[^=]|:=|\bas\s+{name}\b|\bdel\b|\bfor\b.*\b{name}\b.*\bin\b|\braise\s+{name}\b"
    return any(re.search(new, line) for line in lines)


def compare_types(whole, row, column, end):
    """The edit that compares types with `is`."""
    text = whole[row - 1][column - 1 : end["column"] - 1] if end["row"] == row else ""
    if not re.fullmatch(rf"{TYPE} [=!]= (?:{TYPE}|{NAME})|{NAME} [=!]= {TYPE}", text):
        return []
    new = text.replace(" == ", " is ").replace(" != ", " is not ")
    return [replacement(row, column, row, end["column"], new)]


def move_import(whole, row):
    """The edits that move an import up to the others, if only plain values that it does not bind are between."""
    line, top = whole[row - 1], row - 1
    while top and re.fullmatch(PLAIN, whole[top - 1].rstrip()):
        top -= 1
    if not top or not all(re.fullmatch(IMPORT, each.rstrip()) for each in (line, whole[top - 1])):
        return []
    between = whole[top : row - 1]
    bound = [word for word in re.findall(r"\w+", line) if word not in ("import", "from", "as")]
    shared = any(re.search(rf"\b{word}\b", each) for word in bound for each in between)
    if shared or not between or between[-1].lstrip().startswith("#") or not re.findall(r"[\r\n]$", line):
        return []
    return [replacement(top + 1, 1, top + 1, 1, line), replacement(row, 1, row + 1, 1, "")]


def indent_step(whole):
    """One step of indentation in this file."""
    for number, line in enumerate(whole[1:]):
        above = whole[number]
        outer, inner = indent([above]), indent([line])
        if above.rstrip().endswith(":") and inner.startswith(outer) and inner != outer:
            return inner[len(outer) :]
    return "    "
