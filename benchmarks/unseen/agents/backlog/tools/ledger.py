"""The backlog of a file: its comments, and what TODO.md says of them."""

import re

from remora.scripts import external


@external
async def file_exists(path: str) -> bool: ...


@external
async def read_file(path: str) -> str: ...


LEDGER = "TODO.md"
SECTIONS = ["Bugs", "Ideas"]
COMMENT = r"#\s*(TODO|FIXME)\b:?[ \t]*([^\r\n]*)"


def slug_of(wording):
    return "-".join(re.findall(r"[a-z0-9]+", wording.lower())[:4])


def jottings(source):
    """Each comment that tells of work to do: its row, its word and what it says."""
    found = []
    for row, text in enumerate(source.split("\n"), start=1):
        for word, wording in re.findall(COMMENT, text):
            if slug_of(wording):
                found.append((row, word, wording.strip()))
    return found


def entries(file, ledger):
    """What the ledger says of this file."""
    start = f"- `{file}`: "
    return [text[len(start) :].strip() for text in ledger.split("\n") if text.startswith(start)]


def unlisted(file, source, ledger):
    known = [slug_of(wording) for wording in entries(file, ledger)]
    return [f"{word} {slug_of(wording)}" for row, word, wording in jottings(source) if slug_of(wording) not in known]


def obsolete(file, source, ledger):
    there = [slug_of(wording) for row, word, wording in jottings(source)]
    return [slug_of(wording) for wording in entries(file, ledger) if slug_of(wording) not in there]


def offers(file, new, old):
    if new:
        slug = new[0].split(" ")[1]
        told = "One of these sections fits"
        return [
            {"tool": "enlist_jotting", "args": {"slug": slug, "heading": section}, "reason": told}
            for section in SECTIONS
        ]
    if old:
        return [{"tool": "strike_jotting", "args": {"slug": old[0]}, "reason": "Gone from the source"}]
    said = f"{LEDGER} agrees with {file}"
    return [{"tool": "submit_result", "args": {"summary": said[:150]}, "reason": "Both sides agree"}]


async def ledger_text():
    return await read_file(LEDGER) if await file_exists(LEDGER) else ""
