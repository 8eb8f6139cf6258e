"""Where things are in a project: the module name of a file, the folder for tests, the file of a class."""

import hashlib
import re

from remora.scripts import external


@external
async def file_exists(path: str) -> bool: ...


@external
async def list_dir(path: str = ".") -> list[str]: ...


@external
async def node_facts(path: str, node: str = "") -> dict: ...


TESTS = r"tests?|testing|unit_?tests?|\w+_tests"
"""Names of folders for tests."""


def digest(text: str) -> str:
    """A short digest, to see later whether a file has changed."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


SCRIPTS = (
    r"(?:setup|ez_setup|bootstrap|versioneer|noxfile|fabfile|tasks|dodo|make|build|release|docs?/(?:\w+/)*conf)\.py"
)
"""Files that build, release or document a project and are no part of what it does."""


def is_script(file: str) -> bool:
    """Whether a file is a script around the project, such as `setup.py`."""
    return bool(re.fullmatch(SCRIPTS, file))


BESIDE = r"docs?|documentation|examples?|demos?|samples?|benchmarks?|scripts|tools|ci"
"""Names of folders beside a project's code."""
SHOWCASES = r"examples?|demos?|samples?|tutorials?|benchmarks?"
"""Names of folders that are no part of what a project does, also within its packages."""


def is_beside(file: str) -> bool:
    """Whether a file is no part of what a project does: a script around it, its documents, examples."""
    folders = file.split("/")[:-1]
    shown = any(re.fullmatch(SHOWCASES, one) for one in folders)
    return shown or is_script(file) or bool(folders and re.fullmatch(BESIDE, folders[0]))


async def enclosing_kinds(file: str, qualified: str) -> list[str]:
    """The kinds of the definitions around one, the outermost first, such as `["class"]` for a method."""
    parts = qualified.split(".")
    found = []
    for count in range(1, len(parts)):
        found.append((await node_facts(file, ".".join(parts[:count])))["kind"])
    return found


async def module_place(file: str, qualified: str) -> tuple[str, str, str]:
    """The module as its importers name it, the folder that must be importable, and the dotted name in the module."""
    parts = file[: -len(".py")].split("/")
    root = "."
    if len(parts) > 1 and parts[0] in ("src", "lib", "python") and not await file_exists(f"{parts[0]}/__init__.py"):
        root, parts = parts[0], parts[1:]
    parts = parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
    return ".".join(parts), root, qualified.partition("#")[0]


async def tests_folder(file: str) -> str:
    """The nearest folder for tests: next to the file, or above it."""
    parts = file.split("/")[:-1]
    for depth in range(len(parts), -1, -1):
        above = "/".join(parts[:depth])
        names = await list_dir(above or ".")
        for name in ("tests/", "test/"):
            if name in names:
                return f"{above}/{name}" if above else name
    return "tests/"


def is_test_file(file: str) -> bool:
    """Whether pytest would take the file for a part of the tests."""
    name = file.split("/")[-1]
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"


def is_in_tests(file: str) -> bool:
    """Whether a file belongs to the tests: by its own name, or in a folder for them."""
    *folders, name = file.split("/")
    return is_test_file(file) or name in ("test.py", "tests.py") or any(re.fullmatch(TESTS, one) for one in folders)


def stem_for(module: str, qualified: str) -> str:
    """A file name for something about one definition, without the name of the package."""
    parts = module.split(".")
    parts = parts[1:] if len(parts) > 1 else parts
    return flat("_".join([*parts, qualified]))


def flat(name: str) -> str:
    """A dotted name as one word."""
    return re.sub(r"[\W_]+", "_", name).strip("_").lower()


async def class_file(name: str, file: str, text: str) -> str | None:
    """The file that defines a name which `file`, with this text, defines as a class or imports from the project."""
    if re.search(rf"(?m)^class {name}\b", text):
        return file
    for module, group, line in re.findall(r"(?m)^from ([\w.]+) import (?:\(([^)]*)\)|([^\n(]*))", text):
        if name not in re.split(r"[\s,]+", group or line):
            continue
        here = file.split("/")[:-1]
        dots = len(module) - len(module.lstrip("."))
        base = here[: len(here) - dots + 1] if dots else (["src"] if here[:1] == ["src"] else [])
        path = "/".join([*base, *[part for part in module.lstrip(".").split(".") if part]])
        for found in (f"{path}.py", f"{path}/__init__.py"):
            if await file_exists(found):
                return found
    return None
