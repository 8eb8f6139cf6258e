"""Dead code with proof: private names that nothing in the project mentions, and statements that cannot run.

A name counts as used if any text file of the project contains it, also in a comment or a document, or if a string in
the project could be a part of it (`getattr(self, "_visit_" + kind)`). So what is left has no use that a search finds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from remora.discovery._behaviour import Function
from remora.discovery._blocks import dead_statements, repeated_functions
from remora.discovery._imports import removed_with
from remora.discovery._outline import class_outline, tree_of
from remora.discovery._proofs import (
    LINE,
    Edit,
    Finding,
    Sources,
    apply_edits,
    count_words,
    oldest_python,
    words_of,
)
from remora.discovery._rows import rows_of, with_next, without_rows
from remora.discovery._versions import old_branches

LIST = 3
"""So many constants on lines that follow each other are a list."""
ROUNDS = 4
"""Code that only dead code uses is found in the next round."""
LOOKS = frozenset({"globals", "locals", "vars", "dir", "eval", "exec", "getmembers", "__dict__"})
"""Names by which a file may reach its definitions without naming them."""
PLAIN_MARKS = frozenset(
    {"staticmethod", "classmethod", "property", "cached_property", "lru_cache", "cache", "contextmanager"}
    | {"dataclass", "total_ordering", "final", "unique"}
)
"""Decorators that do not register what they decorate."""
PLAIN_CALLS = frozenset({"re.compile", "object", "frozenset", "TypeVar", "typing.TypeVar", "namedtuple"})
"""Calls whose result nobody misses."""
BASES = frozenset({"object", "Exception", "ValueError", "TypeError", "RuntimeError", "KeyError", "NamedTuple", "dict"})
_KEPT = re.compile(r"compat|legacy|deprecat|reserved|keep|used (?:by|in)|todo|external", re.IGNORECASE)
_COMMENT = re.compile(r"[:)\]}\w'\"]\s+#")
Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


def unused(sources: Sources, path: str, without: Sequence[str]) -> tuple[list[Finding], dict[str, str]]:
    """What is dead in a file, and the file's text without it. Findings in `without` are left as they are."""
    found: list[Finding] = []
    now = sources
    for _ in range(ROUNDS):
        known = {*without, *(old.key for old in found)}
        fresh = [one for one in _round(now, path) if one.key not in known]
        text, kept = _remove(now, path, fresh)
        if not kept:
            break
        found += kept
        now = now.with_text(path, text)
    return found, ({path: now.text(path)} if found else {})


def _round(sources: Sources, path: str) -> list[Finding]:
    tree = tree_of(sources.files[path])
    if tree is None:
        return []
    text = sources.text(path)
    oldest = oldest_python(sources)
    found = [*_names(sources, path, tree), *dead_statements(path, text, tree), *repeated_functions(path, text, tree)]
    return [*found, *(old_branches(path, text, tree, oldest) if oldest else ())]


def _remove(sources: Sources, path: str, fresh: Sequence[Finding]) -> tuple[str, list[Finding]]:
    """The file's text without these findings and the imports that only they use; and those that could be removed."""
    text = sources.text(path)
    kept: list[Finding] = []
    taken: set[int] = set()
    groups = [list(fresh)] if fresh else []
    while groups:  # a group that cannot go as a whole is halved: the file is parsed a few times, not once per finding
        group = groups.pop()
        rows = [row for edit in _edits(group) for row in range(edit.first, edit.last + 1)]
        is_free = len(rows) == len(set(rows)) and taken.isdisjoint(rows)
        if is_free and removed_with(sources, path, apply_edits(text, _edits([*kept, *group]))) is not None:
            kept += group
            taken.update(rows)
        elif len(group) > 1:
            middle = len(group) // 2
            groups += [group[middle:], group[:middle]]
    after = apply_edits(text, _edits(kept))
    return (removed_with(sources, path, after) or after), kept


def _edits(findings: Sequence[Finding]) -> list[Edit]:
    return [edit for finding in findings for edit in finding.edits]


def _names(sources: Sources, path: str, tree: ast.Module) -> Iterator[Finding]:
    """Private definitions of the module and its classes that nothing mentions."""
    own = words_of(sources.files[path])
    if path.endswith(".pyi") or own & LOOKS:
        return
    lines = LINE.findall(sources.text(path))
    counts, elsewhere = count_words(sources.text(path)), sources.words_beside(path)
    listed = _rows_in_lists(tree.body)
    for kind, node, follows in _definitions(sources, tree):
        name = _name(node)
        if not _is_private(name) or not _is_free(sources, node):
            continue
        if (kind != "method" and name.startswith("__")) or (kind == "name" and node.lineno in listed):
            continue
        first, last = rows_of(lines, node, follows)
        if _is_kept(lines[first - 1 : node.lineno], node):
            continue
        inside = count_words("".join(lines[first - 1 : last]))
        if any(counts[word] > inside[word] for word in _spellings(name)) or name in elsewhere:
            continue
        if any(_composes(piece, name) for piece in sources.pieces):
            continue
        why = "its name is nowhere else in the project, nor a string that could be a part of it"
        edit = without_rows(lines, path, first, last)
        yield Finding(f"{kind} {name}", path, node.lineno, f"{kind} `{name}` is never used", why, (edit,))


