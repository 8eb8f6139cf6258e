"""Statements of documents that the code proves to be false: imports, parameters, the oldest Python, links to files.

Each statement belongs to the Python file that it is about. What is not about one file belongs to the first of the
package. A statement is corrected only if there is exactly one thing that it can mean.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

from remora.discovery._docstrings import is_public_file
from remora.discovery._documents import is_document, snippets
from remora.discovery._outline import FunctionOutline
from remora.discovery._proofs import (
    LINE,
    Edit,
    Finding,
    Sources,
    apply_findings,
    count_word,
    module_names,
    oldest_python,
)

MIN_SLIP = 6
"""Names with fewer letters that differ in one may be two names."""
_ABOUT_TODAY = re.compile(
    r"(?i)(?:readme[^/]*|(?:docs?/(?:\w+/)?)?(?:index|install\w*|getting[-_]?started|quick[-_]?start|intro\w*|overview"
    r"|usage|prerequisites))\.\w+"
)
"""Documents that say what the project needs now. Others tell about one version, one part or one example of it."""
_VERSION = re.compile(
    r"(?i)\bPython\s*(?:version\s*)?(?:(?:>=\s*)?(?P<and_newer>[23]\.\d+)"
    r"(?=\s*(?:\+|(?:or|and) (?:newer|later|above|higher|greater|up)\b))"
    r"|(?:>=\s*|(?<=at least python )|(?<=at least python version ))(?P<at_least>[23]\.\d+)(?![\d.]*\d|\.x|\s*,))"
)
"""The oldest Python that a document names: `Python 3.8+`, `Python 3.8 or newer`, `at least Python 3.8`."""
_CLAIM = re.compile(r"(?i)\b(?:requires?|needs?|supports?|supported|works|compatible|tested|minimum|prerequisites?)\b")
_NEAR = re.compile(
    r"(?i)^(?:\W|at least|c?python|pypy3?|officially|only|and|is|are|on|with|for|in|under|against|all|any|versions?)*$"
)
"""Words between a claim and the version. Any other word makes it a claim about a feature (`supports async in …`)."""
_ITEM = re.compile(r"(?i)^(?:\s*\d+\.)?\W*Python\b(?:\W+\w+){0,6}\W*$")
"""A line of a list of requirements. Spaces and the mark of an item are no words."""
_SUBJECT = """
    this the it its a our we you your library package project module tool plugin software program code application app
    framework currently also only and is are be been works officially fully has have will requires require required
    needs need supports support supported compatible tested minimum prerequisites prerequisite which that note please
    requirements installation python version versions with on for to of all
