"""Which cases the code rejects: conditions before `raise`, evaluated on whole cases."""

import re

from remora.scripts import external
from remora.scripts.shared.places import class_file
from remora.scripts.shared.samples import json_of, split_top


@external
async def read_file(path: str) -> str: ...


COMPARED = ("<=", ">=", "==", "!=", "<", ">", "in", "not in", "is", "is not")
CONSTANTS = {}
"""The values of texts in conditions. A cache: Monty compiles a pattern at each use, which is slow."""


def body_of(text, facts):
    """The function's statements, without triple-quoted strings and comments."""
    lines = text.replace("\r", "").split("\n")[max(0, (facts["body_line"] or facts["first"]) - facts["first"]) :]
    body = re.sub(r"(?s)\"{3}.*?\"{3}|'{3}.*?'{3}", "", "\n".join(lines))
    return re.sub(r"(?m)[ \t]+#[^\n\"']*$", "", body)


def named_numbers(source):
    """The numbers that a module names: `LOW = 1`, `LOW, HIGH = 1, 6`."""
    found = {}
    for left, right in re.findall(r"(?m)^([A-Za-z_][\w, ]*)(?::[^=\n]*)?=[ \t]*([^=\s#][^\n#]*)", source):
        names = [name.strip() for name in left.split(",") if name.strip()]
        parts = split_top(right.strip().strip("()"), ",") if len(names) > 1 else [right.strip()]
        for name, part in zip(names, parts):
            number = json_of(part.replace("_", ""))
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                found[name] = number
    return found


async def numbers_named(body, file, source):
    """The named numbers that the body uses, from its own module and from modules of the project that it imports."""
    found = named_numbers(source)
    for name in dict.fromkeys(re.findall(r"\b[A-Z][A-Z0-9_]+\b", body)):
        home = None if name in found else await class_file(name, file, source)
        found = {**named_numbers(await read_file(home) if home else ""), **found}
    return {name: number for name, number in found.items() if re.search(rf"\b{name}\b", body)}


def guards_of(body):
    """The conditions under which the function raises: an `if` before `raise`, a failed `assert`, division by zero."""
    found = re.findall(r"(?m)^[ \t]*(?:el)?if ([^\n]+):[ \t]*\n?[ \t]*raise\b", body)
    found += [f"not ({split_top(test, ',')[0]})" for test in re.findall(r"(?m)^[ \t]*assert ([^\n]+)", body)]
    plain = re.sub(r"\"[^\"\n]*\"|'[^'\n]*'", '""', body)
    divisors = re.findall(r"(?://?|%)=?[ ]*(len\([\w.]+\)|[A-Za-z_][\w.]*(?![\w(.]))", plain)
    return found + [f"{name} == 0" for name in divisors]


def loops_of(body):
    """What each loop variable runs over: `for mark in marks`."""
    found = re.findall(r"\bfor ([\w, ]+?) in ([^\n:\]]+)", body)
    return {names.split(",")[-1].strip(): over for names, over in found}


def loop_variable(guard, loops, parameters):
    """The loop variable that a condition uses; empty if there is none."""
    own = [one["name"] for one in parameters]
    return next(iter([name for name in loops if name not in own and re.search(rf"\b{name}\b", guard)]), "")


def loop_values(over, known):
    """The values of a loop variable, if it runs over a known value."""
    words = over.replace("(", " ").replace(")", " ").replace(",", " ").replace(".", " ").split()
    names = [name for name in words if name in known]
    value = known[names[0]] if names else []
    if isinstance(value, dict):
        return list(value.values()) if ".items(" in over or ".values(" in over else list(value)
    return list(value) if isinstance(value, (list, str)) else []


def operand(text, known):
    """The value of a constant or a name, in a list of one; an empty list if it is unknown."""
    text = text.strip()
    if text not in CONSTANTS:
        CONSTANTS[text] = [None] if text == "None" else [one for one in [json_of(text)] if one is not None]
    if CONSTANTS[text]:
        return CONSTANTS[text]
    if text.startswith("len(") and text.endswith(")"):
        inner = operand(text[4:-1], known)
        return [len(inner[0])] if inner and isinstance(inner[0], (str, list, dict)) else []
    if text[:1] in ("(", "[", "{") and text[-1:] in (")", "]", "}"):
        parts = [operand(part, known) for part in split_top(text[1:-1], ",") if part]
        return [[part[0] for part in parts]] if parts and all(parts) else []
    names = text.removesuffix(".strip()").split(".")
    if names[0] not in known:
        return []
    value = known[names[0]]
    for name in names[1:]:
        if not isinstance(value, dict) or name not in value:
            return []
        value = value[name]
    return [value.strip() if isinstance(value, str) and text.endswith(".strip()") else value]


def clauses(text, word):
    """Split a condition at `and` or `or`, but not inside brackets."""
    parts, held = [], ""
    for part in text.split(f" {word} "):
        held = f"{held} {word} {part}" if held else part
        if held.count("(") == held.count(")"):
            parts.append(held)
            held = ""
    return [*parts, held] if held else parts


def strip_brackets(text):
    """The text without a pair of brackets around it."""
    text = text.strip()
    inner = text[1:-1]
    is_one = text[:1] == "(" and text[-1:] == ")" and inner.count("(") == inner.count(")")
    return inner.strip() if is_one and inner.find("(") <= inner.find(")") else text


def is_true(test, known):
    """Whether a condition is true; None if that is unknown."""
    test = strip_brackets(test)
    for word, wins in (("or", True), ("and", False)):
        parts = clauses(test, word)
        if len(parts) > 1:
            told = [is_true(part, known) for part in parts]
            return wins if wins in told else (None if None in told else not wins)
    if test.startswith("not "):
        told = is_true(test[4:], known)
        return None if told is None else not told
    return is_chain_true(test, known)


def is_chain_true(test, known):
    """Whether a chain of comparisons such as `LOW <= mark <= HIGH`, or a single value, is true."""
    marks, texts = [], [""]
    for word in test.replace(" not in ", " not_in ").replace(" is not ", " is_not ").split(" "):
        if word.replace("_", " ") in COMPARED:
            marks.append(word.replace("_", " "))
            texts.append("")
        else:
            texts[-1] = f"{texts[-1]} {word}"
    values = [operand(text, known) for text in texts]
    if not all(values):
        return None
    try:
        pairs = zip(values, marks, values[1:])
        return all(compare(left[0], mark, right[0]) for left, mark, right in pairs) if marks else bool(values[0][0])
    except TypeError:
        return None


def compare(left, mark, right):
    if mark in ("==", "is"):
        return left == right
    if mark in ("!=", "is not"):
        return left != right
    if mark in ("in", "not in"):
        return (left in right) == (mark == "in")
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[mark]


def is_rejected(case, code):
    """Whether the code raises for these arguments, as far as its conditions can be read."""
    known = {**code["named"], **case}
    for guard, inner in code["guards"]:
        rounds = [{**known, inner: one} for one in loop_values(code["loops"][inner], known)] if inner else [known]
        if any(is_true(guard, each) is True for each in rounds):
            return True
    return False
