"""Which numbers a person could have written as an argument: nobody believes a month 2000 or a weight of 51545."""

import ast
import inspect
import re

from .values import plain_values

NEAR = (-1, 0, 1)
SMALL = 12
ROUND = (15, 20, 25, 50, 99, 100, 101, 1000, 0.5, 1.5, 2.5, -0.5)
"""Numbers that a reader takes for an example of a number."""


class Numbers:
    """By parameter, the numbers that tests pass to it; and those that the code compares with or its docstring names."""

    def __init__(self, function, definition, written, bound):
        usual = list(inspect.signature(function).parameters.values())[1 if bound else 0 :]
        self.names = [one.name for one in usual if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        self.typed = {one.name for one in usual if one.annotation is not one.empty}
        self.edges = {"": near_to(compared(function, definition))}
        self.edges |= {name: near_to(compared(function, definition, name)) for name in self.names}
        self.given = {}
        for text in [*written, *examples(function)]:
            for name, part in self.arguments(text):
                self.given.setdefault(name, set()).update(numbers_in(part))

    def arguments(self, text):
        """The arguments of a call, each with the name of its parameter; none if it is no call."""
        try:
            call = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError):
            return []
        if not isinstance(call, ast.Call):
            return []
        # What comes after `*values` has no name.
        places = [*self.names, *[""] * len(call.args)]
        return [*zip(places, call.args, strict=False), *((one.arg or "", one.value) for one in call.keywords)]

    def could_write(self, text):
        """Whether somebody could have written the numbers of a call."""
        return all(self.is_known(name, number) for name, part in self.arguments(text) for number in numbers_in(part))

    def is_known(self, name, number):
        """Whether tests give the number to this parameter, the code compares it, or its type asks for a number."""
        if number in self.edges.get(name, ()) or number in self.given.get(name, ()):
            return True
        is_plain = (number == int(number) and abs(number) <= SMALL) or number in ROUND
        return name in self.typed and (is_plain or number in self.edges[""])


def numbers_in(part):
    """The numbers in an expression; negative ones as such."""
    signs = [one for one in ast.walk(part) if isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.USub)]
    negative = {id(one.operand) for one in signs}
    found = [one for one in ast.walk(part) if isinstance(one, ast.Constant) and type(one.value) in (int, float)]
    return {-one.value if id(one) in negative else one.value for one in found}


def compared(function, definition, parameter=""):
    """The numbers that a function compares with, or compares a parameter with; also by the names of constants."""
    found = []
    for part in [one for one in ast.walk(definition) if isinstance(one, ast.Compare)]:
        names = [one.id for one in ast.walk(part) if isinstance(one, ast.Name)]
        if parameter and parameter not in names:
            continue
        found += numbers_in(part)
        found += [value for name in names for value in plain_values(function.__globals__.get(name))]
    return [one for one in found if type(one) in (int, float)]


def near_to(numbers):
    """These numbers and their neighbours."""
    return {number + near for number in numbers for near in NEAR}


def examples(function):
    """The calls of a function in the examples of its docstring."""
    found = []
    for line in re.findall(r"(?m)^[ \t]*>>>[ \t]*([^\n]*)$", function.__doc__ or ""):
        try:
            calls = [part for part in ast.walk(ast.parse(line)) if isinstance(part, ast.Call)]
        except (SyntaxError, ValueError):
            continue
        found += [ast.unparse(one) for one in calls if ast.unparse(one.func).split(".")[-1] == function.__name__]
    return found
