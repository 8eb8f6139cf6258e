"""Call the function with each case, and report whether it accepts the case."""

import asyncio
import collections
import collections.abc
import contextlib
import enum
import importlib
import inspect
import itertools
import json
import os
import signal
import time
import types
import typing
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path, PurePath
from uuid import UUID

SPEC = json.loads(Path(__file__).with_name("spec.json").read_text(encoding="utf-8"))
"""What the tool script asks for."""
TEXTUAL = {
    Decimal: Decimal,
    Path: Path,
    PurePath: PurePath,
    os.PathLike: Path,
    UUID: UUID,
    bytes: str.encode,
    date: date.fromisoformat,
    datetime: datetime.fromisoformat,
}
PLAIN = {str: str, bool: bool, int: int, float: (int, float)}
ELSEWHERE = (OSError, ImportError, EOFError)
"""Raised when a file, a network or a package is missing: it says nothing about the case."""


class Late(BaseException):
    """The call takes too long. No `except Exception` of the called code catches this."""


class Unreadable(Exception):
    """A JSON value cannot be turned into the type that the function wants."""


def raise_late(number, frame):
    """Handle the alarm."""
    raise Late


def read(value, kind):
    """The Python value of a JSON value, by the annotation."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated or origin is typing.Final:
        return read(value, inner[0])
    if origin in (typing.Union, types.UnionType):
        return first_fit(value, inner)
    if value is None or kind in (typing.Any, object, inspect.Parameter.empty) or isinstance(kind, typing.TypeVar):
        return value
    if origin is typing.Literal:
        return checked(value, value in inner)
    if kind in TEXTUAL:
        return TEXTUAL[kind](checked(value, isinstance(value, str)))
    if kind is timedelta:
        return timedelta(seconds=value)
    if kind in PLAIN:
        return checked(value, isinstance(value, PLAIN[kind]) and isinstance(value, bool) == (kind is bool))
    kind = origin or kind
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        return kind(value)
    if isinstance(value, dict):
        return read_object(value, kind, inner)
    return read_list(value, kind, inner) if isinstance(value, list) else value


def checked(value, is_right):
    """The value, if it is right."""
    if not is_right:
        raise Unreadable(f"{value!r} does not fit")
    return value


def first_fit(value, kinds):
    """The value as the first type of a union that it fits."""
    if value is None and type(None) in kinds:
        return None
    for kind in [kind for kind in kinds if kind is not type(None)]:
        try:
            return read(value, kind)
        except (Unreadable, TypeError, ValueError, LookupError):
            continue
    raise Unreadable(f"{value!r} does not fit")


def read_object(value, kind, inner):
    """The value of a JSON object: a mapping, or an object of a class."""
    if typing.is_typeddict(kind) or not (inspect.isclass(kind) and issubclass(kind, collections.abc.Mapping)):
        hints = typing.get_type_hints(kind)
        made = {name: read(each, hints.get(name, typing.Any)) for name, each in value.items()}
        return made if typing.is_typeddict(kind) else kind(**made)
    keys, values = inner if len(inner) == 2 else (typing.Any, typing.Any)
    made = {keys(key) if keys in (int, float) else read(key, keys): read(each, values) for key, each in value.items()}
    return made if inspect.isabstract(kind) or kind is dict else kind(made)


def read_list(value, kind, inner):
    """The value of a JSON list: a list, a tuple, a set or an iterator."""
    if kind is tuple and inner and inner[-1] is not Ellipsis:
        return tuple(read(each, one) for each, one in zip(value, inner, strict=True))
    made = [read(each, inner[0] if inner else typing.Any) for each in value]
    if kind in (set, frozenset, tuple, collections.deque):
        return kind(made)
    if kind in (collections.abc.Iterator, collections.abc.Generator):
        return iter(made)
    return set(made) if kind in (collections.abc.Set, collections.abc.MutableSet) else made


def target(module):
    """The function, and the class of its `self`."""
    owner, found = None, module
    for name in SPEC["name"].split("."):
        owner, found = found, getattr(found, name)
    if SPEC["name"].endswith(".__init__"):
        return owner, None
    if not callable(found):
        raise Unreadable("it cannot be called")
    return found, owner if SPEC["has_self"] else None


def types_of(function):
    """The annotations as types; None if one of them is unknown at run time."""
    try:
        return typing.get_type_hints(function.__init__ if inspect.isclass(function) else function)
    except Exception:
        return None


def arguments(case, function, owner):
    """The arguments of one call, created anew because a call may change them."""
    hints = types_of(function)
    if hints is None and any(isinstance(value, (dict, list)) for value in case.values()):
        raise Unreadable("its annotations cannot be read")
    given = {name: read(value, (hints or {}).get(name, typing.Any)) for name, value in case.items()}
    own = [] if owner is None else [owner() if SPEC["self"] is None else read(SPEC["self"], owner)]
    parameters = inspect.signature(function).parameters
    ahead = [name for name, one in parameters.items() if one.kind == one.POSITIONAL_ONLY and name in given]
    return [*own, *[given.pop(name) for name in ahead]], given


def run_to_end(value):
    """Run a coroutine or a generator to its end: only then does it raise."""
    if inspect.iscoroutine(value):
        asyncio.run(value)
    elif isinstance(value, types.GeneratorType):
        collections.deque(itertools.islice(value, 1000), maxlen=0)


def try_case(case, function, owner):
    """Whether the function accepts the case: an empty answer, what it `raises`, or why that is `unclear`."""
    try:
        given, named = arguments(case, function, owner)
    except (ValueError, LookupError, ArithmeticError) as error:
        return {"raises": describe_error(error)}
    except Exception as error:
        return {"unclear": describe_error(error)}
    try:
        run_to_end(function(*given, **named))
    except ELSEWHERE as error:
        return {"unclear": describe_error(error)}
    except (Exception, SystemExit) as error:
        return {"raises": describe_error(error)}
    return {}


def describe_error(error):
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:120]


def try_in_time(case, function, owner, ends):
    """The answer for one case, within a time limit."""
    if time.monotonic() > ends:
        return {"unclear": "there was no time left"}
    signal.setitimer(signal.ITIMER_REAL, SPEC["seconds"], SPEC["seconds"])
    try:
        return try_case(case, function, owner)
    except Late:
        return {"raises": "nothing, but does not end"}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_look():
    """Report what the function does with each case."""
    signal.signal(signal.SIGALRM, raise_late)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        module = importlib.import_module(SPEC["module"])
        if os.path.realpath(module.__file__) != os.path.realpath(SPEC["file"]):
            raise ImportError(f"`{SPEC['module']}` is another file here")
        function, owner = target(module)
        ends = time.monotonic() + 10 * SPEC["seconds"]
        told = [try_in_time(case, function, owner, ends) for case in SPEC["cases"]]
    print("\n" + SPEC["mark"] + json.dumps(told) + SPEC["mark"], flush=True)
