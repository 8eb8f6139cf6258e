"""Imports that look unused but may be there for others: taking them away can break code that ruff does not see."""

import re

from purpose import STANDARD, facts_of, has_word, is_on_purpose, is_top_level

from remora.scripts import external


@external
async def search_content(pattern: str, glob: str = "") -> list: ...


@external
async def list_dir(path: str = ".") -> list[str]: ...


@external
async def file_exists(path: str) -> bool: ...


AT_ONCE = 5
"""Names in one search: a pattern may have 1,000 characters."""
KNOWN = {}
"""By file and name: `used` if others may import it, `module` or `own` if it is of the project's code, else empty."""


async def guard_imports(file, whole, errors):
    """The errors without unused imports that are there on purpose; those of the project's own code are `unsafe`."""
    asked, meant, facts = {}, [], facts_of(whole)
    for place, error in enumerate(errors):
        row = error["location"]["row"]
        if error["code"] not in ("F401", "F811", "F841") or row > len(whole):
            continue
        name = import_name(error["message"])
        if has_word(facts["notes"], name[0]):  # in a comment for type checkers: ruff does not read them
            meant.append(place)
        if error["code"] == "F841":
            continue
        if is_on_purpose(file, whole, error, name[0], name[1], facts):
            meant.append(place)
        # An import inside a function is nobody else's.
        elif error["code"] == "F401" and is_top_level(whole, row):
            asked[place] = name
    await look_up(file, [name for name in asked.values() if (file, name[0]) not in KNOWN])
    known_of = {place: KNOWN[(file, asked[place][0])] for place in asked}
    stay = {*meant, *[one for one in known_of if known_of[one] == "used"]}
    # To import a whole module of the project runs it: it may change the path, or register something.
    stay |= {one for one in known_of if known_of[one] == "module"}
    # ruff's fix of one unused name takes away all unused names of its statement.
    kept = {str(errors[one]["fix"]["edits"]) for one in stay if errors[one]["fix"] and errors[one]["code"] == "F401"}
    # What would make a line too long for those around it needs a formatter.
    kept |= {str(error["fix"]["edits"]) for error in errors if error["fix"] and joins_lines(error, whole)}
    left = []
    for place, error in enumerate(errors):
        known, fix = known_of.get(place, ""), error["fix"]
        if place in stay or (fix and str(fix["edits"]) in kept):
            continue
        left.append({**error, "fix": {**fix, "applicability": "unsafe"}} if known == "own" and fix else error)
    return left


WIDTH = 79


def joins_lines(error, whole):
    """Whether the fix of an import over several lines makes a line that is longer than all of them."""
    edits = error["fix"]["edits"] if error["code"] == "F401" else []
    if not edits:
        return False
    edit = edits[0]
    first, last = edit["location"]["row"], edit["end_location"]["row"]
    old = [len(line.rstrip()) for line in whole[first - 1 : last]]
    new = [len(line.rstrip()) for line in (edit["content"] or "").split("\n")]
    return first < last and max(new) > max([*old, WIDTH])


def regroups(error, whole):
    """Whether sorting imports moves one to another group: its author takes other modules for the project's own."""
    edits = error["fix"]["edits"] if error["code"] == "I001" and error["fix"] else []
    if not edits:
        return False
    first, last = edits[0]["location"]["row"], last_row_of(edits[0])
    return groups_in("".join(whole[first - 1 : last])) != groups_in(edits[0]["content"] or "")


def last_row_of(edit):
    """The last row whose text an edit replaces."""
    end = edit["end_location"]
    return end["row"] - 1 if end["column"] == 1 else end["row"]


def groups_in(text):
    """The modules of imports by group, without the standard library: blank lines are between groups."""
    groups = [
        re.findall(r"(?m)^[ \t]*(?:from|import)[ \t]+([\w.]+)", group) for group in re.split(r"\n[ \t]*\r?\n", text)
    ]
    others = [{one for one in group if one.split(".")[0] not in STANDARD.split()} for group in groups]
    return [sorted(group) for group in others if group]


def import_name(message):
    """The name that an import binds, and the module that it comes from."""
    named = (re.findall(r"`([^`]+)`", message) or [""])[0]
    source, _, alias = named.partition(" as ")
    return (alias or source).strip().split(".")[-1], source.strip()


async def look_up(file, names):
    """Find out which names others may import from a file, with one search."""
    parts = file.removesuffix(".py").split("/")
    stem = parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]
    wanted, hits = sorted({re.escape(name) for name, _ in names if name}), []
    for start in range(0, len(wanted), AT_ONCE):
        words = "|".join(wanted[start : start + AT_ONCE])
        star = rf"\bfrom\s+[\w.]*\b{stem}\s+import\s"
        uses = rf"\b{stem}\.(?:{words})\b|{star}.*(?:\b(?:{words})\b|\*)|^\s+(?:{words})\s*,?\s*\)?\s*(?:#.*)?$"
        try:
            hits += [hit["text"] for hit in await search_content(uses) if hit["path"] != file]
        except OSError:  # it takes too long, so nobody knows who imports these names
            KNOWN.update({(file, name): "used" for name, _ in names})
            return
    own = await own_modules(file) if names else []
    for name, source in names:
        # Nobody takes a type such as `Any` from where it is imported by `*`.
        star = r"" if source.startswith("typing.") else r"|import\s+\*"
        used = any(re.search(rf"\b{re.escape(name)}\b{star}", text) for text in hits) if name else True
        is_own = source.startswith(".") or source.split(".")[0] in own
        is_module = is_own and await leads_to_module(file, source)
        KNOWN[(file, name)] = "used" if used else "module" if is_module else "own" if is_own else ""


async def leads_to_module(file, source):
    """Whether what is imported is a module of the project: `helpers`, `.effects`, `pkg.effects`."""
    dots = len(source) - len(source.lstrip("."))
    here = file.split("/")[:-1]
    path = "/".join(part for part in source.split(".") if part)
    above = "/".join(here[: len(here) - dots + 1] if dots else here)
    for folder in [above] if dots else ["", "src", above]:
        for end in (".py", "/__init__.py"):
            if await file_exists(f"{folder}/{path}{end}".lstrip("/")):
                return True
    return False


async def is_cited(file):
    """Whether a document names a line of a file, as tracebacks do. Then no line may move."""
    name = re.escape(file.rpartition("/")[2])
    try:
        hits = await search_content(rf"\b{name}\"?,? line \d+")
    except OSError:  # it takes too long
        return False
    return any(hit["path"].endswith((".md", ".rst", ".txt")) for hit in hits)


async def own_modules(file):
    """The top-level modules and packages of the project, and those beside a file, which scripts import too."""
    found = []
    for folder in dict.fromkeys((".", "src", file.rpartition("/")[0] or ".")):
        try:
            found += await list_dir(folder)
        except OSError:
            continue
    return [name.removesuffix(".py").rstrip("/") for name in found if name.endswith((".py", "/"))]
