"""The sequence of migrations: lists in Python, headers in SQL."""

import re

from remora.scripts import external


@external
async def read_file(path: str) -> str: ...


@external
async def write_file(path: str, content: str) -> None: ...


@external
async def search_files(pattern: str) -> list[str]: ...


def listed(source, variable):
    """The names in a list of this module."""
    found = re.search(rf"(?m)^{variable} = \[([^\]]*)\]", source)
    return re.findall(r"\"(\w+)\"", found.group(1)) if found else []


def with_list(source, variable, names):
    rows = "".join(f'    "{name}",\n' for name in names)
    text = f"{variable} = [\n{rows}]" if names else f"{variable} = []"
    found = re.search(rf"(?m)^{variable} = \[[^\]]*\]", source)
    return source[: found.start()] + text + source[found.end() :] if found else source


def history(source):
    """The names that production has run: all up to the last released one."""
    order = listed(source, "ORDER")
    found = re.search(r"(?m)^LAST_RELEASED = \"(\w+)\"", source)
    return order[: order.index(found.group(1)) + 1] if found and found.group(1) in order else []


async def headers():
    """What each SQL file says of itself, by name: what it builds on, and what it needs."""
    known = {}
    for path in sorted(await search_files("**/*.sql")):
        text = await read_file(path)
        after = re.search(r"(?m)^-- after: (\w+)", text)
        needs = re.search(r"(?m)^-- needs: (\w+)", text)
        name = path.split("/")[-1][: -len(".sql")]
        known[name] = {"after": after.group(1) if after else "", "needs": needs.group(1) if needs else ""}
    return known


def problems_of(source, known):
    order, postponed = listed(source, "ORDER"), listed(source, "POSTPONED")
    early = []
    for place, name in enumerate(order):
        base = known.get(name, {}).get("after", "")
        if base in order[place:]:
            early.append((name, base))
    return {
        "not_in_order": [name for name in known if name not in order and name not in postponed],
        "too_early": early,
        "file_gone": [name for name in order if name not in known],
    }


def as_facts(source, problems):
    released = history(source)
    return {
        "released": released,
        "to_run": [name for name in listed(source, "ORDER") if name not in released],
        "not_in_order": problems["not_in_order"],
        "too_early": [f"{name} before {base}" for name, base in problems["too_early"]],
        "file_gone": problems["file_gone"],
        "problems": sum(len(names) for names in problems.values()),
    }


def ideas(problems):
    """A call for each problem, the first three."""
    calls = [{"tool": "sql_header", "args": {"migration": name}} for name in problems["not_in_order"]]
    for name, base in problems["too_early"]:
        calls.append({"tool": "move_after", "args": {"migration": name, "other": base}})
    calls += [{"tool": "forget", "args": {"migration": name}} for name in problems["file_gone"]]
    return calls[:3] or [{"tool": "submit_result", "args": {"summary": "ORDER is complete and correct"}}]


async def looked(path, message, failed=""):
    """The answer after a change, or after a look."""
    source, known = await read_file(path), await headers()
    problems = problems_of(source, known)
    facts = as_facts(source, problems)
    return {
        "result": facts,
        "summary": failed or f"{message}{facts['problems']} problems",
        "knowledge_delta": facts,
        "outcome": "error" if failed else ("partial" if facts["problems"] else "success"),
        "error": failed or None,
        "candidate_actions": ideas(problems),
    }
