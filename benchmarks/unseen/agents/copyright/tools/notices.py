"""The licence notice of a file."""

import re

from remora.scripts import external


@external
async def read_file(path: str) -> str: ...


WORDING = "LICENSE_HEADER.txt"
TOP = 12


async def own_wording():
    """The comment that belongs on top."""
    text = (await read_file(WORDING)).strip()
    return text if text.startswith("#") else f"# {text}"


def preserved(rows):
    """How many rows must stay on top: an interpreter's, an encoding's."""
    count = 0
    while count < len(rows) and (rows[count].startswith("#!") or re.match(r"#.*coding[:=]", rows[count])):
        count += 1
    return count


def holder(text):
    """Whom a copyright names, without years."""
    return re.sub(r"\(c\)|©|[\d,\-–]+|copyright|spdx-\S+|#", " ", text.lower()).split()[:2]


def standing(rows, own):
    """How the copyright stands, and in which row, counted from 1; 0 where there is none."""
    for number, text in enumerate(rows[:TOP], start=1):
        if text.rstrip() == own:
            return "intact", number
        if text.startswith("#") and "copyright" in text.lower():
            return ("lapsed" if holder(text) == holder(own) else "foreign"), number
    return "bare", 0


def facts(rows, own):
    status, lineno = standing(rows, own)
    told = {"copyright_status": status, "preserved_above": preserved(rows), "copyright_lineno": lineno}
    return {**told, "shortfall": 1 if status in ("bare", "lapsed") else 0}


def offers(file, told):
    """Every way to go on; which one is right, the status tells."""
    said = f"{file}: copyright {told['copyright_status']}"
    done = {"tool": "submit_result", "args": {"summary": said[:150]}, "reason": "Intact, or somebody else's"}
    if told["copyright_status"] == "intact":
        return [done]
    renew = {
        "tool": "renew_copyright",
        "args": {"lineno": max(1, told["copyright_lineno"])},
        "reason": "Ours, of another year",
    }
    affix = {"tool": "affix_copyright", "args": {"below": told["preserved_above"]}, "reason": "The file is bare"}
    return [renew, affix, done]
