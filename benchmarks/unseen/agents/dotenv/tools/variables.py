"""Environment variables: those that code reads, and those that .env.example lists."""

import re

from remora.scripts import external


@external
async def read_file(path: str) -> str: ...


@external
async def write_file(path: str, content: str) -> None: ...


@external
async def file_exists(path: str) -> bool: ...


@external
async def search_files(pattern: str) -> list[str]: ...


EXAMPLE = ".env.example"
READ = r"(?:environ\.get|getenv)\(\s*[\"'](\w+)[\"']\s*(?:,\s*([^)\n]*))?\)|environ\[[\"'](\w+)[\"']\]"
COMPUTED = r"(?:environ\.get|getenv)\(\s*(?![\"'\s])|environ\[(?![\"'])"
LISTED = r"#?\s?([A-Z][A-Z0-9_]*)="


def read_variables(source):
    """Each variable that the code reads, with its default as it would stand in the file."""
    found = {}
    for name, default, bare in re.findall(READ, source):
        value = re.fullmatch(r"[\"']([^\"']*)[\"']|(\d+)", (default or "").strip())
        found[name or bare] = (value.group(1) or value.group(2) or "") if value else ""
    return found


def computed_lines(source):
    """Lines that read a variable whose name only a running program knows."""
    return [number for number, row in enumerate(source.split("\n"), start=1) if re.search(COMPUTED, row)]


def blocks(example):
    """The file in pieces: each variable's name with its rows, the comment above it first. Other rows have no name."""
    pieces, above = [], []
    for row in example.rstrip("\n").split("\n") if example.strip() else []:
        listed = re.match(LISTED, row)
        if listed:
            pieces.append((listed.group(1), [*above, row]))
            above = []
        elif row.startswith("#"):
            above = [*above, row]
        else:
            pieces.append(("", [*above, row]))
            above = []
    return [*pieces, ("", above)] if above else pieces


def joined(pieces):
    rows = [row for name, rows in pieces for row in rows]
    return "\n".join(rows) + "\n"


def with_variable(example, name, value):
    """The file with the variable before the first one that follows it in the alphabet."""
    pieces = blocks(example)
    later = [place for place, piece in enumerate(pieces) if piece[0] > name]
    place = later[0] if later else len(pieces)
    return joined([*pieces[:place], (name, [f"{name}={value}"]), *pieces[place:]])


def without_variable(example, name):
    return joined([piece for piece in blocks(example) if piece[0] != name])


async def example_text():
    return await read_file(EXAMPLE) if await file_exists(EXAMPLE) else ""


async def users(file, names):
    """For each of the names that another file uses, the file."""
    found = {}
    for pattern in ("**/*.py", "**/*.yml", "**/*.yaml", "**/*.sh"):
        for path in (await search_files(pattern))[:60]:
            text = await read_file(path) if names and path != file else ""
            for name in names:
                if name not in found and re.search(rf"\b{name}\b", text):
                    found[name] = path
    return found


def trouble(example):
    """Why nothing can be compared; empty if it can."""
    for number, row in enumerate(example.split("\n"), start=1):
        if row.startswith(("<<<<<<<", ">>>>>>>")):
            return f"Line {number} of {EXAMPLE} is a merge conflict that a person must resolve"
    return ""


async def differences(file, source, example):
    """What a later turn should know."""
    listed = [name for name, rows in blocks(example) if name]
    read = read_variables(source)
    elsewhere = await users(file, [name for name in listed if name not in read])
    blocked = trouble(example)
    missing = [] if blocked else [name for name in read if name not in listed]
    unused = [] if blocked else [name for name in listed if name not in read and name not in elsewhere]
    return {
        "missing": missing[:8],
        "unused": unused[:8],
        "used_elsewhere": [f"{name} in {path}" for name, path in elsewhere.items()][:4],
        "computed_names": [f"line {number}" for number in computed_lines(source)][:3],
        "blocked": blocked,
        "differences": len(missing) + len(unused),
    }


def state(file, facts):
    """The facts in one sentence."""
    if facts["blocked"]:
        return facts["blocked"]
    told = [f"{', '.join(facts[key])} {key}" for key in ("missing", "unused") if facts[key]]
    return "; ".join(told) if told else f"{EXAMPLE} is in step with {file}"


def next_calls(file, facts):
    """Calls that may be right now."""
    if facts["blocked"]:
        return []
    calls = []
    if facts["missing"]:
        name = facts["missing"][0]
        calls.append({"tool": "add_variable", "args": {"name": name}, "reason": "An ordinary setting"})
        calls.append({"tool": "add_secret", "args": {"name": name}, "reason": "A password, a token or a secret"})
    if facts["unused"]:
        calls.append({"tool": "remove_variable", "args": {"name": facts["unused"][0]}, "reason": "No code reads it"})
    done = {"tool": "submit_result", "args": {"summary": state(file, facts)[:150]}, "reason": "Nothing differs"}
    return calls if calls else [done]


async def told(file, error, done, example):
    """The answer of a tool that changes the file, or of one that was refused."""
    facts = await differences(file, await read_file(file), example)
    return {
        "result": {"example": example},
        "summary": (error or f"{done}; {facts['differences']} left")[:190],
        "knowledge_delta": facts,
        "outcome": "error" if error else ("partial" if facts["differences"] else "success"),
        "error": error[:190] or None,
        "candidate_actions": next_calls(file, facts),
        "excerpts": [],
    }
