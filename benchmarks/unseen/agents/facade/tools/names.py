"""The public names of a module."""

import re

from remora.scripts import external


@external
async def read_file(path: str) -> str: ...


@external
async def search_files(pattern: str) -> list[str]: ...


DUNDER = r"(?m)^__all__\s*(?::[^=\n]+)?=\s*[\[(]([^\])]*)[\])][ \t]*\n?"
IMPORTED = r"(?m)^\s*from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n]+)"
DEFINED = r"(?m)^(?:async\s+def|def|class)\s+(\w+)|^([A-Za-z_]\w*)\s*(?::[^=\n]+)?=[^=]"


def exported(source):
    """The identifiers in `__all__`."""
    found = re.search(DUNDER, source)
    return re.findall(r"[\"'](\w+)[\"']", found.group(1)) if found else []


def defined(source):
    names = [one or other for one, other in re.findall(DEFINED, source)]
    return [name for name in names if name != "__all__"]


def is_this(file, dotted):
    """Whether an import is from this very module."""
    here = file[: -len(".py")].split("/")
    parts = [part for part in dotted.split(".") if part]
    return bool(parts) and here[-len(parts) :] == parts


async def wanted_elsewhere(file):
    """Identifiers that other files import from here, with the files."""
    users = {}
    for path in (await search_files("**/*.py"))[:80]:
        if path == file:
            continue
        for dotted, names in re.findall(IMPORTED, await read_file(path)):
            if is_this(file, dotted):
                for part in re.sub(r"#[^\n]*", "", names).strip("() \n").split(","):
                    name = part.strip().split(" as ")[0].strip()
                    if name:
                        users[name] = [*users.get(name, []), path]
    return users


def lacking(source, users):
    there = defined(source)
    return [name for name in sorted(users) if name in there and name not in exported(source)]


def surplus(source):
    there = defined(source)
    return [name for name in exported(source) if name not in there]


def offers(file, less, more):
    """Nothing while there is work: lacking and surplus tell it."""
    if less or more:
        return []
    said = f"__all__ of {file} fits"
    return [{"tool": "submit_result", "args": {"summary": said[:150]}, "reason": "The facade fits"}]


def rewritten(source, names):
    """The source with these identifiers in `__all__`: where it was, else below the imports."""
    listed = ", ".join(f'"{name}"' for name in sorted(names))
    statement = f"__all__ = [{listed}]\n"
    found = re.search(DUNDER, source)
    if found:
        return source[: found.start()] + statement + source[found.end() :]
    rows = source.split("\n")
    place, row, quoted = 0, 0, False
    while row < len(rows):
        text = rows[row]
        if quoted or text.startswith('"""'):
            ends = text.count('"""') % 2 == 1
            quoted = quoted != ends
            place = row + 1
        elif text.startswith(("import ", "from ", "#", " ", ")")):
            place = row + 1 if not text.startswith("#") or place == row else place
        elif text.strip():
            break
        row += 1
    gap = [""] if place else []
    below = rows[place:]
    while below and not below[0].strip():
        below = below[1:]
    return "\n".join(rows[:place] + gap + [statement.rstrip("\n"), ""] + ([""] if spaced(below) else []) + below)


def spaced(below):
    return bool(below) and below[0].startswith(("def ", "class ", "async ", "@"))
