"""Imports that look unused but may be there for others: taking them away can break code that ruff does not see."""

import re

from remora.scripts import external


@external
async def search_content(pattern: str, glob: str = "") -> list: ...


@external
async def list_dir(path: str = "") -> list: ...


AT_ONCE = 5
"""Names in one search: a pattern may have 1,000 characters."""
BY_NAME = r"\b(?:globals|locals|vars|eval|exec)\(|\b(?:yacc\.yacc|lex\.lex)\("
"""Calls that look up the names of a module: what is imported there may be used without being named."""
KNOWN = {}
"""By file and name: `used` if others may import it, `own` if it is of the project's code, else empty."""


async def guard_imports(file, whole, errors):
    """The errors without unused imports that are there on purpose; those of the project's own code are `unsafe`."""
    asked, meant = {}, []
    for place, error in enumerate(errors):
        row = error["location"]["row"]
        if error["code"] not in ("F401", "F811", "F841") or row > len(whole):
            continue
        name = import_name(error["message"])
        if is_in_type_comment(whole, name[0]):
            meant.append(place)
        if error["code"] == "F841":
            continue
        if is_on_purpose(file, whole, error, name[0]):
            meant.append(place)
        # An import inside a function is nobody else's.
        elif error["code"] == "F401" and is_top_level(whole, row):
            asked[place] = name
    await look_up(file, [name for name in asked.values() if (file, name[0]) not in KNOWN])
    left = []
    for place, error in enumerate(errors):
        known = KNOWN[(file, asked[place][0])] if place in asked else ""
        if place in meant or known == "used":
            continue
        fix = error["fix"]
        left.append({**error, "fix": {**fix, "applicability": "unsafe"}} if known == "own" and fix else error)
    return left


def is_in_type_comment(whole, name):
    """Whether a comment for type checkers, such as `# type: List[int]`, uses a name: ruff does not read them."""
    told = [line.partition("# type:")[2] for line in whole if "# type:" in line]
    return bool(name) and any(re.search(rf"\b{re.escape(name)}\b", text) for text in told)


def is_top_level(whole, row):
    """Whether an import runs with its module: no `def` or `class` is around it."""
    return not any(re.match(r"\s*(?:async\s+def|def|class)\b", line) for line in headers_around(whole, row))


def headers_around(whole, row):
    """The lines above an import with less indentation each, the nearest first."""
    while row > 1 and not re.match(r"\s*(?:from|import)\b", whole[row - 1]):
        row -= 1
    found, depth = [], len(whole[row - 1]) - len(whole[row - 1].lstrip())
    for line in whole[: row - 1][::-1]:
        own = len(line) - len(line.lstrip())
        if line.strip() and own < depth and not line.lstrip().startswith(("#", ")")):
            found.append(line)
            depth = own
    return found


def is_on_purpose(file, whole, error, name):
    """Whether an unused import is likely to be there on purpose, by what stands in its own file."""
    row, module = error["location"]["row"], file.rpartition("/")[2]
    if "compat" in module or re.search(r"import\b.*#", whole[row - 1]):
        return True  # a module that exists to be imported from; a comment that says what the import is for
    if error["code"] == "F401" and (module == "__init__.py" or "find_spec" in error["message"]):
        return True  # a package's names; a `try` that asks whether a module is there
    if any(re.search(BY_NAME, line) for line in whole) or is_parameter(whole, name):
        return True  # something looks its names up; a fixture that tests take by its name
    if error["fix"] and any((edit["content"] or "").strip() == "pass" for edit in error["fix"]["edits"]):
        return True  # all that a block does: its effect, or that it fails, is what counts
    if is_alternative(whole, row):
        return True  # one of two ways to get a name, for another Python or another installation
    example = rf"\s*(?:>>>|\.\.\.)\s.*\b{re.escape(name)}\b"
    return bool(name) and any(re.match(example, line) for line in whole)


def is_parameter(whole, name):
    """Whether a function of the file has a parameter of this name: pytest gives it an imported fixture."""
    heads = re.findall(r"\bdef\s+\w+\s*\(([^)]*)\)", "".join(whole))
    return bool(name) and any(re.search(rf"\b{re.escape(name)}\b", head) for head in heads)


def is_alternative(whole, row):
    """Whether an import is part of a `try`, a `with`, or a branch for one Python: there it may fail or be replaced."""
    around = headers_around(whole, row)
    chosen = r"\s*(?:try|except|with|async\s+with|elif|else)\b|\s*if\b.*(?:version|\bPY|platform|os\.name)"
    return bool(around) and bool(re.match(chosen, around[0]))


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
        hits += [hit["text"] for hit in await search_content(uses, "*.py") if hit["path"] != file]
    own = await own_modules() if names else []
    for name, source in names:
        used = any(re.search(rf"\b{re.escape(name)}\b|import\s+\*", text) for text in hits) if name else True
        is_own = source.startswith(".") or source.split(".")[0] in own
        KNOWN[(file, name)] = "used" if used else "own" if is_own else ""


async def own_modules():
    """The top-level modules and packages of the project."""
    found = []
    for folder in ("", "src"):
        try:
            found += await list_dir(folder)
        except OSError:
            continue
    return [name.removesuffix(".py").rstrip("/") for name in found if name.endswith((".py", "/"))]
