"""Deprecated settings, and the TOML files that still use them."""

import re

from remora.scripts import external


@external
async def read_file(path: str) -> str: ...


@external
async def write_file(path: str, content: str) -> None: ...


@external
async def search_files(pattern: str) -> list[str]: ...


ENTRY = r"(?m)^    \"(\w+)\": (?:\"(\w+)\"|\(\"(\w+)\", (\d+)\)|None),"
SHOWN = 5


def deprecated_keys(source):
    """Old key to (new key, factor). The new key is empty where nothing replaces the old one."""
    start = source.find("DEPRECATED = {")
    block = source[start : source.find("\n}", start)] + "\n" if start >= 0 else ""
    return {old: (plain or scaled, int(factor or 1)) for old, plain, scaled, factor in re.findall(ENTRY, block)}


def has_key(text, key):
    return re.search(rf"(?m)^{key}\s*=", text) is not None


async def find_uses(settings):
    """Each use of a deprecated key, by file."""
    table = deprecated_keys(await read_file(settings))
    uses = []
    for path in sorted(await search_files("**/*.toml")):
        text = await read_file(path)
        for old, (new, factor) in table.items():
            if has_key(text, old):
                both = bool(new) and has_key(text, new)
                uses.append({"file": path, "key": old, "new": new, "factor": factor, "both": both})
    return uses


def explain(use):
    place = f"{use['file']} {use['key']}"
    if not use["new"]:
        return f"{place}: no replacement"
    if use["both"]:
        return f"{place}: now {use['new']}, which is set as well"
    return f"{place}: now {use['new']}" + (f", value times {use['factor']}" if use["factor"] != 1 else "")


def suggest(uses):
    """Ways to deal with the first two uses."""
    found = []
    for use in uses[:2]:
        place = {"file": use["file"], "key": use["key"]}
        if use["new"]:
            found.append({"tool": "rename_key", "args": {**place, "new": use["new"]}, "reason": "It has a new name"})
        if use["factor"] != 1:
            args = {**place, "new": use["new"], "factor": use["factor"]}
            found.append({"tool": "convert_key", "args": args, "reason": "Its unit changed"})
        if use["both"] or not use["new"]:
            found.append({"tool": "delete_key", "args": place, "reason": "It has no effect any more"})
    summary = "No deprecated keys left"
    return found or [{"tool": "submit_result", "args": {"summary": summary}, "reason": summary}]


async def report(settings, message, failed=""):
    """What every tool of this agent answers."""
    uses = await find_uses(settings)
    return {
        "result": uses,
        "summary": failed or message or f"{len(uses)} deprecated keys in use",
        "knowledge_delta": {"deprecated": [explain(use) for use in uses[:SHOWN]], "still_deprecated": len(uses)},
        "outcome": "error" if failed else ("partial" if uses else "success"),
        "error": failed or None,
        "candidate_actions": suggest(uses),
    }
