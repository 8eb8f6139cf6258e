"""The sections of a docstring in Google, NumPy or Sphinx style, and what is wrong with them."""

import re

LINE = r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+"
GOOGLE = r"(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):\s*$"
NUMPY = r"(?:Other )?Parameters\s*$"
SPHINX = r"\s*:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*?[\s*])?\*{0,2}(\w+)\s*:"


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


def why_not_needed(facts):
    """Why this code needs no docstring of its own; empty if it needs one."""
    for decorator in facts["decorators"]:
        last = decorator.split("(")[0].split(".")[-1]
        if last in ("overload", "override"):
            return f"an `@{last}` is documented elsewhere"
        if last in ("setter", "deleter"):
            return "the property's getter is documented"
    return ""


def documented_parameters(facts):
    """The parameters that a docstring should describe: not `self`, and none with a leading underscore."""
    given = facts.get("parameters") or []
    if facts.get("is_method") and "staticmethod" not in facts["decorators"]:
        given = given[1:]
    return [item for item in given if item["name"] and not item["name"].startswith("_")]


def find_problems(facts):
    """What is wrong with the docstring, one short text each."""
    if why_not_needed(facts):
        return []
    doc = facts["docstring"] or ""
    if not doc.strip():
        return ["no docstring"]
    if facts["kind"] == "class" or not find_section(doc):
        return []
    told = [name for names, lines in read_entries(doc) for name in names]
    every = [item["name"] for item in facts["parameters"]]
    gone = [f"`{name}` is no parameter" for name in told if name not in every]
    wanted = [item["name"] for item in documented_parameters(facts) if not item["kind"].startswith("var_")]
    return gone + [f"`{name}` is not described" for name in wanted if name not in told]
