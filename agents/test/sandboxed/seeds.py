"""First calls of a function of which no test, type or document shows one: at the edges that its own code has."""

import ast
import inspect

from .numbers import compared, near_to

KINDS = ("'a'", "5", "None", "b'a'", "[]")
"""A value of each usual kind, the usual mistakes first: code that checks kinds refuses some."""
MOST, MOST_NEEDED = 24, 3
"""Calls of one sort, and required arguments."""


def seeds(changes, spec):
    """Calls with a value that the code compares its only argument with; and calls that it may refuse."""
    function, definition, call = changes.live[0], changes.definition, spec["call"]
    usual = list(inspect.signature(function).parameters.values())[1 if spec["bound"] else 0 :]
    needed = [
        one
        for one in usual
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    extra = [one for one in usual if one.default is one.empty and one.kind is one.KEYWORD_ONLY]
    if len(needed) > MOST_NEEDED or extra or "%s" not in call:
        return [], []
    edges = edge_values(function, definition, needed[0].name) if len(needed) == 1 else []
    edges = [one for one in edges if len(needed) == 1 and fits(one, needed[0].annotation)]
    refused = list(KINDS) if len(needed) == 1 else []
    refused += guarded(function, definition, usual, needed)
    filled = [[call.replace("%s", one) for one in dict.fromkeys(found)][:MOST] for found in (edges, refused)]
    return filled[0], filled[1]


def fits(text, annotation):
    """Whether a value can be meant by an annotation; any can without one."""
    kind = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    made = type(ast.literal_eval(text)).__name__
    return annotation is inspect.Parameter.empty or made in kind or (made == "int" and "float" in kind)


def edge_values(function, definition, name):
    """Values at the edges that the code has for a parameter."""
    found = [repr(one) for one in numbers_near(function, definition, name)]
    found += [repr(text) for text in texts_compared(definition, name)]
    return found + (["''", "[]", "{}", "0"] if is_emptiness_checked(definition, name) else [])


def numbers_near(function, definition, name):
    """The numbers that a parameter is compared with, and their neighbours."""
    numbers = [one for one in compared(function, definition, name) if type(one) in (int, float)]
    return [number + near for number in numbers for near in (0, -1, 1)]


def guarded(function, definition, usual, needed):
    """Arguments with one parameter below or above what the code compares it with, and plain values for the others."""
    found = []
    for one in [each for each in usual if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]:
        limits = numbers_near(function, definition, one.name)
        limits += [
            other.default + step for other in usual for step in (-1, 1) if is_compared_with(definition, one, other)
        ]
        for kind in KINDS[:2] if len(needed) > (one in needed) else KINDS[:1]:
            others = [kind for each in needed if each is not one]
            place = needed.index(one) if one in needed else None
            for limit in dict.fromkeys(limits):
                given = [*others, f"{one.name}={limit!r}"]
                if place is not None:
                    given = [*others[:place], repr(limit), *others[place:]]
                found.append(", ".join(given))
    return found


def is_compared_with(definition, one, other):
    """Whether the code compares a parameter with another one whose default is a number."""
    if one is other or type(other.default) not in (int, float):
        return False
    for part in [each for each in ast.walk(definition) if isinstance(each, ast.Compare)]:
        names = {each.id for each in ast.walk(part) if isinstance(each, ast.Name)}
        if {one.name, other.name} <= names:
            return True
    return False


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
