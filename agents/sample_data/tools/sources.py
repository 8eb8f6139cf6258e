"""Arguments that someone has written: in doctests, in the project's tests and documents, and where it is called."""

import re

from fixtures import parse_json
from objects import find_problems
from values import docstring_texts, keyed_values, parseable_texts

from remora.scripts import external
from remora.scripts.shared.places import is_in_tests
from remora.scripts.shared.samples import json_of, required, split_top


@external
async def search_content(pattern: str, glob: str = "") -> list[dict]: ...


@external
async def search_files(pattern: str) -> list[str]: ...


def docstring_cases(doc, name, parameters):
    """The calls in a docstring's examples, `>>> f(1, b="x")`, as cases, if their values are plain and fit."""
    calls = re.findall(rf"(?m)^[ \t]*>>>[^\n]*?\b{name}\(([^\n]*)\)[ \t]*$", doc or "")
    return fitting_cases(calls, parameters)


def fitting_cases(calls, parameters):
    """The calls as cases, if their values are plain and fit."""
    made = []
    for text in calls:
        if len(made) == ENOUGH:
            break
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


COMMON = (
    "add|append|clear|close|copy|count|decode|discard|encode|endswith|extend|find|flush|format|fromkeys|get|index|insert|items|join|keys"
    "|lower|next|pop|popitem|read|readline|remove|replace|reverse|search|seek|send|sort|split|startswith|strip|tell|union|update|upper|values|write"
)
"""Methods that objects of others have too: who is called cannot be seen."""


async def called_cases(facts, parameters, module):
    """The calls of a function in the project, those in tests first, as cases. Calls of a namesake are left out."""
    name = facts["name"]
    is_method = facts["kind"] == "method"
    if name.startswith("__") or (is_method and re.fullmatch(COMMON, name)):
        return []
    try:
        hits = await search_content(rf"\b{name}\(", "**/*.py")
        for glob in DOCUMENTS:
            hits += await search_content(rf"\b{name}\(", glob)
    except OSError:  # the search takes too long
        return []
    defined = [hit for hit in hits if re.search(rf"\bdef {name}\(", hit["text"])]
    if is_method and len(defined) > 1:
        return []
    owners = "|".join([re.escape(part) for part in module.split(".")])
    lead = r"[.]" if is_method else rf"(?:^|[^\w.])(?:(?:{owners})\.)*"
    # What its own file passes to a function is a part of the code, and no example of it.
    own = [hit["path"] for hit in defined]
    hits = [hit for hit in hits if hit["path"] not in own or re.match(r"\s*>>> ", hit["text"])]
    hits = sorted(hits, key=lambda hit: "test" not in hit["path"])
    texts = list(dict.fromkeys(hit["text"][:LONGEST] for hit in hits))[:MOST_CALLS]
    found = [re.split(rf"{lead}{name}\(", text)[1:2] for text in texts]
    return fitting_cases([inside_brackets(one[0]) for one in found if one], parameters)


DOCUMENTS = ("*.md", "*.rst", "docs/**/*.md", "docs/**/*.rst")
"""Documents of a project, whose examples show how a function is called."""
MOST_CALLS, LONGEST, ENOUGH = 40, 200, 8
"""Lines with a call that are read, their characters, and the cases that are enough: a common function has hundreds."""
FEWEST = 2
"""So many written calls show how a function is used."""


async def has_tests(file, name):
    """Whether tests show how a function is called, or others do not call it: then types alone would be guesses."""
    module = file.rpartition("/")[2]
    if name == "main" or (module.startswith("_") and not module.startswith("__")):
        return True
    return bool(await test_files())


async def test_files():
    """The paths of the project's tests."""
    return [*await search_files("**/test*.py"), *await search_files("**/*_test.py")]


READS = r"\bfixtures?/|\bjson\.loads?\("
"""How a test reads values from a file."""


async def why_unread():
    """Why no test would read a fixture file; empty if the project's tests read some, or there are no tests."""
    if not await test_files() or await search_files("**/fixtures/*.json"):
        return ""
    try:
        hits = await search_content(READS, "**/*.py")
    except OSError:  # the search takes too long
        hits = []
    return "" if any(is_in_tests(hit["path"]) for hit in hits) else "no test of this project reads values from a file"


def why_unbelievable(parameters, cases, is_tested, code):
    """Why values would only be guesses; empty if calls, types or the code say what to give."""
    needed = [one["name"] for one in required(parameters) if not one["annotation"]]
    guessed = [one["name"] for one in parameters if not one["annotation"] and not one["kind"].startswith("var_")]
    # Flags alone show nothing of what it works on.
    plain = [{name: value for name, value in case.items() if not isinstance(value, bool)} for case in cases]
    cases = [case for place, case in enumerate(plain) if case and case not in plain[:place]]
    if len(cases) >= FEWEST:
        return ""
    if guessed and not cases:
        return f"no type, example, test or call says what `{(needed or guessed)[0]}` is"
    if not is_tested and not guessed and cases:
        return ""
    if not is_tested and not guessed:
        unsaid = [one["name"] for one in required(parameters) if not is_described(one, code)]
        return f"its type alone does not say which text `{unsaid[0]}` is" if unsaid else ""
    return f"{'only one' if cases else 'no'} example, test or call shows what it is given"


TEXTS = r"\b(?:str|bytes|bytearray|Any|object|AnyStr|Text|StrPath|PathLike|Path)\b"


TELLING = r"path|file|folder|url|json"
"""Names that say which text a parameter is."""


def is_described(parameter, code):
    """Whether more than its type says which text a parameter is: an example, a form that the code reads."""
    kind, name = parameter["annotation"] or "", parameter["name"]
    if not re.search(TEXTS, kind) or re.search(TELLING, name):
        return True
    in_words = re.search(rf"(?m)^[ \t]*(?:[:@]param[ ]+)?(?:\w+[ ]+)?\*?`?{name}\b[^\n]{{0,40}}:", code["doc"] or "")
    if in_words and "[" in kind:  # words are enough for what a list holds
        return True
    own = docstring_texts(code["doc"], parameter, code["parameters"], code["raises"])
    guarded = [guard for guard, _ in code["guards"] if re.search(rf"\b{name}\b", guard)]
    return bool(own or guarded or parseable_texts(code["body"], name) or keyed_values(name, code))
