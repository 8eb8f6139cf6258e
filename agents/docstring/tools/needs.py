"""Whether a definition needs a docstring or a repair of it, and why not."""

import re

from prose import first_sentence_by_rule, provable_raises, words_of
from sections import find_raises, parameter_problems, renamed
from words import SMALL

from remora.scripts.shared.places import is_in_tests

MARKS = {"overload": "an `@overload` is documented elsewhere", "override": "an `@override` is documented elsewhere"}
PROPERTY = {"setter": "the property's getter is documented", "deleter": "the property's getter is documented"}
SIMPLE = r"(?:return\b[^\n]*|pass|\.\.\.|self\.\w+ = [^\n]{1,40})"

PASSED_ON = 3
"""Most lines of code that only prepare a call of a function with the same name."""


def is_checked(file, facts):
    """Whether a docstring is compared with its code: not that of a class, of a second function of a name, of a test."""
    return facts["kind"] != "class" and "#" not in facts["qualified"] and not is_in_tests(file)


def why_left_alone(file, facts, habits, above):
    """Why code without a docstring needs none, in this project; empty if it needs one."""
    for decorator in facts["decorators"]:
        last = decorator.split("(")[0].split(".")[-1]
        if last in MARKS or last in PROPERTY:
            return {**MARKS, **PROPERTY}[last]
    parts = facts["qualified"].split("#")[0].split(".")
    if is_in_tests(file) or facts["name"].startswith("test_"):
        return "it is part of the tests"
    if facts["name"].startswith("__"):
        return "what a special method does is known"
    if any(part.startswith("_") for part in parts):
        return "it is private"
    if any(kind != "class" for kind in above):
        return "it is inside a function"
    if facts.get("is_stub"):
        return "it has no body"
    if habits["inherits"]:
        return f"`{habits['inherits']}` is where it is documented"
    if not habits["wanted"]:
        return f"only {habits['documented']} of {habits['functions']} functions of this project have a docstring"
    return ""


def nothing_to_add(facts, behaviour, text):
    """Whether the body is so small that a docstring could only repeat it."""
    if facts["kind"] == "class" or first_sentence_by_rule(facts, behaviour):
        return False
    code = [line.strip() for line in body_of(facts, text) if line.strip() and not line.strip().startswith("#")]
    if len(code) <= PASSED_ON and passes_on(facts["name"], code[-1]):
        return not provable_raises(behaviour)
    is_short = len(code) == 1 or (len(code) == 2 and all(re.fullmatch(SIMPLE, line) for line in code))
    return is_short and not provable_raises(behaviour) and not behaviour.get("yields")


def passes_on(name, line):
    """Whether the last line returns what another function of the same name returns: that one is to be documented."""
    return re.match(rf"return\s+(?:await\s+)?[\w.()]*?\b_*{re.escape(name.strip('_'))}\(", line) is not None


def body_of(facts, text):
    """The lines of a definition without its header and docstring."""
    return text.split("\n")[max(0, (facts["body_line"] or facts["first"]) - facts["first"]) :]


def is_taken(name, body):
    """Whether code takes a parameter: one that may only be None, or is thrown away, is not for callers."""
    refused = rf"\s*(?:assert\s+{name}\s+is\s+None\b|assert\s+not\s+{name}\b|del\s+{name}\b)"
    said = [line for line in body if re.search(rf"\b{name}\b", line)]
    return not said or not all(re.match(refused, line) for line in said)


def repairs_of(facts, behaviour, habits, doc, body):
    """What is wrong with a docstring that is there: repairs that need no words of a model, and parameters that do."""
    gone, missing = parameter_problems(facts, doc)
    new = renamed(gone, missing)
    if new and re.search(rf"\*{gone[0]}\b", doc):
        return [], []  # it took many, and takes one: the rest of the description is about many too
    if new:
        return [{"do": "rename", "name": gone[0], "new": new}], []
    missing = [name for name in missing if is_taken(name, body)]
    repairs = [{"do": "remove", "name": name} for name in gone]
    words = {name: telling(name, habits["described"].get(name, [])) for name in missing}
    # A list that stays incomplete is not better than before.
    known = missing if all(len(words[name]) == 1 for name in missing) else []
    for name in known:
        kind, text = words[name][0]
        repairs.append({"do": "describe", "name": name, "kind": kind, "text": text, "after": name_before(name, facts)})
    told = find_raises(doc)
    if told:
        named = [plain_error(name) for name in told[3]]
        for name, text in provable_raises(behaviour):
            if plain_error(name) not in named and not name.startswith("self."):
                repairs.append({"do": "raise", "name": name, "text": text})
    return repairs, [name for name in missing if name not in known]


def plain_error(name):
    """The name of an error without its module, the same for all names of `OSError`."""
    short = name.split(".")[-1]
    return "OSError" if short in ("IOError", "EnvironmentError", "WindowsError") else short


def telling(name, described):
    """The descriptions of a parameter that say more than its name."""
    small = [*SMALL, "use", "used", "value", "optional", *words_of(name)]
    return [one for one in described if [word for word in words_of(one[1]) if word not in small]]


def name_before(name, facts):
    """The parameter before one in the signature; empty for the first."""
    every = [item["name"] for item in facts["parameters"]]
    return dict(zip(every, ["", *every]))[name]


def describe_repair(one):
    """One problem in a few words."""
    return {
        "rename": f"`{one['name']}` is now `{one.get('new')}`",
        "remove": f"`{one['name']}` is no parameter",
        "describe": f"`{one['name']}` is not described",
        "raise": f"`{one['name']}` is raised and not described",
    }[one["do"]]
