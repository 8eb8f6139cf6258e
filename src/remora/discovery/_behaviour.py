"""What a function does, as far as its syntax proves it: errors and when, results and when, what it changes.

Only the function's own statements count, not those of functions inside it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from remora.discovery._wording import in_words, quote

Function = ast.FunctionDef | ast.AsyncFunctionDef
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
CHANGING = frozenset(
    {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem",
     "add", "discard", "appendleft"}
)  # fmt: skip
"""Methods that change the object they are called on."""
MAX_FACTS = 12
MAX_MESSAGE = 100


@dataclass(frozen=True)
class _Condition:
    """When a statement runs. `known` is False where a loop, a `try` or an earlier exit decides it too."""

    tests: tuple[tuple[ast.expr, bool], ...] = ()
    known: bool = True
    caught: str = ""
    """The errors of the handler around it."""

    def with_test(self, test: ast.expr, holds: bool) -> _Condition:
        return _Condition((*self.tests, (test, holds)), self.known, self.caught)

    def unknown(self) -> _Condition:
        return _Condition(self.tests, False, self.caught)


@dataclass
class _Walk:
    """Collects the raises and returns of a function with their conditions."""

    found: list[tuple[ast.Raise | ast.Return, _Condition]] = field(default_factory=list)

    def block(self, body: Sequence[ast.stmt], when: _Condition) -> _Condition:
        """Walk statements. Returns the condition under which the statements after the block run."""
        for statement in body:
            if isinstance(statement, ast.Raise | ast.Return):
                self.found.append((statement, when))
            when = self._inside(statement, when)
        return when

    def _inside(self, statement: ast.stmt, when: _Condition) -> _Condition:
        if isinstance(statement, ast.If):
            return self._branches(statement, when)
        if isinstance(statement, ast.With | ast.AsyncWith):
            return self.block(statement.body, when)
        if isinstance(statement, ast.Try):
            return self._attempt(statement, when)
        if isinstance(statement, ast.For | ast.AsyncFor | ast.While):
            self.block(statement.body, when.unknown())
            after = when.unknown() if _leaves(statement.body) else when
            return self.block(statement.orelse, after)
        if isinstance(statement, ast.Match):
            for case in statement.cases:
                self.block(case.body, when.unknown())
            return when.unknown()
        return when

    def _branches(self, statement: ast.If, when: _Condition) -> _Condition:
        self.block(statement.body, when.with_test(statement.test, True))
        self.block(statement.orelse, when.with_test(statement.test, False))
        body, other = ends(statement.body), ends(statement.orelse)
        if body and not other:
            # After `if bad: raise`, every later error has passed that test; only an early return limits what follows.
            raises = isinstance(statement.body[-1], ast.Raise)
            rest = when if raises else when.with_test(statement.test, False)
            return rest.unknown() if _leaves(statement.orelse) else rest
        if other and not body:
            raises = isinstance(statement.orelse[-1], ast.Raise)
            rest = when if raises else when.with_test(statement.test, True)
            return rest.unknown() if _leaves(statement.body) else rest
        return when.unknown() if _leaves([*statement.body, *statement.orelse]) else when

    def _attempt(self, statement: ast.Try, when: _Condition) -> _Condition:
        self.block(statement.body, when.unknown() if statement.handlers else when)
        for handler in statement.handlers:
            caught = ast.unparse(handler.type) if handler.type else ""
            self.block(handler.body, _Condition(when.tests, False, caught))
        self.block(statement.orelse, when.unknown())
        self.block(statement.finalbody, when)
        return when.unknown() if _leaves([statement]) else when


def behaviour(tree: ast.Module, first: int) -> dict[str, Any]:
    """Facts about the function whose first line, decorators included, is `first`; empty if there is none."""
    function = find_function(tree, first)
    if function is None:
        return {}
    walk = _Walk()
    end = walk.block(_body(function), _Condition())
    names = _Names(function)
    returns = [(part, when) for part, when in walk.found if isinstance(part, ast.Return)]
    raises = [(part, when) for part, when in walk.found if isinstance(part, ast.Raise)]
    return {
        "raises": _unique([_raised(part, when, names) for part, when in raises])[:MAX_FACTS],
        "returns": [_returned(part, when, names) for part, when in returns][:MAX_FACTS],
        "falls_through": not ends(_body(function)) and end is not None,
        "changes": _changes(function, names)[:MAX_FACTS],
        "defaults": _defaults(function)[:MAX_FACTS],
        "steps": _steps(_body(function), names),
        "yields": any(isinstance(part, ast.Yield | ast.YieldFrom) for part in own_nodes(function)),
        "names": sorted(names.every),
    }


def find_function(tree: ast.Module, first: int) -> Function | None:
    """The function whose first line is `first`."""
    for node in ast.walk(tree):
        if isinstance(node, Function) and min([node.lineno, *(mark.lineno for mark in node.decorator_list)]) == first:
            return node
    return None


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a function, except those in nested definitions and lambdas."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, SCOPES):
            waiting += ast.iter_child_nodes(node)


def ends(body: Sequence[ast.stmt]) -> bool:
    """Whether no statement after this block can run."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Raise | ast.Return):
        return True
    if isinstance(last, ast.If):
        return ends(last.body) and ends(last.orelse)
    if isinstance(last, ast.With | ast.AsyncWith):
        return ends(last.body)
    if isinstance(last, ast.Try):
        tried = ends(last.orelse) if last.orelse else ends(last.body)
        return ends(last.finalbody) or (tried and all(ends(handler.body) for handler in last.handlers))
    is_endless = isinstance(last, ast.While) and isinstance(last.test, ast.Constant) and bool(last.test.value)
    return is_endless and not any(isinstance(part, ast.Break) for part in ast.walk(last))


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a return is inside."""
    return any(isinstance(part, ast.Return) for statement in body for part in (statement, *own_nodes(statement)))


class _Names:
    """The names of a function: parameters that keep their value, names that mean something to a caller, all names."""

    def __init__(self, function: Function) -> None:
        given = function.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        stars = [star for star in (given.vararg, given.kwarg) if star]
        self.parameters = [one.arg for one in (*every, *stars)]
        self.collected = {one.arg for one in stars}
        nodes = list(own_nodes(function))
        stored = {part.id for part in nodes if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store | ast.Del)}
        stored |= {part.name for part in nodes if isinstance(part, ast.ExceptHandler) and part.name}
        self.kept = {name for name in self.parameters if name not in stored}
        self.local = stored
        self.flags = frozenset(_flags(function))
        names = [part for part in ast.walk(function) if isinstance(part, ast.Name)]
        parts = [part.attr for part in ast.walk(function) if isinstance(part, ast.Attribute)]
        self.every = {part.id for part in names} | set(parts) | set(self.parameters) | {function.name}

    def is_public(self, name: str) -> bool:
        """Whether a caller can know a name by itself: a parameter, a builtin, a class or a constant."""
        return name in self.parameters or hasattr(builtins, name) or name[:1].isupper()

    def are_clear(self, test: ast.expr) -> bool:
        """Whether a caller knows every name in a condition."""
        calls = [part.func for part in ast.walk(test) if isinstance(part, ast.Call)]
        inside = [*calls, *(part.value for part in ast.walk(test) if isinstance(part, ast.Attribute))]
        for part in ast.walk(test):
            if isinstance(part, ast.Name) and part.id in self.local:
                return False
            if isinstance(part, ast.Name) and not (part in inside or self.is_public(part.id)):
                return False
            if isinstance(part, ast.Attribute) and part.attr.startswith("_"):
                return False
            if isinstance(part, ast.Name) and part.id.startswith("_"):
                return False
            if isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.Lambda):
                return False
        return True


def _flags(function: Function) -> Iterator[str]:
    """Parameters that are annotated as bool or have such a default."""
    given = function.args
    every = [*given.posonlyargs, *given.args]
    pairs = [*zip(every[len(every) - len(given.defaults) :], given.defaults, strict=True)]
    pairs += [(one, value) for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value]
    yield from (one.arg for one, value in pairs if isinstance(value, ast.Constant) and isinstance(value.value, bool))
    for one in [*every, *given.kwonlyargs]:
        if one.annotation and ast.unparse(one.annotation) == "bool":
            yield one.arg


def _words(when: _Condition, names: _Names) -> str:
    """The condition in words; empty if it is not known, or has no good wording."""
    if not when.known or not when.tests or len(when.tests) > 2:
        return ""
    if not all(names.are_clear(test) for test, _ in when.tests):
        return ""
    parts = [in_words(test, holds=holds, flags=names.flags) for test, holds in when.tests]
    if not all(parts) or (len(parts) > 1 and any(" or " in part or " and " in part for part in parts)):
        return ""
    return " and ".join(dict.fromkeys(reversed(parts)))


def _raised(statement: ast.Raise, when: _Condition, names: _Names) -> dict[str, Any]:
    given = statement.exc
    called = given.func if isinstance(given, ast.Call) else given
    name = ast.unparse(called) if isinstance(called, ast.Name | ast.Attribute) else ""
    name = name if name.rpartition(".")[2][:1].isupper() else ""
    return {
        "name": name,
        "when": _words(when, names),
        "message": _message(given),
        "always": not when.tests and when.known,
        "caught": when.caught,
    }


def _message(given: ast.expr | None) -> str:
    """The text of an error, if it is a plain string."""
    first = given.args[0] if isinstance(given, ast.Call) and given.args else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return ""
    text = " ".join(first.value.split())
    return text if len(text) <= MAX_MESSAGE and not set('`\\"%{') & set(text) else ""


def _returned(statement: ast.Return, when: _Condition, names: _Names) -> dict[str, Any]:
    value = statement.value
    kind = "other"
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        kind = "none"
    elif isinstance(value, ast.Name) and names.parameters[:1] == [value.id] and value.id == "self":
        kind = "self"
    elif isinstance(value, ast.Constant):
        kind = "constant"
    clear = value is not None and names.are_clear(value)
    said = quote(value) if value and clear else ""
    return {"kind": kind, "value": said, "when": _words(when, names), "line": statement.lineno}


def _changes(function: Function, names: _Names) -> list[dict[str, str]]:
    """The parameters whose object the function changes, `self` left out.

    `*args` and `**kwargs` are objects of the call itself: no caller sees what happens to them.
    """
    hidden = {"self", "cls", *names.collected}
    changed: dict[str, str] = {}
    for part in own_nodes(function):
        owner, how = None, ""
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in CHANGING:
            owner, how = part.func.value, f"{part.func.attr}()"
        elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store | ast.Del):
            owner, how = part.value, "an item"
        elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store | ast.Del):
            owner, how = part.value, f"`{part.attr}`"
        if isinstance(owner, ast.Name) and owner.id in names.kept and owner.id not in hidden:
            changed.setdefault(owner.id, how)
    return [{"name": name, "how": how} for name, how in changed.items()]


def _defaults(function: Function) -> list[dict[str, str]]:
    """What stands in for a parameter that is None: `if x is None: x = value`, before anything else uses it."""
    found = []
    for statement in _body(function):
        if not isinstance(statement, ast.If) or len(statement.body) != 1 or statement.orelse:
            continue
        test, done = statement.test, statement.body[0]
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is) and isinstance(test.left, ast.Name):
            is_none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
            if is_none and isinstance(done, ast.Assign) and ast.unparse(done.targets[0]) == test.left.id:
                found.append({"name": test.left.id, "value": quote(done.value)})
    return [one for one in found if one["value"]]


def _steps(body: Sequence[ast.stmt], names: _Names) -> list[dict[str, str]]:
    """All statements as steps in words; empty if one of them has no wording."""
    steps: list[dict[str, str]] = []
    for statement in body:
        step = _step(statement, names)
        if step is None or len(steps) > 4:
            return []
        steps.append(step)
    return steps


def _step(statement: ast.stmt, names: _Names) -> dict[str, str] | None:
    if isinstance(statement, ast.If) and not statement.orelse and len(statement.body) == 1:
        inner = statement.body[0]
        when = _words(_Condition(((statement.test, True),)), names)
        return {"do": "raise"} if isinstance(inner, ast.Raise) and when else None
    if isinstance(statement, ast.Raise):
        return {"do": "raise"}
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        is_own = isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"
        if not is_own or not names.are_clear(target) or not names.are_clear(value) or not quote(value):
            return None
        plain = "constant" if isinstance(value, ast.Constant) else "name" if isinstance(value, ast.Name) else "other"
        return {"do": "set", "target": quote(target), "value": quote(value), "kind": plain}
    if isinstance(statement, ast.Return) and statement.value is not None:
        if not names.are_clear(statement.value) or not quote(statement.value):
            return None
        words = in_words(statement.value, flags=names.flags)
        plain = "constant" if _is_constant(statement.value) else ""
        return {"do": "return", "value": quote(statement.value), "whether": words, "plain": plain}
    return None


def _is_constant(value: ast.expr) -> bool:
    """Whether an expression is a constant or an empty container."""
    return isinstance(value, ast.Constant) or ast.unparse(value) in ("[]", "{}", "()", "-1")


def _body(function: Function) -> list[ast.stmt]:
    """The statements after the docstring."""
    return function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body


def _unique(facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    for fact in facts:
        if fact not in kept:
            kept.append(fact)
    return kept
