"""Feature flags in a Python dictionary, and the `choose(flag, on, off)` calls that ask for them."""

import re

from remora.scripts import external


@external
async def read_file(path: str) -> str: ...


@external
async def write_file(path: str, content: str) -> None: ...


@external
async def search_files(pattern: str) -> list[str]: ...


ROW = r"(?m)^    \"(\w+)\": \{\"team\": \"([\w-]+)\", \"rollout\": (\d+), \"locked\": (True|False)\},\n"


def parse_flags(source):
    """Every flag by its name."""
    flags = {}
    for name, team, rollout, locked in re.findall(ROW, source):
        flags[name] = {"name": name, "team": team, "rollout": int(rollout), "locked": locked == "True"}
    return flags


def parse_teams(source):
    found = re.search(r"(?m)^TEAMS = \[([^\]]*)\]", source)
    return re.findall(r"\"([\w-]+)\"", found.group(1)) if found else []


def row_of(flag):
    values = f'"team": "{flag["team"]}", "rollout": {flag["rollout"]}, "locked": {flag["locked"]}'
    return f'    "{flag["name"]}": {{{values}}},\n'


async def save_flag(path, name, flag):
    """The row of `name` is the row of `flag`; it is gone without one."""
    source = await read_file(path)
    rows = [found for found in re.finditer(ROW, source) if found.group(1) == name]
    text = row_of(flag) if flag else ""
    await write_file(path, source[: rows[0].start()] + text + source[rows[0].end() :])


async def known_flag(path, name):
    """The flag. Raises ValueError if there is none."""
    flags = parse_flags(await read_file(path))
    if name not in flags:
        raise ValueError(f"There is no flag {name}")
    return flags[name]


async def users_of(name):
    """Files that ask for a flag, with their text."""
    texts = {}
    for path in await search_files("**/*.py"):
        text = await read_file(path)
        if f'choose("{name}"' in text:
            texts[path] = text
    return texts


def branches(text, start):
    """Where the arguments of the call that begins at `start` end: one place for each comma, then the bracket."""
    depth, places, place = 0, [], text.index("(", start)
    while True:
        letter = text[place]
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        if (letter == "," and depth == 1) or depth == 0:
            places.append(place)
        if depth == 0:
            return places
        place += 1
