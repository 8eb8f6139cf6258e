"""First calls of a function of which no test, type or document shows one: at the edges that its own code has."""

import ast
import inspect

from .numbers import compared, near_to

KINDS = ("'a'", "5", "None", "b'a'", "[]")
"""A value of each usual kind, the usual mistakes first: code that checks kinds refuses some."""
MOST = 24


def seeds(changes, spec):
    """Calls with one value that the code compares its only argument with; and calls with a value of each kind."""
    function, definition = changes.live[0], changes.definition
    usual = list(inspect.signature(function).parameters.values())[1 if spec["bound"] else 0 :]
    needed = [
        one
        for one in usual
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    extra = [one for one in usual if one.default is one.empty and one.kind is one.KEYWORD_ONLY]
    if len(needed) != 1 or extra or "%s" not in spec["call"]:
        return [], []
    name = needed[0].name
    numbers = compared(function, definition, name)
    found = [repr(number + near) for number in numbers for near in (0, -1, 1) if type(number) in (int, float)]
    found += [repr(text) for text in texts_compared(definition, name)]
    found += ["''", "[]", "{}", "0"] if is_emptiness_checked(definition, name) else []
    edges = [spec["call"].replace("%s", one) for one in dict.fromkeys(found)][:MOST]
    return edges, [spec["call"].replace("%s", one) for one in KINDS]


def values_compared(changes):
    """The numbers near those that the code compares with, and the texts that it compares with."""
    definition = changes.definition
    names = {one.id for one in ast.walk(definition) if isinstance(one, ast.Name)}
    texts = [text for name in names for text in texts_compared(definition, name)]
    return {*near_to(compared(changes.live[0], definition)), *texts}


def texts_compared(definition, name):
    """The short texts that a parameter is compared with, and members of lists of them."""
    found = []
    for part in [one for one in ast.walk(definition) if isinstance(one, ast.Compare)]:
        if any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(part)):
            found += [
                one.value for one in ast.walk(part) if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
    return [one for one in found if len(one) <= 20]


def is_emptiness_checked(definition, name):
    """Whether the code asks if a parameter is empty: `if not text`, `if len(text) == 0`."""
    for part in ast.walk(definition):
        if isinstance(part, (ast.If, ast.IfExp)):
            text = ast.unparse(part.test)
            if text in (name, f"not {name}") or f"len({name})" in text or f"not {name} " in f"{text} ":
                return True
    return False