"""
"""Words of a sentence about the project itself."""
_LISTED = re.compile(r"^\s*(?:[-*+]|\d+\.)\s")
_HISTORY = re.compile(r"(?i)\b(?:now|last|drop(?:s|ped)?|since|until|no longer|before|older|(?<!\.)\d+\.\d+\.\d+)\b")
_RELEASE = re.compile(r"(?i)^\W*(?:v|version\s+|release\s+)?\d+\.\d+(?:\.\w+)*(?:\W.{0,40})?$")
"""A line that is the number of a version, perhaps with its date."""
_CHANGES = re.compile(r"(?i)histor|change|release|news|upgrad|migrat|porting")
_UNDERLINE = re.compile(r"^([-=~^\"'*+#])\1{2,}\s*$")
_BESIDE = re.compile(r"(?i)(?:^|/)(?:examples?|demos?|samples?|tests?|benchmarks?|notebooks?|scripts)/")
_LINK = re.compile(r"(?<!!)\[[^\]\n]{0,300}\]\(([^)\s#:?<>]{1,300}\.\w{1,20})(#[^)\s]{0,300})?\)")
"""Every repetition is bounded, because documents come from others."""


def statements(sources: Sources, path: str, without: Sequence[str]) -> tuple[list[Finding], dict[str, str]]:
    """False statements about a file, and the documents with corrections. Not those in `without`."""
    if not is_public_file(path) or not path.endswith(".py"):
        return [], {}
    found: dict[str, Finding] = {}
    for document in filter(is_document, sources.files):
        text = sources.text(document)
        for one in [*_about_code(sources, path, document, text), *_about_project(sources, path, document, text)]:
            if one.key not in without:
                found.setdefault(one.key, one)
    return list(found.values()), apply_findings(sources, list(found.values()))


def _about_code(sources: Sources, path: str, document: str, text: str) -> Iterator[Finding]:
    modules = module_names(path)
    if not any(count_word(text, module.split(".")[0]) for module in modules):
        return
    imported: dict[str, str] = {}
    for snippet in snippets(text):
        for node in ast.walk(snippet.tree):
            row = snippet.line + getattr(node, "lineno", 1) - 1
            if isinstance(node, ast.ImportFrom) and node.module in modules and not node.level:
                yield from _imports(sources, path, document, text, node, row)
                imported |= {alias.asname or alias.name: alias.name for alias in node.names}
            elif isinstance(node, ast.Call):
                yield from _call(sources, path, document, text, node, row, imported)


def _imports(
    sources: Sources, path: str, document: str, text: str, node: ast.ImportFrom, row: int
) -> Iterator[Finding]:
    """Names that the document imports and the module does not have."""
    own = sources.outlines[path]
    folder = path.rpartition("/")[0]
    for name in [alias.name for alias in node.names if alias.name != "*"]:
        beside = (f"{folder}/{name}.py", f"{folder}/{name}/__init__.py", f"{folder}/{name}.pyi")
        inside = path.endswith("__init__.py") and any(file.lstrip("/") in sources.files for file in beside)
        if own.is_open or name in own.names or inside or name.startswith("__"):
            continue
        public = {each for each in own.names if not each.startswith("_")}
        better = _only_meant(name, public)
        edits = _replaced(document, text, row, name, better) if better else ()
        what = f"{document} imports `{name}` from `{node.module}`, which has no such name"
        why = f"it has `{better}`" if better else "the file defines and imports all of its names"
        yield Finding(f"{document} import {name}", document, row, what, why, edits)


def _call(
    sources: Sources, path: str, document: str, text: str, node: ast.Call, row: int, imported: dict[str, str]
) -> Iterator[Finding]:
    """Arguments by name that the called function does not have."""
    called = _called(sources, path, node, imported)
    if called is None:
        return
    name, function = called
    for given in [one.arg for one in node.keywords if one.arg]:
        if given in function.keywords or function.has_kwargs:
            continue
        passed = {one.arg for one in node.keywords}
        better = _only_meant(given, {each for each in function.keywords if each not in passed})
        edits = _replaced(document, text, row, given, better, "=") if better else ()
        what = f"{document} calls `{name}` with `{given}=`, which is no parameter"
        why = f"it has `{better}`" if better else f"its parameters: {', '.join(sorted(function.keywords))[:80]}"
        yield Finding(f"{document} call {name} {given}", document, row, what, why, edits)


def _called(
    sources: Sources, path: str, node: ast.Call, imported: dict[str, str]
) -> tuple[str, FunctionOutline] | None:
    """The function of this file that a call is about, if nothing else can be meant."""
    own = sources.outlines[path]
    spelled = ast.unparse(node.func)
    owner, _, last = spelled.rpartition(".")
    name = imported.get(spelled, "") if not owner else (last if owner in module_names(path) else "")
    if not name or own.is_open:
        return None
    found = own.functions.get(name)
    if found is None and name in own.classes and not own.classes[name].bases and own.classes[name].is_plain:
        found = own.functions.get(f"{name}.__init__")
    return (name, found) if found is not None and not found.decorated else None


def _about_project(sources: Sources, path: str, document: str, text: str) -> Iterator[Finding]:
    if path != _main_file(sources):
        return
    yield from _versions(sources, document, text)
    if document.endswith((".md", ".markdown")):
        yield from _links(sources, document, text)


def _main_file(sources: Sources) -> str:
    """The file that statements about the whole project belong to: the package's first."""
    files = [path for path in sources.outlines if is_public_file(path) and path.endswith(".py")]
    order = sorted(files, key=lambda path: (not path.endswith("__init__.py"), path.count("/"), path))
    return order[0] if order else ""


def _versions(sources: Sources, document: str, text: str) -> Iterator[Finding]:
    """The oldest Python, if the document says an older one than the project's settings."""
    oldest = oldest_python(sources) if _ABOUT_TODAY.fullmatch(document) else None
    lines = LINE.findall(text)
    silent = _silent(lines) if oldest else []
    for row, line in enumerate(lines, 1):
        is_item = _ITEM.match(line) and (row == 1 or not lines[row - 2].strip() or _LISTED.match(line))
        if oldest is None or not (_CLAIM.search(line) or is_item) or _is_history(line) or silent[row - 1]:
            continue
        for match in _VERSION.finditer(line):
            claims = [one.end() for one in _CLAIM.finditer(line, 0, match.start())]
            if claims and not _NEAR.match(line[claims[-1] : match.start()]):
                continue
            if claims and not _is_about_project(sources, line[: claims[-1]]):
                continue
            group = "and_newer" if match["and_newer"] else "at_least"
            said = tuple(int(part) for part in match[group].split("."))
            if said >= oldest or len(_VERSION.findall(line)) > 1:
                continue
            now = f"{oldest[0]}.{oldest[1]}"
            new = line[: match.start(group)] + now + line[match.end(group) :]
            what = f"{document} says Python {match[group]}"
            key = f"{document} python {match[group]} {row}"
            why = f"the project's settings need {now} or newer"
            yield Finding(key, document, row, what, why, (Edit(document, row, row, new),))


def _is_about_project(sources: Sources, said: str) -> bool:
    """Whether a sentence up to its verb names nothing but the project: others have needs of their own."""
    own = {
        path.split("/")[1 if path.startswith(("src/", "lib/")) else 0].removesuffix(".py") for path in sources.outlines
    }
    known = {re.sub(r"\W|_", "", name).lower() for name in own}
    sentence = re.split(r"[.!?:;]\s", said)[-1]
    words = [re.sub(r"\W|_", "", word).lower() for word in re.findall(r"[\w.-]+", sentence)]
    return all(not word or word in _SUBJECT.split() or word in known for word in words)


