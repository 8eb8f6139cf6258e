"""Arguments that someone has written: in the function's doctests, in the project's tests, and where it is called."""

import re

from fixtures import parse_json
from objects import find_problems

from remora.scripts import external
from remora.scripts.shared.samples import json_of, required, split_top


@external
async def search_content(pattern: str, glob: str = "") -> list[dict]: ...


def docstring_cases(doc, name, parameters):
    """The calls in a docstring's examples, `>>> f(1, b="x")`, as cases, if their values are plain and fit."""
    calls = re.findall(rf"(?m)^[ \t]*>>>[^\n]*?\b{name}\(([^\n]*)\)[ \t]*$", doc or "")
    return fitting_cases(calls, parameters)


def fitting_cases(calls, parameters):
    """The calls as cases, if their values are plain and fit."""
    made = []
    for text in calls:
        case = parse_case(text, [one for one in parameters if not one["kind"].startswith("var_")])
        if case and not find_problems({"cases": [case]}, parameters) and case not in made:
            made.append(case)
    return made


def parse_case(text, given):
    """The arguments of one call by name; empty if one of them is not a plain value."""
    case = {}
    for place, part in enumerate(split_top(text, ",")):
        named = re.match(r"(\w+)[ ]*=(?!=)", part)
        name = named.group(1) if named else (given[place]["name"] if place < len(given) else "")
        value = part.partition("=")[2].strip() if named else part
        known = json_of(value) if json_of(value) is not None else parse_json(value.replace("'", '"'))
        if not name or known is None:
            return {}
        case[name] = known
    return case


def inside_brackets(text):
    """The text up to the bracket that closes a call; empty if it does not close on this line."""
    depth, quote = 0, ""
    for place, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                return text[:place]
    return ""


async def called_cases(facts, parameters):
    """The calls of a function in the project, those in tests first, as cases."""
    name = facts["name"]
    if name.startswith("__"):
        return []
    try:
        hits = await search_content(rf"\b{name}\(", "**/*.py")
    except OSError:  # the search takes too long
        return []
    hits = sorted(hits, key=lambda hit: "test" not in hit["path"])
    lead = r"[.]" if facts["kind"] == "method" else r"(?:^|[^\w.])(?:\w+\.)?"
    found = [re.split(rf"{lead}{name}\(", hit["text"])[1:2] for hit in hits if f"def {name}(" not in hit["text"]]
    return fitting_cases([inside_brackets(one[0]) for one in found if one], parameters)


def why_unbelievable(parameters, cases):
    """Why values would only be guesses: a parameter has no type, and nobody has written a call; empty if not."""
    guessed = [one["name"] for one in required(parameters) if not one["annotation"]]
    return f"no type, example, test or call says what `{guessed[0]}` is" if guessed and not cases else ""
