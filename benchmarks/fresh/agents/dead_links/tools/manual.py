"""Pages of a manual, and the links between them."""

import re

from remora.scripts import external


@external
async def read_file(path: str) -> str: ...


@external
async def write_file(path: str, content: str) -> None: ...


@external
async def search_files(pattern: str) -> list[str]: ...


LINK = r"\[([^\]]+)\]\(([\w/.-]+\.md)\)"


def folder_of(conf):
    return conf[: -len("conf.py")]


async def read_pages(conf):
    """Text by address. Addresses begin at the folder of conf.py, links use them as they are."""
    folder = folder_of(conf)
    found = sorted(await search_files(f"{folder}**/*.md"))
    return {path[len(folder) :]: await read_file(path) for path in found}


async def moved_pages(conf):
    source = await read_file(conf)
    found = re.search(r"(?m)^moved = \{([^}]*)\}", source)
    return dict(re.findall(r"\"([^\"]+)\": \"([^\"]+)\"", found.group(1))) if found else {}


def find_dead(pages):
    """Page, line number and address of every link whose page does not exist."""
    dead = []
    for page, text in pages.items():
        for number, row in enumerate(text.split("\n"), start=1):
            dead += [(page, number, link[1]) for link in re.findall(LINK, row) if link[1] not in pages]
    return dead


def stem_of(address):
    return address.split("/")[-1][: -len(".md")]


def matching(pages, words):
    """Pages that have one of these words, longer than two letters, in name or title."""
    wanted = [word for word in re.split(r"[^a-z0-9]+", words.lower().replace(".md", "")) if len(word) > 2]
    found = []
    for page, text in pages.items():
        title = text.split("\n")[0].lower()
        if any(word in page.lower() or word in title for word in wanted):
            found.append(page)
    return found


def searches(dead):
    """A search for each of the first three dead links."""
    calls = []
    for page, _, address in dead[:3]:
        args = {"words": stem_of(address)}
        if args not in [call["args"] for call in calls]:
            calls.append({"tool": "search_pages", "args": args, "reason": f"{page} links to {address}"})
    return calls


async def overview(conf, message="", failed=""):
    pages = await read_pages(conf)
    dead, moved = find_dead(pages), await moved_pages(conf)
    done = {"tool": "submit_result", "args": {"summary": "All links lead somewhere"}, "reason": "No dead links"}
    return {
        "result": {"dead": [list(link) for link in dead], "pages": [*pages]},
        "summary": failed or message + f"{len(dead)} dead links",
        "knowledge_delta": {
            "dead_links": [f"{page} line {number}: {address}" for page, number, address in dead[:5]],
            "moved_pages": [f"{old} is now {new}" for old, new in moved.items()][:4],
            "dead": len(dead),
        },
        "outcome": "error" if failed else ("partial" if dead else "success"),
        "error": failed or None,
        "candidate_actions": searches(dead) or [done],
        "extensions": {"repairs": {"dead": len(dead), "pages": len(pages)}},
    }


async def replace_link(conf, page, line, address):
    """The first dead link of this line has another address, or none. Says why not, if it cannot."""
    pages = await read_pages(conf)
    here = [link for link in find_dead(pages) if link[0] == page and link[1] == line]
    if not here:
        return f"{page} has no dead link in line {line}"
    if address and address not in pages:
        return f"There is no page {address}"
    rows = pages[page].split("\n")
    dead = here[0][2]
    words = {target: text for text, target in re.findall(LINK, rows[line - 1])}[dead]
    new = f"[{words}]({address})" if address else words
    rows[line - 1] = rows[line - 1].replace(f"[{words}]({dead})", new, 1)
    await write_file(folder_of(conf) + page, "\n".join(rows))
    return ""
