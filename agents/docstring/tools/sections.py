"""The sections of a docstring in Google, NumPy or Sphinx style, and what is wrong with them."""

import re

LINE = r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+"
GOOGLE = r"(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):\s*$"
NUMPY = r"(?:Other )?Parameters\s*$"
RAISES_FIELD = r"^\s*:(?:raises?|except|exception)\s+[`~:!\w]*?([A-Za-z_][\w.]*)`?\s*:"
SPHINX = r"\s*:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*?[\s*])?\*{0,2}(\w+)\s*:"

PLAIN_MARK = r"@?(?:\w+\.)*(?:property|cached_property|staticmethod|classmethod|abstractmethod|lru_cache|cache|final)\b"
"""Decorators that leave the parameters as they are. Others may take parameters of their own."""


def indent_of(line):
    return len(line) - len(line.lstrip())


def find_section(doc):
    """Where the parameters are described: style, first line, and the line after the last; None if they are not."""
    lines = doc.split("\n")
    for number, line in enumerate(lines):
        if re.match(GOOGLE, line.strip()):
            end = number + 1
            while end < len(lines) and (not lines[end].strip() or indent_of(lines[end]) > indent_of(line)):
                end += 1
            return "google", number, end
        if re.match(NUMPY, line.strip()) and number + 1 < len(lines) and re.match(r"\s*-{3,}\s*$", lines[number + 1]):
            end = number + 2
            while end < len(lines) and not (end + 1 < len(lines) and re.match(r"\s*-{3,}\s*$", lines[end + 1])):
                end += 1
            return "numpy", number, end
    told = [number for number, line in enumerate(lines) if re.match(SPHINX, line)]
    if not told:
        return None
    end = told[-1] + 1
    while end < len(lines) and lines[end].strip() and indent_of(lines[end]) > indent_of(lines[told[-1]]):
        end += 1
    return "sphinx", told[0], end


def read_entries(doc):
    """The described parameters: each name with the lines that describe it."""
    found = find_section(doc)
    if not found:
        return []
    style, first, end = found
    lines = doc.split("\n")[first + {"google": 1, "numpy": 2, "sphinx": 0}[style] : end]
    margin = min([indent_of(line) for line in lines if line.strip()] or [0])
    pattern = {
        "google": r"\s*\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:",
        "numpy": r"\s*(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$",
        "sphinx": SPHINX,
    }[style]
    told = []
    for line in lines:
        match = re.match(pattern, line) if line.strip() and indent_of(line) == margin else None
        if match:
            told.append(([name.strip(" *") for name in match.group(1).split(",")], [line]))
        elif told:
            told[-1][1].append(line)
    return told


def documented_parameters(facts):
    """The parameters that a docstring should describe: not `self`, and none with a leading underscore."""
    given = facts.get("parameters") or []
    if facts.get("is_method") and "staticmethod" not in facts["decorators"]:
        given = given[1:]
    return [item for item in given if item["name"] and not item["name"].startswith("_")]


def find_raises(doc):
    """Where errors are described: style, first line, the line after the last, and their names; None if they are not."""
    lines = doc.split("\n")
    fields = [(number, name) for number, line in enumerate(lines) for name in re.findall(RAISES_FIELD, line)]
    if fields:
        return "sphinx", fields[0][0], entry_end(lines, fields[-1][0]), [name for number, name in fields]
    for number, line in enumerate(lines):
        ruled = number + 1 < len(lines) and re.match(r"\s*-{3,}\s*$", lines[number + 1])
        style = "google" if line.strip() == "Raises:" else "numpy" if line.strip() == "Raises" and ruled else ""
        if style:
            start = number + (1 if style == "google" else 2)
            inner = indent_of(line) + 1 if style == "google" else indent_of(line)
            end, names = start, []
            while end < len(lines) and lines[end].strip() and indent_of(lines[end]) >= inner and not is_end(lines[end]):
                pattern = r"\s*[(`]*([A-Za-z_][\w.]*)[)`]*\s*:" if style == "google" else r"\s*([A-Za-z_][\w.]*)\s*$"
                match = re.match(pattern, lines[end]) if indent_of(lines[end]) == indent_of(lines[start]) else None
                names += [match.group(1)] if match else []
                end += 1
            if not names:  # written in a way of its own
                return None
            return style, number, end, names
    return None


def is_end(line):
    """Whether a line of a file only closes a docstring."""
    return line.strip() in ('"""', "'''")


def entry_end(lines, number):
    """The line after an entry: deeper lines belong to it."""
    end = number + 1
    while end < len(lines) and lines[end].strip() and indent_of(lines[end]) > indent_of(lines[number]):
        end += 1
    return end


def parameter_problems(facts, doc):
    """Parameters that are described but do not exist, and those that are missing in a list of all others."""
    if facts["kind"] == "class" or not find_section(doc):
        return [], []
    gone, missing = compared_names(facts, doc)
    if gone and missing:
        return (gone, missing) if renamed(gone, missing) else ([], [])
    told = described_names(doc)
    every = [item["name"] for item in facts["parameters"]]
    known = [name for name in told if name in every]
    # What is described and is no parameter may be what a missing one was called before.
    is_list = len(known) == len(told) >= len(missing) and known == [name for name in every if name in known]
    return gone if known else [], missing if known and is_list else []


def described_names(doc):
    """The names of the described parameters."""
    return [name for names, lines in read_entries(doc) for name in names]


def compared_names(facts, doc):
    """The names that are described and do not exist, and those that exist and are not described."""
    told = described_names(doc)
    every = [item["name"] for item in facts["parameters"]]
    stars = [item for item in facts["parameters"] if item["kind"].startswith("var_")]
    # `name` may describe what was renamed to `_name` because the code does not use it.
    known = [*every, *[name.strip("_") for name in every]]
    may_take_more = stars or [mark for mark in facts["decorators"] if not re.match(PLAIN_MARK, mark)]
    gone = [name for name in told if name.strip("_") not in known and name not in known and not may_take_more]
    wanted = [item["name"] for item in documented_parameters(facts) if not item["kind"].startswith("var_")]
    missing = [name for name in wanted if name not in told and not re.search(rf"(?m)\b{name}\b[^\n]{{0,30}}:", doc)]
    return gone, missing


def unclear_names(facts, doc):
    """Described parameters that do not exist, and missing ones, if nobody can tell whether they were renamed."""
    if facts["kind"] == "class" or not find_section(doc):
        return [], []
    gone, missing = compared_names(facts, doc)
    return ([], []) if not gone or not missing or renamed(gone, missing) else (gone, missing)


def renamed(gone, missing):
    """The missing parameter that one described parameter became, if there is only one of each and they are alike."""
    if len(gone) != 1 or len(missing) != 1:
        return ""
    return missing[0] if are_alike(gone[0].lower(), missing[0].lower()) else ""


def are_alike(old, new):
    """Whether one name is in the other, short for it, or a misspelling of it with the same letters."""
    short, long = (old, new) if len(old) <= len(new) else (new, old)
    if len(short) < SHORTEST:
        return False
    return short in long or sorted(old) == sorted(new) or (old[0] == new[0] and is_short_for(short, long))


SHORTEST = 3


def is_short_for(short, long):
    """Whether all letters of a name are in another in the same order."""
    at = 0
    for letter in short:
        at = long.find(letter, at) + 1
        if not at:
            return False
    return True
