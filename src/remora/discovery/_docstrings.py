"""How a project writes its docstrings: which functions have one, in which style, and what it says about parameters."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from remora.discovery._behaviour import Function

FEWEST = 4
"""Public functions from which on a project has a habit at all."""
MAX_DESCRIPTION = 240
"""Characters of the longest description of a parameter that is given to scripts."""
AGREED = 3
"""So many docstrings of a file that say the same about a parameter show what it is in all of them."""
MAX_SENTENCE = 110
"""Characters of the longest first sentence that is given to scripts as an example."""
MOST_NEARBY = 3
GOOGLE = re.compile(r"(?m)^[ \t]*(?:Args|Arguments|Returns|Raises|Yields):[ \t]*$")
NUMPY = re.compile(r"(?m)^[ \t]*(?:Parameters|Returns|Raises|Yields)[ \t]*\n[ \t]*-{3,}[ \t]*$")
SPHINX = re.compile(r"(?m)^[ \t]*:(?:param|returns?|raises?|type|rtype)\b[^:\n]*:")
_ENTRY = {
    "google": re.compile(r"^([ \t]+)(\*{0,2}\w+)[ \t]*(\([^)\n]*\))?:[ \t]+(\S.*(?:\n\1[ \t]+\S.*)*)$", re.M),
    "sphinx": re.compile(
        r"^([ \t]*):param[ \t]+(?:[^:\n]*?[\s*])?\*{0,2}(\w+)[ \t]*()?:[ \t]*(\S.*(?:\n\1[ \t]+\S.*)*)$", re.M
    ),
}
"""Indentation, name, type in brackets and description of a parameter, by style."""
_TEST = re.compile(
    r"(?:^|/)(?:tests?|testing|docs?|examples?|demos?|samples?|tutorials?|benchmarks?)/"
    r"|(?:^|/)(?:test_[^/]*|[^/]*_test|(?:example|demo)[^/]*|[^/]*_(?:example|demo)|tests?|conftest|setup)\.py$"
    r"|^(?:noxfile|fabfile|tasks|dodo|make|build|release)\.py$"
)
BUILTIN = {kind.__name__: kind for kind in (dict, list, set, frozenset, tuple, str, bytes, int, float, object, type)}


@dataclass(frozen=True)
class FunctionDoc:
    """The docstring of one function, as far as others can learn from it."""

    qualified: str
    documented: bool
    public: bool
    style: str = ""
    double_ticks: int = 0
    single_ticks: int = 0
    says_s: int = 0
    """1 if it begins with a verb like `Returns`, -1 if with one like `Return`, 0 if neither."""
    parameters: tuple[tuple[str, str, str], ...] = ()
    """Name, type in brackets, and description of each parameter."""
    signature: tuple[tuple[str, str], ...] = ()
    """Each parameter with its annotation and default, as one text."""
    first: str = ""
    """Its first sentence, in one line."""


@dataclass(frozen=True)
class ClassDoc:
    """The bases of a class, and which of its methods have a docstring."""

    bases: tuple[str, ...]
    methods: Mapping[str, bool]


@dataclass(frozen=True)
class FileDocs:
    """What the docstrings of one file show."""

    functions: tuple[FunctionDoc, ...] = ()
    classes: Mapping[str, ClassDoc] = field(default_factory=dict)


def is_public_file(path: str) -> bool:
    """Whether a file counts for the project's habits: tests, examples and the like do not."""
    return not _TEST.search(path)


def read_docs(tree: ast.Module) -> FileDocs:
    """The docstrings of one file."""
    functions: list[FunctionDoc] = []
    classes: dict[str, ClassDoc] = {}

    def visit(body: Iterable[ast.stmt], above: str, public: bool) -> None:
        for node in body:
            if isinstance(node, Function):
                functions.append(_function_doc(node, above, public))
            elif isinstance(node, ast.ClassDef):
                methods = {one.name: bool(ast.get_docstring(one)) for one in node.body if isinstance(one, Function)}
                bases = tuple(ast.unparse(base).split("[")[0] for base in node.bases)
                classes[node.name] = ClassDoc(bases, methods)
                visit(node.body, f"{above}{node.name}.", public and not node.name.startswith("_"))
            elif isinstance(node, ast.If | ast.Try | ast.With):
                visit(node.body, above, public)

    visit(tree.body, "", True)
    return FileDocs(tuple(functions), classes)


def _function_doc(node: Function, above: str, public: bool) -> FunctionDoc:
    marks = {ast.unparse(mark).split("(")[0].split(".")[-1] for mark in node.decorator_list}
    counts = public and not node.name.startswith("_") and not marks & {"overload", "setter", "deleter", "override"}
    text = ast.get_docstring(node) or ""
    signature = tuple(_signature(node.args))
    if not text:
        return FunctionDoc(f"{above}{node.name}", False, counts, signature=signature)
    style = style_of(text)
    verb = text.split()[0] if text.split() else ""
    says = 1 if re.fullmatch(r"(?:Returns|Sets|Gets|Adds|Creates|Checks|Raises|Yields|Makes)", verb) else 0
    says = -1 if re.fullmatch(r"(?:Return|Set|Get|Add|Create|Check|Raise|Yield|Make)", verb) else says
    entries = _ENTRY[style].findall(text) if style in _ENTRY else []
    told = tuple((name.lstrip("*"), kind, " ".join(said.split())) for _, name, kind, said in entries)
    doubles = len(re.findall(r"``[^`\n]+``", text))
    singles = len(re.findall(r"(?<!`)(?<!:)`[^`\n]+`(?!`)", text))
    first = first_sentence(text)
    return FunctionDoc(f"{above}{node.name}", True, counts, style, doubles, singles, says, told, signature, first)


