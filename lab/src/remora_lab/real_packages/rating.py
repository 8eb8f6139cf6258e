"""The rules by which a change is rated: would a strict maintainer merge it? Pure functions of the change.

The rules were written before the first run, and are the same for every row of the table:

wrong       a test of the package fails with it, the file no longer parses, the project's linter or mypy reports
            something new, a name that other files import or a type comment uses is gone, a docstring says what the
            code does not do, a removed name is in another file, types come with other changes, a document gets a
            word that nothing has
useless     the project's own linter does not ask for it, it only says again what the signature says, a test compares
            nothing but a type, a representation or a hash, or has inputs that nobody would write; a fixture is for a
            private function, has fewer than two cases, or values that nobody wrote; nothing but layout changes, a
            signature stays incomplete, or the diff is long for what it fixes
merge       everything else
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from remora_lab.real_packages.inputs import Subject, doubt_fixture, doubt_test, leaves

Rating = Literal["merge", "useless", "wrong"]
MANY = 12
"""More errors than that in a file of tests mean that nobody runs the linter on it."""
LONG = 20
"""Changed lines for each fixed error, from which on a lint change is too long to read."""
_EMPTY_WORDS = """a an the of for to in on with by from and or as is are be this that it its given new return returns
    yield yields tell tells whether if set sets get gets run runs make makes do does add adds value values instance
    object class method function up now self answer python stands"""
_FILLERS = frozenset(_EMPTY_WORDS.split())


@dataclass(frozen=True)
class Change:
    """One offered change of one file, and the facts that its rating needs."""

    operation: str
    path: str
    before: str
    after: str
    broken: tuple[str, ...] = ()
    """Tests that fail with it and passed without it."""
    lint_before: int = 0
    lint_after: int = 0
    """What the project's own linter reports about the file."""
    lint_new: tuple[str, ...] = ()
    """Rules that it breaks more often than before."""
    imported: tuple[str, ...] = ()
    """Names that other files import from this one."""
    noticed: tuple[int, int] = (0, 0)
    """Of a test: changes of the code that it notices, and changes tried."""
    elsewhere: frozenset[str] = frozenset()
    """The words and paths of all other files of the project."""
    type_errors: tuple[str, ...] = ()
    """What mypy reports with it and did not report before."""
    subject: Subject = field(default_factory=Subject)
    """Of a test or a fixture: the function that it is about."""

    @property
    def size(self) -> int:
        """Lines added and removed."""
        import difflib

        lines = difflib.ndiff(self.before.splitlines(), self.after.splitlines())
        return sum(line[:2] in ("+ ", "- ") for line in lines)


def rate(change: Change) -> tuple[Rating, str]:
    """The rating of a change and the rule that gave it."""
    if change.broken:
        return "wrong", f"fails with the package's tests: {change.broken[0]}"
    if change.path.endswith(".py") and (problem := _parse_problem(change)):
        return "wrong", problem
    if change.lint_new:
        return "wrong", f"the project's linter reports something new: {', '.join(change.lint_new[:3])}"
    if change.type_errors:
        return "wrong", f"mypy reports something new: {change.type_errors[0]}"
    judge = JUDGES.get(change.operation)
    return judge(change) if judge else ("merge", "tests pass and the linter has nothing new")


def _parse_problem(change: Change) -> str:
    try:
        after = ast.parse(change.after)
    except (SyntaxError, ValueError) as error:
        return f"it does not parse: {error}"
    gone = [name for name in change.imported if name in _names(_tree(change.before)) and name not in _names(after)]
    return f"a name that other files import is gone: {gone[0]}" if gone else ""


def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])


