"""Fixture files that this agent has written."""

import json

from remora.scripts import external
from remora.scripts.shared.places import digest


@external
async def read_file(path: str) -> str: ...


def is_ours(text, function):
    """Whether the file is as this agent wrote it for this function: then writing it again loses no one's work."""
    found = parse_json(text)
    if not isinstance(found, dict) or found.get("function") != function:
        return False
    rest = {key: value for key, value in found.items() if key != "written_by_remora"}
    return found.get("written_by_remora") == digest(json.dumps(rest))


def parse_json(text):
    """The JSON value of a text; None if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


async def own_file(stem, function):
    """The first path that is free or holds a fixture of this agent for the function; and its text."""
    for extra in ("", "_remora", "_remora_2", "_remora_3"):
        path = f"{stem}{extra}.json"
        try:
            text = await read_file(path)
        except FileNotFoundError:
            return path, ""
        if is_ours(text, function):
            return path, text
    raise RuntimeError(f"`{stem}.json` and the names after it are taken")
