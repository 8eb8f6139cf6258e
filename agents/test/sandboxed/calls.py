"""Call the code under test as a test would, and write results as expressions."""

import ast
import asyncio
import builtins
import contextlib
import copy
import importlib
import inspect
import os
import re
import signal
import tempfile
import types

IMPORTS = {
    "Decimal": "decimal", "Fraction": "fractions", "Path": "pathlib", "PurePath": "pathlib", "PurePosixPath": "pathlib",
    "date": "datetime", "datetime": "datetime", "time": "datetime", "timedelta": "datetime", "UUID": "uuid",
    "OrderedDict": "collections", "Counter": "collections", "defaultdict": "collections", "deque": "collections",
    "StringIO": "io", "BytesIO": "io", "SimpleNamespace": "types",
}  # fmt: skip
HARMLESS = {
    "abs", "bool", "bytearray", "bytes", "complex", "dict", "divmod", "enumerate", "float", "frozenset", "int", "iter",
    "len", "list", "max", "min", "object", "ord", "chr", "range", "repr", "reversed", "round", "set", "slice", "sorted",
    "str", "sum", "tuple", "type", "vars", "zip", "map", "filter", "print", "Ellipsis", "NotImplemented",
}  # fmt: skip

DIGEST = r"(?i)(?<![0-9a-z])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{16,}(?![0-9a-z])"
"""A hash value: nobody can see whether it is right."""
MEMBER = r"<([A-Za-z_]\w*\.[A-Za-z]\w*): [^<>]*>"
"""The `repr` of a member of an enumeration."""


PATIENCE = 10
"""How much longer a call may wait than work."""


class Forbidden(Exception):
    """A case uses more than values: it could do anything once the user runs the test."""


class Late(TimeoutError):
    """The call took longer than it may."""


class Calls:
    """Calls of one function, as expressions that a test can hold."""

    def __init__(self, spec, module, given=()):
        """`given` are the values of fixtures by name. Each call gets a copy of its own."""
        self.spec, self.module, self.given = spec, module, dict(given)
        for kind in (signal.SIGALRM, signal.SIGPROF):
            signal.signal(kind, late)

    def names_in(self, text):
        """The module of each name in an expression; None for an unknown name."""
        found = {}
        tree = ast.parse(text, mode="eval")
        own = {part.arg for part in ast.walk(tree) if isinstance(part, ast.arg)} | set(self.given)
        own |= {part.id for part in ast.walk(tree) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        for part in ast.walk(tree):
            if isinstance(part, ast.Attribute) and part.attr.startswith("_") and part.attr != self.spec["name"]:
                raise Forbidden(f"`{part.attr}` is not for a test")
            if isinstance(part, ast.Name) and part.id not in own and not is_harmless(part.id):
                found[part.id] = self.home(part.id)
        return found

    def home(self, name):
        """The module to import a name from: where it was defined, if that is known; None for an unknown name."""
        there = getattr(self.module, name, None)
        known = IMPORTS.get(name)
        if known and (there is None or there is getattr(importlib.import_module(known), name)):
            return known
        if there is None or inspect.ismodule(there):
            return None
        made = getattr(there, "__module__", "") or ""
        own = made.split(".")[0] == self.spec["module"].split(".")[0]
        return made if own and getattr(importlib.import_module(made), name, None) is there else self.spec["module"]

    def call(self, text):
        """The result of a call, how to get it, and the names that the expression needs."""
        names = self.names_in(text)
        if None in names.values():
            unknown = next(name for name in names if names[name] is None)
            raise Forbidden(f"`{unknown}` is not a name that {self.spec['module']} has")
        value, how = ended(eval(text, self.scope(names)))
        return value, how, names

    def scope(self, names):
        """The names that an expression needs, and a fresh copy of each fixture."""
        return {**import_names(names), **copy.deepcopy(self.given)}

    def written(self, value, longest=0):
        """An expression that equals the value, and the names that it needs; None if there is none."""
        if isinstance(value, float) and value != value:
            return None, {}
        text = repr(value).replace("datetime.datetime(", "datetime(").replace("datetime.date(", "date(")
        text = text.replace("datetime.timedelta(", "timedelta(").replace("PosixPath(", "Path(")
        text = re.sub(MEMBER, r"\1", text)
        unwanted = " at 0x" in text or re.search(DIGEST, text) or any(place in text for place in places())
        if len(text) > (longest or self.spec["longest"]) or unwanted:
            return None, {}
        try:
            names = self.names_in(text)
            if None in names.values():
                return None, {}
            again = eval(text, import_names(names))
            return (text, names) if again == value and type(again) is type(value) else (None, {})
        except Exception:  # whatever the project's own `__eq__` or constructor does
            return None, {}


def places():
    """Folders of this machine and of this run: a value that names one is true only here."""
    found = [os.getcwd(), os.path.expanduser("~"), tempfile.gettempdir()]
    return [place for place in found if len(place) > 1]


def late(number, frame):
    """Handle the alarm."""
    raise Late


@contextlib.contextmanager
def limited(seconds):
    """Raise `Late` in code that takes longer: time of the processor, so that a busy machine gives the same result."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def is_harmless(name):
    """Whether a builtin may appear in a test."""
    kind = getattr(builtins, name, None)
    return name in HARMLESS or (isinstance(kind, type) and issubclass(kind, BaseException))


def fixtures(request, spec):
    """The values of the fixtures that calls may use, if copies of them can be made."""
    found = {name: request.getfixturevalue(name) for name in spec.get("fixtures", [])}
    copy.deepcopy(found)
    return found


def import_names(names):
    """The names that an expression needs, as the test will import them."""
    return {name: getattr(importlib.import_module(source), name) for name, source in names.items() if source}


def ended(value):
    """What a caller would see: the result of a coroutine, the values of a generator."""
    if inspect.iscoroutine(value):
        return asyncio.run(value), "await"
    if isinstance(value, types.GeneratorType) or type(value) in (map, filter, zip, enumerate, reversed):
        return [item for item, _ in zip(value, range(1000), strict=False)], "list"
    return value, ""