def _names(tree: ast.Module) -> set[str]:
    """The names that a module defines or imports at its top level, also inside `if` and `try`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def _lint(change: Change) -> tuple[Rating, str]:
    fixed = change.lint_before - change.lint_after
    gone = _names(_tree(change.before)) - _names(_tree(change.after))
    comments = " ".join(re.findall(r"# type:(.*)", change.after))
    if named := sorted(name for name in gone if re.search(rf"\b{re.escape(name)}\b", comments)):
        return "wrong", f"a comment for type checkers uses `{named[0]}`, which is gone"
    if _empty_handlers(_tree(change.after)) > _empty_handlers(_tree(change.before)):
        return "wrong", "an import that stood in for another one is gone"
    name = change.path.rpartition("/")[2]
    if change.lint_before > MANY and (name.startswith("test_") or name == "conftest.py"):
        return "useless", f"{change.lint_before} errors: the project does not run its linter on its tests"
    if fixed <= 0:
        return "useless", "the project's own linter does not ask for it"
    if change.size > LONG * fixed:
        return "useless", f"{change.size} changed lines for {fixed} fixed errors"
    return "merge", f"{fixed} errors of the project's linter fixed in {change.size} changed lines, tests pass"


def _empty_handlers(tree: ast.Module) -> int:
    """How many `except` blocks do nothing."""
    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
    return sum(all(isinstance(each, ast.Pass) for each in handler.body) for handler in handlers)


def _docstring(change: Change) -> tuple[Rating, str]:
    """Every docstring that is new or changed must be true, and say more than the signature."""
    old = {name: ast.get_docstring(node) for name, node in _definitions(_tree(change.before))}
    said = False
    for name, node in _definitions(_tree(change.after)):
        doc = ast.get_docstring(node)
        if not doc or doc == old.get(name):
            continue
        if false := _false_claim(node, doc):
            return "wrong", f"`{name}`: {false}"
        said = said or not restates(name, node, doc)
    return ("merge", "it says more than the signature") if said else ("useless", "it only says the signature again")


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _definitions(tree: ast.AST, prefix: str = "") -> list[tuple[str, _Definition]]:
    found: list[tuple[str, _Definition]] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Definition):
            found.append((f"{prefix}{node.name}", node))
            found += _definitions(node, f"{prefix}{node.name}.")
        else:
            found += _definitions(node, prefix)
    return found


def _false_claim(node: _Definition, doc: str) -> str:
    """What a docstring claims and the code does not do; empty if nothing was found."""
    if isinstance(node, ast.ClassDef):
        return ""
    names = {arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    names |= {arg.arg for arg in (node.args.vararg, node.args.kwarg) if arg}
    unknown = [name for name in _described(doc) if name not in names]
    if unknown:
        return f"it describes a parameter `{unknown[0]}` that does not exist"
    raised = {part for each in ast.walk(node) if isinstance(each, ast.Raise) for part in _raised(each)}
    called = any(isinstance(each, ast.Call) for each in ast.walk(node))
    claimed = re.findall(r"^\s*(?::raises?\s+)?(\w+(?:Error|Exception)):", doc, re.MULTILINE)
    if claimed and not called and claimed[0] not in raised:
        return f"it says that {claimed[0]} is raised"
    gives = any(isinstance(each, ast.Return) and each.value for each in ast.walk(node))
    gives = gives or any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node))
    told = re.search(r"^\s*(Returns|:returns?):", doc, re.MULTILINE)
    return "it says what is returned, and nothing is" if told and not gives else ""


def _described(doc: str) -> list[str]:
    """The parameters that a docstring describes, in Google or Sphinx style."""
    found = re.findall(r"^\s*:param\s+(?:[\w.\[\], |]+\s)?\*{0,2}(\w+):", doc, re.MULTILINE)
    section = re.search(r"^(\s*)(?:Args|Arguments|Parameters):\s*\n((?:\1\s+.*\n?|\s*\n)+)", doc, re.MULTILINE)
    if section:
        lines = [line for line in section.group(2).splitlines() if line.strip()]
        margin = min(len(line) - len(line.lstrip()) for line in lines)
        heads = [re.match(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:", line[margin:]) for line in lines]
        found += [head.group(1) for head in heads if head]
    return found


def _raised(node: ast.Raise) -> list[str]:
    what = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return [what.id] if isinstance(what, ast.Name) else [what.attr] if isinstance(what, ast.Attribute) else []


def restates(name: str, node: _Definition, doc: str) -> bool:
    """Whether a docstring uses no word beside those of the signature and words that say nothing."""
    known = set(_words(name))
    if not isinstance(node, ast.ClassDef):
        every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
        known |= {word for arg in every if arg for word in _words(arg.arg)}
        known |= {word for arg in every if arg and arg.annotation for word in _words(ast.unparse(arg.annotation))}
        known |= set(_words(ast.unparse(node.returns))) if node.returns else set()
    known |= {word for base in getattr(node, "bases", ()) for word in _words(ast.unparse(base))}
    sections = {"args", "arguments", "returns", "raises", "yields", "parameters"}
    return all(word in known | _FILLERS | sections or f"{word}s" in known for word in _words(doc))


def _words(text: str) -> list[str]:
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    return [word.lower() for word in re.findall(r"[A-Za-z]+", spaced.replace("_", " "))]


_ASSERTS = re.compile(r"\s*(?:assert\b|with pytest\.raises\b|(?:with )?self\.assert\w+\()")
_WEAK = re.compile(r"type\(.*\)\.__name__ ==|repr\(|hash\(|<[\w.]+ object at|<generator|<function")


def _test(change: Change) -> tuple[Rating, str]:
    asserts = [line for line in change.after.splitlines() if _ASSERTS.match(line)]
    old = set(change.before.splitlines())
    new = [line for line in asserts if line not in old]
    if not new:
        return "useless", "it asserts nothing"
    if all(_WEAK.search(line) for line in new):
        return "useless", "it compares only types, representations or hashes"
    caught, tried = change.noticed
    if tried and not caught:
        return "useless", "it notices no change of the code"
    if doubt := doubt_test(new, change.subject, change.elsewhere):
        return "useless", doubt
    return "merge", f"it passes and notices {caught} of {tried} changes of the code" if tried else "it passes"


def _sample_data(change: Change) -> tuple[Rating, str]:
    try:
        value = json.loads(change.after) if change.path.endswith(".json") else ast.parse(change.after)
    except (ValueError, SyntaxError) as error:
        return "wrong", f"it cannot be read: {error}"
    if isinstance(value, ast.AST):
        return "merge", "it parses"
    if not [leaf for leaf in leaves(value) if leaf not in ("", 0, None, False, [], {})]:
        return "useless", "it has only empty values"
    doubt = doubt_fixture(change.after, change.subject, change.elsewhere)
    return ("useless", doubt) if doubt else ("merge", "somebody wrote its values")


def _dead_code(change: Change) -> tuple[Rating, str]:
    """What was removed must be code, and its name in no other file."""
    before, after = _tree(change.before), _tree(change.after)
    if ast.dump(before) == ast.dump(after):
        return "useless", "only layout and comments change"
    gone = {name for name in _names(before) - _names(after) if name not in _imported(before)}
    if named := sorted(gone & change.elsewhere):
        return "wrong", f"`{named[0]}` is removed, and another file of the project has its name"
    lines = len(change.before.splitlines()) - len(change.after.splitlines())
    return ("merge", f"{lines} lines fewer, tests pass") if lines > 0 else ("useless", "the file is not shorter")


def _imported(tree: ast.Module) -> set[str]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {(alias.asname or alias.name).partition(".")[0] for node in found for alias in node.names}


def _annotations(change: Change) -> tuple[Rating, str]:
    """Only types may be new, and every signature that changed must be complete."""
    if ast.dump(_untyped(_tree(change.before))) != ast.dump(_untyped(_tree(change.after))):
        return "wrong", "more than types changes"
    old = {name: _signature(node) for name, node in _typed(_tree(change.before))}
    new = [(name, node) for name, node in _typed(_tree(change.after)) if old.get(name) != _signature(node)]
    for name, node in new:
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if node.returns is None or any(not one.annotation and one.arg not in ("self", "cls") for one in given):
            return "useless", f"the signature of `{name}` stays incomplete"
    return ("merge", f"{len(new)} signatures complete, mypy has nothing new") if new else ("useless", "no type is new")


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return f"{ast.unparse(node.args)} {ast.unparse(node.returns) if node.returns else ''}"


def _typed(tree: ast.Module) -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    return [(name, node) for name, node in _definitions(tree) if not isinstance(node, ast.ClassDef)]


def _untyped(tree: ast.Module) -> ast.Module:
    """The tree without types in signatures. Changes the given one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return tree


def _documents(change: Change) -> tuple[Rating, str]:
    """Only documents may change, and every new word must be in another file: a name, a version or a path."""
    if change.path.endswith(".py"):
        return "wrong", "code changes"
    fresh = set(document_words(change.after)) - set(document_words(change.before))
    if not fresh:
        return "useless", "no word is new"
    unknown = sorted(word for word in fresh if word not in change.elsewhere)
    return (
        ("wrong", f"`{unknown[0]}` is nowhere in the project") if unknown else ("merge", "what is new is in the code")
    )


def document_words(text: str) -> list[str]:
    """Names, versions and paths of a text."""
    return re.findall(r"\w+(?:[./-]\w+)*", text)


JUDGES: dict[str, Callable[[Change], tuple[Rating, str]]] = {
    "lint": _lint,
    "docstring": _docstring,
    "test": _test,
    "sample_data": _sample_data,
    "dead_code": _dead_code,
    "annotations": _annotations,
    "documents": _documents,
}
"""The further rules for each operation."""
