"""The vocabulary of synthetic agents. Most of it is in `words.txt`, one paragraph for each kind of word."""

from __future__ import annotations

import re
from pathlib import Path

_SORTS = re.split(r"^([A-Z]+):", Path(__file__).with_name("words.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
_BY_SORT = {name: tuple(listed.split()) for name, listed in zip(_SORTS[1::2], _SORTS[2::2], strict=True)}

LOOK, ACT, READ, EDIT = (_BY_SORT[name] for name in ("LOOK", "ACT", "READ", "EDIT"))
WRITE, VERIFY, OTHER = (_BY_SORT[name] for name in ("WRITE", "VERIFY", "OTHER"))
"""Verbs, by what a tool of that name does."""
NOUNS, ADJECTIVES, FOLDERS, SYLLABLES = (_BY_SORT[name] for name in ("NOUNS", "ADJECTIVES", "FOLDERS", "SYLLABLES"))

ENUMS = (
    ("typical", "edge", "random"), ("low", "medium", "high"), ("short", "long"), ("fast", "safe", "thorough"),
    ("plain", "table", "chart"), ("first", "second", "third", "last"), ("red", "amber", "green"), ("daily", "weekly"),
    ("draft", "final"), ("soft", "hard"), ("north", "south", "east", "west"), ("small", "large", "huge"),
)  # fmt: skip
CODE_LINES = (
    "def total(rows):", "    return sum(row.price for row in rows)", "for item in items:", "    items.append(None)",
    "if value == None:", "import os, sys", "x = lambda a: a + 1", "    try:", "    except:", "        pass",
    "result = list(map(str, numbers))", "print(f'done')", "class Cart(object):", "    def __init__(self):",
    "        self.lines = {}", "return True if ok else False", "with open(path) as file:", "    data = file.read()",
)  # fmt: skip
