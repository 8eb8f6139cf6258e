"""Calls of a function that a test can make."""

import re

from fixtures import fixtures_of

from remora.scripts import external
from remora.scripts.shared.places import class_file, is_in_tests, is_script
from remora.scripts.shared.samples import KNOWN, kind_of, names_in, required, samples


@external
async def node_facts(path: str, node: str = "") -> dict: ...


@external
async def read_file(path: str) -> str: ...


MOST_CASES = 16
MOST_MEMBERS = 4
"""Members of an enumeration whose methods are called."""


async def construct(name, file, text):
    """Expressions that make an object of a class which `file`, with this text, knows; none if there is no sure way."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        return []
    home = await class_file(name, file, text)
    if not home:
        return []
    try:
        found = await node_facts(home, name)
    except ValueError:
        return []
    if found["kind"] != "class":
        return []
    if "Enum" in found["bases"]:
        lines = (await read_file(home)).split("\n")[found["first"] - 1 : found["last"]]
        members = [match.group(1) for line in lines if (match := re.match(r"\s+([A-Za-z]\w*) = ", line))]
        return [f"{name}.{member}" for member in members[:MOST_MEMBERS]]
    if "__init__" in found["methods"]:
        wanted = (await node_facts(home, f"{name}.__init__"))["parameters"][1:]
    else:
        wanted = [{**field, "kind": "keyword_only"} for field in found["fields"]]
    parts = []
    for parameter in required(wanted):
        values = samples(kind_of(parameter), [], [])
        # What a name suggests is a guess, and nobody believes a test of an object that is made of guesses.
        if not values or not parameter["annotation"]:
            return []
        parts.append(argument(parameter, values[0][0]))
    return [f"{name}({', '.join(parts)})"]


async def owners(facts, qualified, file, text, fixtures):
    """Expressions for the object of a method. The project's own objects first: a reader knows them."""
    above = qualified.rpartition(".")[0]
    if facts["kind"] != "method":
        return []
    return fixtures_of(above, fixtures)[:1] or await construct(above, file, text)


def argument(parameter, text):
    """One argument of a call."""
    return f"{parameter['name']}={text}" if parameter["kind"] == "keyword_only" else text


async def learn_classes(parameters, file, text):
    """Add samples of the project's classes that the parameters need."""
    for parameter in parameters:
        for name in names_in(kind_of(parameter)):
            if not samples(name, [], []) and name not in KNOWN:
                made = await construct(name, file, text)
                if made:
                    KNOWN[name] = made


def learn_fixtures(parameters, fixtures):
    """Add the project's fixtures as samples: for a class that one makes, and for a parameter of the same name."""
    for parameter in parameters:
        for name in names_in(kind_of(parameter)):
            if name[:1].isupper() and fixtures_of(name, fixtures):
                KNOWN[name] = [*fixtures_of(name, fixtures), *KNOWN.get(name, [])]


def argument_lists(parameters, texts, numbers, fixtures=()):
    """Arguments to try: first the required ones, then each optional one, then other values."""
    needed = required(parameters)
    extra = [one for one in parameters if one["default"] is not None]
    values = {one["name"]: [pair[0] for pair in samples(kind_of(one), texts, numbers)] for one in [*needed, *extra]}
    for name in [one["name"] for one in needed if one["name"] in fixtures and not one["annotation"]]:
        values[name] = [name]
    if not all(values[one["name"]] for one in needed):
        return []
    rows = [{}]
    rows += [{one["name"]: turn for one in needed} for turn in range(1, 4)]
    for turn in range(3):
        rows += [{one["name"]: turn} for one in extra if turn < len(values[one["name"]])]
    for turn in range(1, 4):
        rows += [{one["name"]: turn} for one in needed if turn < len(values[one["name"]])]
    found = []
    for row in rows:
        parts, named = [], False
        for one in parameters:
            has_own = one["name"] in row and values.get(one["name"])
            if one["default"] is not None and not has_own:
                named = True
                continue
            if one["kind"].startswith("var_"):
                continue
            choice = values[one["name"]][row.get(one["name"], 0) % len(values[one["name"]])]
            if one["kind"] == "positional_only" and named:
                parts = None
                break
            parts.append(f"{one['name']}={choice}" if named or one["kind"] == "keyword_only" else choice)
        if parts is not None and ", ".join(parts) not in found:
            found.append(", ".join(parts))
    return found[:MOST_CASES]


def callee(facts, module_name, owner):
    """How a test calls the function, with `%s` for the arguments; empty if it cannot."""
    marks = [mark.split("(")[0].split(".")[-1] for mark in facts["decorators"]]
    name = module_name.split(".")[-1]
    if facts["kind"] == "function":
        return f"{module_name}(%s)"
    above = module_name.rpartition(".")[0]
    if name == "__init__":
        return f"vars({above}(%s))"
    if "setter" in marks or "deleter" in marks or "overload" in marks or "abstractmethod" in marks:
        return ""
    if "staticmethod" in marks or "classmethod" in marks or name in ("__new__", "__class_getitem__"):
        return f"{above}.{name}(%s)"
    if not owner:
        return ""
    if "property" in marks or "cached_property" in marks:
        return f"{owner}.{name}"
    return f"{owner}.{name}(%s)"


def why_not(file, facts, above):
    """Why no test can be written for the function; empty if one can. `above`: kinds of the definitions around it."""
    if is_in_tests(file):
        return "it is part of the tests itself"
    if is_script(file):
        return "its file is no part of what the project does"
    if any(kind != "class" for kind in above):
        return "it stands inside a function and cannot be imported"
    name = facts["name"]
    if any(part.startswith("_") for part in facts["qualified"].split("#")[0].split(".")):
        return (
            "it is private: tests of what calls it are better" if not name.endswith("__") else "it is a special method"
        )
    if name == "main":
        return "it starts the program"
    if facts["is_stub"]:
        return "it has no body to test"
    return ""