def _definitions(sources: Sources, tree: ast.Module) -> Iterator[tuple[str, Named, ast.stmt | None]]:
    """Definitions with their kind and the statement that follows them. One that is alone in its block must stay."""
    for node, follows in with_next(tree.body):
        if isinstance(node, Named) and len(tree.body) > 1:
            kind = "class" if isinstance(node, ast.ClassDef) else "function" if isinstance(node, Function) else "name"
            yield kind, node, follows
        if isinstance(node, ast.ClassDef) and len(node.body) > 1 and _is_free(sources, node):
            for each, after in with_next(node.body):
                if isinstance(each, Function) and _is_hidden(node, each):
                    yield "method", each, after


def _is_hidden(owner: ast.ClassDef, method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether only the class itself can call a method. One of a public class may be for a package beside the project.

    So `sanic` calls `_display` of the object that `sanic_ext` gives it.
    """
    return _is_private(owner.name) or method.name.startswith("__")


def _name(node: Named) -> str:
    if isinstance(node, ast.Assign):
        target = node.targets[0] if len(node.targets) == 1 else None
        return target.id if isinstance(target, ast.Name) else ""
    if isinstance(node, ast.AnnAssign):
        return node.target.id if isinstance(node.target, ast.Name) else ""
    return node.name


def _is_private(name: str) -> bool:
    """Whether only this project can mean the name. Names such as `_missing_` are read by others."""
    return len(name) > 2 and name.isascii() and name.startswith("_") and not name.endswith("_")


def _is_kept(lines: Sequence[str], node: Named) -> bool:
    """Whether a person kept it on purpose: a comment beside the name, a word such as `compat`, a test switched off."""
    said = any(_KEPT.search(line) for line in lines) or bool(_COMMENT.search(lines[-1]))
    return said or isinstance(getattr(node, "value", None), ast.Name | ast.Attribute) or "test" in _name(node)


def _rows_in_lists(body: Sequence[ast.stmt]) -> set[int]:
    """First lines of constants of which at least three follow each other line by line: such lists are kept complete."""
    lists: list[list[int]] = []
    end = 0
    for node in (each for each in body if isinstance(each, ast.Assign | ast.AnnAssign)):
        if not lists or node.lineno != end + 1:
            lists.append([])
        lists[-1].append(node.lineno)
        end = node.end_lineno or node.lineno
    return {row for rows in lists if len(rows) >= LIST for row in rows}


def _is_free(sources: Sources, node: Named) -> bool:
    """Whether nothing else holds the definition: a decorator, a base from outside, a value with effects."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return node.value is not None and _is_plain(node.value)
    marks = [ast.unparse(mark.func if isinstance(mark, ast.Call) else mark) for mark in node.decorator_list]
    if any(mark.rpartition(".")[2] not in PLAIN_MARKS for mark in marks):
        return False
    if not isinstance(node, ast.ClassDef):
        return True
    own = class_outline(node)
    return _has_own_bases(sources, own.bases, own.is_plain, frozenset())


def _has_own_bases(sources: Sources, bases: Sequence[str], is_plain: bool, seen: frozenset[str]) -> bool:
    """Whether all bases are known, so that no base can call or register what the class defines."""
    if not is_plain:
        return False
    for name in bases:
        if name in BASES or name in seen:
            continue
        known = sources.classes.get(name, [])
        if len(known) != 1 or not _has_own_bases(sources, known[0].bases, known[0].is_plain, seen | {name}):
            return False
    return True


def _is_plain(value: ast.expr) -> bool:
    """Whether computing a value has no effect."""
    if isinstance(value, ast.Call):
        return ast.unparse(value.func) in PLAIN_CALLS and all(_is_plain(each) for each in value.args)
    if isinstance(value, ast.Attribute):
        return _is_plain(value.value)
    if isinstance(value, ast.Constant | ast.Name | ast.Lambda):
        return True
    if isinstance(value, ast.Tuple | ast.List | ast.Set | ast.Dict | ast.BinOp | ast.UnaryOp):
        return all(_is_plain(each) for each in ast.iter_child_nodes(value) if isinstance(each, ast.expr))
    return False


def _spellings(name: str) -> tuple[str, ...]:
    """The words by which its own file may mean a name: a mangled one also without its underscores."""
    return (name, name.lstrip("_")) if name.startswith("__") else (name,)


def _composes(piece: tuple[str, bool], name: str) -> bool:
    text, reaches = piece
    if reaches:
        return name.startswith(text) or name.endswith(text)
    starts = text.endswith("_") and name.startswith(text)
    return len(text) > 1 and (starts or (text.startswith("_") and name.endswith(text)))
