"""Where things are: the module as importers name it, the folder for tests, the file of a class."""

import hashlib
import re

from remora.scripts import external


@external
async def file_exists(path: str) -> bool: ...


@external
async def list_dir(path: str = ".") -> list[str]: ...


@external
async def node_facts(path: str, node: str = "") -> dict: ...


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


async def names_above(qualified):
    """The kinds of what a definition stands in: a class can be reached from outside, a function cannot."""
    parts = qualified.split(".")
    found = []
    for count in range(1, len(parts)):
        found.append((await node_facts(target_file, ".".join(parts[:count])))["kind"])
    return found


async def module_place(qualified):
    """The module as its importers name it, the folder that must be importable, and the dotted name in it."""
    parts = target_file[: -len(".py")].split("/")
    root = "."
    if len(parts) > 1 and parts[0] in ("src", "lib", "python") and not await file_exists(f"{parts[0]}/__init__.py"):
        root, parts = parts[0], parts[1:]
    parts = parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
    return ".".join(parts), root, qualified.partition("#")[0]


async def tests_folder():
    """The nearest folder for tests, above or beside the file."""
    parts = target_file.split("/")[:-1]
    for depth in range(len(parts), -1, -1):
        above = "/".join(parts[:depth])
        names = await list_dir(above or ".")
        for name in ("tests/", "test/"):
            if name in names:
                return f"{above}/{name}" if above else name
    return "tests/"


def stem_for(module, qualified):
    """A file name that tells the module and the function apart from others."""
    parts = module.split(".")
    parts = parts[1:] if len(parts) > 1 else parts
    return flat("_".join([*parts, qualified]))


def flat(name):
    """A dotted name as one word."""
    return re.sub(r"[\W_]+", "_", name).strip("_").lower()


async def class_file(name, text):
    """The file of a class that this file defines or imports from the project; None if there is none."""
    if re.search(rf"(?m)^class {name}\b", text):
        return target_file
    for module, group, line in re.findall(r"(?m)^from ([\w.]+) import (?:\(([^)]*)\)|([^\n(]*))", text):
        if name not in re.split(r"[\s,]+", group or line):
            continue
        here = target_file.split("/")[:-1]
        dots = len(module) - len(module.lstrip("."))
        base = here[: len(here) - dots + 1] if dots else (["src"] if here[:1] == ["src"] else [])
        path = "/".join([*base, *[part for part in module.lstrip(".").split(".") if part]])
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if await file_exists(file):
                return file
    return None
