"""Fixtures of the project that a new test can take: objects that its own tests believe in."""

import re

from remora.scripts import external
from remora.scripts.shared.samples import strings


@external
async def read_file(path: str) -> str: ...


FIXTURE = (
    r"(?m)^@(?:pytest\.)?fixture\b([^\n]*)\n((?:@[^\n]*\n)*)def (\w+)\([^\n]*\)([^\n]*):[^\n]*\n"
    r"((?:[ \t]+[^\n]*\n|[ \t]*\n)*)"
)
MOST_TEXTS = 3
SPECIAL = r"autouse|params|name\s*="
"""Arguments of `fixture` by which it is more than an object by its own name."""


async def find_fixtures(folder):
    """By name, the text of each fixture that tests in a folder can take from a `conftest.py`."""
    parts, found = [part for part in folder.split("/") if part], {}
    for depth in range(len(parts) + 1):
        path = "/".join([*parts[:depth], "conftest.py"])
        try:
            text = await read_file(path)
        except (FileNotFoundError, PermissionError, ValueError, OSError):
            continue
        for how, marks, name, result, body in re.findall(FIXTURE, text + "\n"):
            if not re.search(SPECIAL, how) and not marks:
                found[name] = f"{result}\n{body}"
    return found


def fixtures_of(kind, fixtures):
    """The fixtures that make an object of a class, by what is written in them."""
    made = rf"->\s*[\"']?(?:\w+\.)*{kind}\b|\b(?:return|yield)\s+(?:\w+\.)*{kind}\(|=\s*(?:\w+\.)*{kind}\("
    return [name for name in fixtures if re.search(made, fixtures[name])]


def texts_in(owner, fixtures):
    """Texts in the fixture of a method's object: what the object knows."""
    return list(dict.fromkeys(strings(fixtures.get(owner, ""))))[:MOST_TEXTS]


def used_in(text, fixtures):
    """The fixtures that a call needs."""
    return [name for name in fixtures if re.search(rf"(?<![\w.'\"]){name}\b(?!\s*=[^=])", text)]
