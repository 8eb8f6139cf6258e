"""Which texts a person could have written as an input: words that the project has, and little else."""

import ast
import re

from .values import is_plain

MOST_TEXT, MOST_PARTS = 40, 4
PARTS = r"[^\W_]+"
USUAL = {"a", "b", "hello", "world"}
"""Words for code that says nothing about its texts."""
MARKS = set(" ,.-_:/@=")
LONGEST_NUMBER = 4
MESSY = r"^[^\w]|[^\w\s][^\w\s]|[^\w.!]$|^\S*[.!]$|\d\.[A-Za-z]|[A-Za-z]\.\d"
"""Marks at the start, side by side, at the end of what is no sentence, or a number and a word joined by a dot."""


class Words:
    """The words and marks of texts that people wrote: in tests and calls, in the code and its docstring."""

    def __init__(self, written, own):
        every, self.own = [*written, *own], own
        found = {part.lower() for text in every for part in re.findall(PARTS, text)}
        self.parts = found if any(part.isalpha() for part in found) else found | USUAL
        self.marks = MARKS | {char for text in every for char in text if not char.isalnum()}

    def could_write(self, text):
        """Whether somebody could have written the text: known words, short numbers and known marks."""
        if not text:
            return True
        parts = re.findall(PARTS, text)
        is_tidy = text == text.strip() and len(text) <= MOST_TEXT and len(parts) <= MOST_PARTS and is_plain(text)
        is_tidy = is_tidy and (text in self.own or not re.search(MESSY, text))
        are_known = all(part.lower() in self.parts or self.is_number(part) for part in parts)
        return is_tidy and are_known and all(char in self.marks for char in text if not char.isalnum())

    def is_number(self, part):
        return part.isdigit() and len(part) <= LONGEST_NUMBER


def constants_of(text, without=()):
    """The constants in a call, but not those given to functions in `without`; none if it is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return set()
    calls = [part for part in ast.walk(tree) if isinstance(part, ast.Call)]
    left = [each for part in calls if ast.unparse(part.func) in without for each in part.args]
    return {part.value for part in ast.walk(tree) if isinstance(part, ast.Constant) and part not in left}
