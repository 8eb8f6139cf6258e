"""The version that code tells, and the sections and links of CHANGELOG.md."""

import re

from remora.scripts import external


@external
async def read_file(path: str) -> str: ...


@external
async def write_file(path: str, content: str) -> None: ...


CHANGELOG = "CHANGELOG.md"
ASSIGNED = r"(?m)^(__version__|VERSION)\s*=\s*[\"']([^\"']+)[\"']"
HEADING = r"(?m)^## \[?v?(\d[\w.]*)\]?"
LINK = r"(?m)^\[(\d[\w.]*)\]: (\S+)$"


def code_version(source):
    """The version as the code tells it; empty where it is computed."""
    found = re.search(ASSIGNED, source)
    return found.group(2) if found else ""


def numbers(version):
    """What versions are ordered by: 1.10.0 is above 1.9.0, and a development version is where its version is."""
    return [int(part) for part in re.findall(r"\d+", re.sub(r"\.?(dev|a|b|rc)\d*$", "", version))]


def released(changelog):
    """The versions that have a section, the highest first."""
    return sorted(re.findall(HEADING, changelog), key=numbers, reverse=True)


def unreleased(changelog):
    """The entries below Unreleased."""
    found = re.search(r"(?ms)^## \[?Unreleased\]?[^\n]*\n(.*?)(?=^## |^\[\d|\Z)", changelog)
    return [row for row in found.group(1).split("\n") if row.startswith(("- ", "* "))] if found else []


def links_missing(changelog):
    """Versions without a link, in a changelog that has links."""
    linked = [version for version, target in re.findall(LINK, changelog)]
    return [version for version in released(changelog) if version not in linked] if linked else []


def with_section(changelog, version):
    """The changelog with a heading of this version below the one of Unreleased, in the style of the others."""
    title = f"[{version}]" if re.search(r"(?m)^## \[\d", changelog) else version
    return re.sub(r"(?m)^(## \[?Unreleased\]?[^\n]*\n)", f"\\1\n## {title}\n", changelog, count=1)


def with_link(changelog, version):
    """The changelog with the link of a version among the others, the highest first."""
    links = dict(re.findall(LINK, changelog))
    base = re.sub(r"/(compare|releases)/.*", "", next(iter(links.values())))
    older = [other for other in released(changelog) if numbers(other) < numbers(version)]
    links[version] = f"{base}/compare/v{older[0]}...v{version}" if older else f"{base}/releases/tag/v{version}"
    rows = [f"[{name}]: {links[name]}" for name in sorted(links, key=numbers, reverse=True)]
    return re.sub(LINK + r"\n?", "", changelog).rstrip("\n") + "\n\n" + "\n".join(rows) + "\n"


def newer(code, newest):
    """Who has the newer version."""
    if not code:
        return "unknown"
    if numbers(code) == numbers(newest):
        return "neither"
    return "code" if numbers(code) > numbers(newest) else "changelog"


def facts(source, changelog):
    """What a later turn should know."""
    code, newest = code_version(source), (released(changelog) or ["0"])[0]
    missing = links_missing(changelog)
    return {
        "newer": newer(code, newest),
        "code_version": code or "computed",
        "changelog_version": newest,
        "unreleased_entries": len(unreleased(changelog)),
        "links_missing": missing[:5],
        "open_points": len(missing) + (1 if newer(code, newest) in ("code", "changelog") else 0),
    }


def state(known):
    """The facts in one sentence."""
    told = f"Version in the code: {known['code_version']}, in {CHANGELOG}: {known['changelog_version']}"
    told += f", unreleased entries: {known['unreleased_entries']}"
    missing = known["links_missing"]
    return told + (f", no link for {', '.join(missing)}" if missing else "")


def next_calls(known):
    """Calls that are right now. None while the versions differ: what is right then, the agent's rules say."""
    if known["newer"] in ("code", "changelog"):
        return []
    links = [
        {"tool": "add_link", "args": {"version": version}, "reason": "It has no link"}
        for version in known["links_missing"][:2]
    ]
    done = {"tool": "submit_result", "args": {"summary": state(known)[:150]}, "reason": "Nothing is left to do"}
    return links if links and known["newer"] == "neither" else [done]


def answer(source, changelog, done, error=""):
    """The answer of a tool that changes something, or of one that was refused."""
    known = facts(source, changelog)
    return {
        "result": {"changelog": changelog},
        "summary": (error or done)[:190],
        "knowledge_delta": known,
        "outcome": "error" if error else ("partial" if known["open_points"] else "success"),
        "error": error[:190] or None,
        "candidate_actions": next_calls(known),
        "excerpts": [],
    }