def _is_history(line: str) -> bool:
    """Whether a line is about another version of the project: it names a version that is not one of Python."""
    others = re.sub(r"(?i)(?:python|pypy)\s*(?:version\s*)?(?:>=\s*)?\d+(?:\.\d+)*", "", line)
    return bool(_HISTORY.search(line) or re.search(r"\d+\.\d+", others))


def _silent(lines: Sequence[str]) -> list[bool]:
    """Whether each line says nothing of today: below the number of a version, in a section of changes, or a heading.

    What follows a heading says in its own words what was or is needed.
    """
    used = [below[0] for line, below in pairwise(lines) if line.strip() and _UNDERLINE.match(below)]
    underlines = list(dict.fromkeys(used))
    found, inside, is_released = [], list[tuple[int, bool]](), False
    for line, below in zip_longest(lines, lines[1:], fillvalue=""):
        level = _level(line, below, underlines)
        found.append(bool(level) or is_released or any(is_history for _, is_history in inside))
        if level:
            is_history = bool(_RELEASE.match(line) or _CHANGES.search(line))
            inside = [each for each in inside if each[0] < level] + [(level, is_history)]
            is_released = False
        elif _RELEASE.match(line):
            is_released = True
    return found


def _level(line: str, below: str, underlines: Sequence[str]) -> int:
    """The level of a heading: by its number of `#`, or by which of the underlines came first. 0 for other lines."""
    if line.startswith("#"):
        return len(line) - len(line.lstrip("#"))
    return underlines.index(below[0]) + 1 if line.strip() and _UNDERLINE.match(below) else 0


def _links(sources: Sources, document: str, text: str) -> Iterator[Finding]:
    """Links to files that are elsewhere in the project."""
    here = posixpath.dirname(document)
    for row, line in enumerate(LINE.findall(text), 1):
        for match in _LINK.finditer(line):
            target = posixpath.normpath(posixpath.join(here, match[1]))
            if match[1].startswith("/") or target in sources.files or "." not in posixpath.basename(target):
                continue
            name = posixpath.basename(target)
            places = [path for path in sources.files if posixpath.basename(path) == name]
            if len(places) == 1 and bool(_BESIDE.search(target)) != bool(_BESIDE.search(places[0])):
                continue  # an example or a test of the same name as code: the folder may be left out of this copy
            if len(places) != 1 or posixpath.splitext(name)[0].lower() in ("readme", "index", "__init__"):
                continue
            moved = posixpath.relpath(places[0], here or ".")
            new = line[: match.start(1)] + moved + line[match.end(1) :]
            what = f"{document} links to `{match[1]}`, which does not exist"
            key = f"{document} link {match[1]} {row}"
            # A folder without any file may be left out of this copy.
            is_whole = any(posixpath.dirname(path) == posixpath.dirname(target) for path in sources.files)
            edits = (Edit(document, row, row, new),) if is_whole else ()
            yield Finding(key, document, row, what, f"`{moved}` has its name", edits)


def _only_meant(name: str, known: set[str]) -> str:
    """The one name that another is a slip of; empty if there are several or none.

    A name that is merely like another may be a second one: `load` and `loads`, `get_item` and `set_item`.
    """
    meant = sorted(each for each in known if _is_slip(name, each))
    return meant[0] if len(meant) == 1 else ""


def _is_slip(one: str, other: str) -> bool:
    """Whether names differ in case and underscores alone, or within a word by swapped, missing or mixed-up letters."""
    first, second = (name.replace("_", "").lower() for name in (one, other))
    if first == second:
        return True
    start = _common(first, second)
    first, second = first[start:], second[start:]
    end = _common(first[::-1], second[::-1])
    middle = sorted((first[: len(first) - end], second[: len(second) - end]), key=len)
    if not start or not end or start + end + len(middle[0]) < MIN_SLIP or not "".join(middle).isalpha():
        return False
    is_vowel = len(middle[1]) == len(middle[0]) == 1 and set("".join(middle)) <= set("aeiouy")
    return is_vowel or (not middle[0] and len(middle[1]) == 1) or (len(middle[0]) == 2 and middle[0] == middle[1][::-1])


def _common(one: str, other: str) -> int:
    """With how many equal letters two texts begin."""
    return next(
        (place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )


def _replaced(document: str, text: str, row: int, old: str, new: str, after: str = "") -> tuple[Edit, ...]:
    """The edit of the one place in a line where a name stands; none if it is there more than once."""
    line = LINE.findall(text)[row - 1]
    found = list(re.finditer(rf"(?<![\w.]){re.escape(old)}(?!\w)(?=\s*{re.escape(after)})", line))
    if len(found) != 1:
        return ()
    return (Edit(document, row, row, line[: found[0].start()] + new + line[found[0].end() :]),)