def _signature(given: ast.arguments) -> Iterator[tuple[str, str]]:
    """Each parameter with its annotation and default."""
    every = [*given.posonlyargs, *given.args]
    pairs = [*zip(every, [*[None] * (len(every) - len(given.defaults)), *given.defaults], strict=True)]
    for one, default in [*pairs, *zip(given.kwonlyargs, given.kw_defaults, strict=True)]:
        parts = [ast.unparse(part) if part else "" for part in (one.annotation, default)]
        yield one.arg, " = ".join(parts)


def style_of(text: str) -> str:
    """The style of one docstring's sections: `google`, `numpy`, `sphinx`, or `plain` without any."""
    for style, pattern in (("sphinx", SPHINX), ("numpy", NUMPY), ("google", GOOGLE)):
        if pattern.search(text):
            return style
    return "plain"


def conventions(files: Mapping[str, FileDocs], path: str, qualified: str) -> dict[str, Any]:
    """The project's habits, and what it documents elsewhere about the function `qualified` in `path`."""
    shown = [doc for file, docs in files.items() if is_public_file(file) for doc in docs.functions if doc.public]
    written = [doc for doc in shown if doc.documented]
    styles = Counter(doc.style for doc in written)
    sections = Counter({style: count for style, count in styles.items() if style != "plain"})
    style = sections.most_common(1)[0][0] if sections else "plain"
    return {
        "functions": len(shown),
        "documented": len(written),
        "wanted": len(shown) < FEWEST or 2 * len(written) >= len(shown),
        "style": style if 4 * sum(sections.values()) >= len(written) else "plain",
        "ticks": _ticks(written),
        "third_person": sum(doc.says_s for doc in written) > 0,
        "inherits": _inherited(files, path, qualified),
        "described": _described(files, path, qualified),
        "nearby": _nearby(files[path].functions if path in files else (), qualified.partition("#")[0]),
    }


def first_sentence(text: str) -> str:
    """The first sentence of a docstring in one line; empty if it is long, or no sentence."""
    flat = " ".join(text.split("\n\n")[0].split())
    found = re.match(rf"[A-Z].{{8,{MAX_SENTENCE}}}?\.(?=\s|$)", flat)
    return found.group(0) if found else ""


def _nearby(functions: Iterable[FunctionDoc], qualified: str) -> list[list[str]]:
    """Names and first sentences of documented functions in the same file, those with the most alike names first."""
    owner, words = qualified.rpartition(".")[0], set(_words(qualified))
    others = [doc for doc in functions if doc.first and doc.public and doc.qualified != qualified]
    order = sorted(
        others, key=lambda doc: (-len(words & set(_words(doc.qualified))), doc.qualified.rpartition(".")[0] != owner)
    )
    return [[doc.qualified.rpartition(".")[2], doc.first] for doc in order[:MOST_NEARBY]]


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)]


def _ticks(written: Iterable[FunctionDoc]) -> str:
    doubles = sum(1 for doc in written if doc.double_ticks)
    singles = sum(1 for doc in written if doc.single_ticks)
    return "``" if doubles > singles else "`"


def _inherited(files: Mapping[str, FileDocs], path: str, qualified: str) -> str:
    """The method that this one overrides, or may override because a base is not part of the project."""
    owner, _, name = qualified.partition("#")[0].rpartition(".")
    classes = {known: doc for docs in files.values() for known, doc in docs.classes.items()}
    classes |= files[path].classes if path in files else {}
    waiting, seen = list(classes[owner.split(".")[-1]].bases) if owner.split(".")[-1] in classes else [], {""}
    while waiting:
        base = waiting.pop(0).split(".")[-1]
        if base in seen:
            continue
        seen.add(base)
        if base in BUILTIN:
            if hasattr(BUILTIN[base], name):
                return f"{base}.{name}"
        elif base not in classes:
            return f"{base}.{name}" if base not in ("Generic", "Protocol", "ABC", "NamedTuple", "Enum") else ""
        elif name in classes[base].methods:
            return f"{base}.{name}"
        else:
            waiting += classes[base].bases
    return ""


def _described(files: Mapping[str, FileDocs], path: str, qualified: str) -> dict[str, list[list[str]]]:
    """What several docstrings of the same file say in the same words about parameters with the same type and default.

    A single one may be about something else that has the same name.
    """
    found: dict[str, Counter[tuple[str, str]]] = {}
    functions = files[path].functions if path in files else ()
    own = next((dict(doc.signature) for doc in functions if doc.qualified == qualified.partition("#")[0]), {})
    for doc in functions:
        if doc.qualified == qualified.partition("#")[0]:
            continue
        theirs = dict(doc.signature)
        for name, kind, said in doc.parameters:
            # The same name with another type or default is another thing.
            same = name in own and own[name] == theirs.get(name)
            if same and len(said) <= MAX_DESCRIPTION:
                found.setdefault(name, Counter())[kind, said] += 1
    agreed = {name: max(said.values()) >= AGREED for name, said in found.items()}
    return {name: [list(pair) for pair in said] for name, said in found.items() if agreed[name]}
