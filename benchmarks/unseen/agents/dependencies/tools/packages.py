"""Packages: those that code imports, and those that pyproject.toml declares."""

import re

from remora.scripts import external


@external
async def read_file(path: str) -> str: ...


@external
async def write_file(path: str, content: str) -> None: ...


@external
async def search_files(pattern: str) -> list[str]: ...


PYPROJECT = "pyproject.toml"
KEYS = {"main": "dependencies", "dev": "dev"}
IMPORT = r"(?m)^[ \t]*(?:from[ \t]+(\w+)[\w.]*[ \t]+import\b|import[ \t]+(\w+))"
OPTIONAL = r"(?m)^try:\n((?:[ \t]+[^\n]*\n)+)except (?:ImportError|ModuleNotFoundError)"
STANDARD = """
abc argparse array ast asyncio base64 bisect calendar cmath collections concurrent configparser contextlib copy csv
ctypes dataclasses datetime decimal difflib email enum fractions functools gc getpass glob gzip hashlib heapq html http
importlib inspect io ipaddress itertools json locale logging math mimetypes multiprocessing operator os pathlib pickle
platform pprint queue random re secrets select shlex shutil signal socket sqlite3 ssl statistics string struct
subprocess sys tempfile textwrap threading time tomllib traceback types typing unicodedata unittest urllib uuid warnings
weakref xml zipfile zlib zoneinfo __future__
"""
PUBLISHED = """
aiohttp attrs boto3 celery click django fastapi flask freezegun gunicorn httpx hypothesis jinja2 matplotlib numpy
openpyxl orjson pandas pendulum polars pydantic pytest redis requests responses rich scipy sqlalchemy tabulate tqdm
typer uvicorn
"""
OTHERWISE = {
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Modules whose package has another name."""


def plain(name):
    """The name of a package as others compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def package_of(module):
    return OTHERWISE.get(module, plain(module))


def imported(source):
    return [one or other for one, other in re.findall(IMPORT, source)]


def optional(source):
    """Modules that the code can do without."""
    return [module for block in re.findall(OPTIONAL, source) for module in imported(block)]


def is_tests(path):
    return path.startswith("tests/") or path.split("/")[-1].startswith(("test_", "conftest"))


def local(paths):
    """Modules of the project itself."""
    return [part for path in paths for part in path[: -len(".py")].split("/")]


def array(text, group):
    """The first and the last row of a group's array, and its entries, each as it stands; None if there is no array."""
    rows = text.split("\n")
    for first, row in enumerate(rows):
        if re.match(rf"{KEYS[group]} = \[", row):
            if row.rstrip().endswith("]"):
                return first, first, [f"    {entry}," for entry in re.findall(r"\"[^\"]*\"", row)]
            last = first + rows[first:].index("]")
            return first, last, rows[first + 1 : last]
    return None


def entry_name(entry):
    found = re.match(r"\s*\"([\w.-]+)", entry)
    return plain(found.group(1)) if found else ""


def declared(text, group):
    """The packages of a group, each with its entry."""
    found = array(text, group)
    return {entry_name(entry): entry for entry in found[2] if entry_name(entry)} if found else {}


def with_entries(text, group, entries):
    rows, found = text.split("\n"), array(text, group)
    array_rows = [f"{KEYS[group]} = [", *entries, "]"]
    if found:
        return "\n".join([*rows[: found[0]], *array_rows, *rows[found[1] + 1 :]])
    return text.rstrip("\n") + "\n\n[dependency-groups]\n" + "\n".join(array_rows) + "\n"


def with_entry(text, group, entry):
    """pyproject.toml with an entry before the first one that follows it in the alphabet."""
    found = array(text, group)
    entries = found[2] if found else []
    later = [place for place, other in enumerate(entries) if entry_name(other) > entry_name(entry)]
    place = later[0] if later else len(entries)
    return with_entries(text, group, [*entries[:place], entry, *entries[place:]])


def without_entry(text, group, name):
    return with_entries(text, group, [entry for entry in array(text, group)[2] if entry_name(entry) != name])


def trouble(text):
    """Why nothing can be compared; empty if it can."""
    if re.search(r"(?m)^dynamic = \[[^\]]*\"dependencies\"", text):
        return f"{PYPROJECT} says that its dependencies are dynamic: they are kept somewhere else"
    if not array(text, "main"):
        return f"{PYPROJECT} has no list of dependencies"
    return ""


async def users():
    """The packages that any file imports, each with the kinds of files that do."""
    found = {}
    for path in (await search_files("**/*.py"))[:60]:
        for module in imported(await read_file(path)):
            kinds = found.get(package_of(module), [])
            found[package_of(module)] = [*kinds, "tests" if is_tests(path) else "app"]
    return found


async def lists(file, source, text):
    """The packages of this file and of pyproject.toml, by what is to be done about them."""
    kind = "tests" if is_tests(file) else "app"
    main, dev, used = declared(text, "main"), declared(text, "dev"), await users()
    own = [*STANDARD.split(), *local(await search_files("**/*.py"))]
    spare = optional(source)
    needed = sorted({module for module in imported(source) if module not in own and module not in spare})
    there = [*main, *dev]
    new = [module for module in needed if package_of(module) not in there]
    kept = [name for name in main if "#" in main[name]]
    known = [*PUBLISHED.split(), *OTHERWISE.values()]
    return {
        "undeclared": [package_of(module) for module in new if package_of(module) in known],
        "only_in_dev": [name for name in dev if kind == "app" and name not in main and name in map(package_of, needed)],
        "only_tests_use": [name for name in main if used.get(name) and "app" not in used[name] and name not in kept],
        "unused": [name for name in main if name not in used and name not in kept],
        "optional": [package_of(module) for module in spare if module not in own and package_of(module) not in there],
        "kept": [name for name in kept if name not in used],
        "unknown": [module for module in new if package_of(module) not in known],
    }


async def facts(file, source, text):
    """What a later turn should know."""
    problem = trouble(text)
    known = {"file_kind": "tests" if is_tests(file) else "app", "problem": problem, "to_do": 0}
    if problem:
        return known
    found = await lists(file, source, text)
    to_do = sum(len(found[key]) for key in ("undeclared", "only_in_dev", "only_tests_use", "unused"))
    return {**known, **{key: names[:6] for key, names in found.items()}, "to_do": to_do}


def state(file, known):
    """The facts in one sentence."""
    if known["problem"]:
        return known["problem"]
    names = ("undeclared", "only_in_dev", "only_tests_use", "unused", "unknown")
    told = [f"{key}: {', '.join(known[key])}" for key in names if known[key]]
    return "; ".join(told) if told else f"{PYPROJECT} declares what {file} imports"


async def answer(file, source, text, done, error=""):
    """The answer of a tool that changes something, or of one that was refused."""
    known = await facts(file, source, text)
    return {
        "result": {"pyproject": text},
        "summary": (error or f"{done}; {known['to_do']} to do")[:190],
        "knowledge_delta": known,
        "outcome": "error" if error else ("partial" if known["to_do"] else "success"),
        "error": error[:190] or None,
        "candidate_actions": [],
        "excerpts": [],
    }
