"""Call the code with each case, here and with another clock, time zone, hash seed and language, and report."""

import builtins
import contextlib
import inspect
import io
import json
import sys
import time
import types

from .again import is_inside, run_again
from .calls import Calls, Forbidden, Late, fixtures, limited
from .changes import own_module
from .elsewhere import other_place
from .exchange import SPEC, report

ELSEWHERE_S = 12
OUTSIDE = (
    "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "subprocess.Popen", "os.system",
)  # fmt: skip
"""Events of Python's own audit: what they lead to is another thing on another machine."""
BLIND = ("Exception", "BaseException")
"""Errors that any mistake raises too, in a test that expects them."""
REACHED = []
"""The events of this kind that the latest call led to."""
MOST_LATE = 3
"""After so many calls that do not end, the others are not tried."""


def look_at_all(calls):
    """What each case does today, and whether that is what its author expects."""
    told, late = [], 0
    for case in SPEC["cases"]:
        if late < MOST_LATE:
            seen = look(case, calls)
            late += "late" in seen
            told.append(seen if "bad" in seen else {**seen, **expected(case, calls)})
        else:
            told.append({"bad": "was not tried: others did not end"})
    return told


def note_outside(event, arguments):
    """Remember that code reaches out of its process."""
    if event in OUTSIDE:
        REACHED.append(event)


def look(case, calls):
    """What one call does today, if it does so without the network and other programs."""
    REACHED.clear()
    seen = end_of(case, calls)
    return {"bad": f"leaves its process: {REACHED[0]}"} if REACHED else seen


def end_of(case, calls):
    """How one call ends today."""
    try:
        with limited(SPEC["seconds"]):
            return answer(case, calls)
    except Late:
        return {"bad": f"did not end within {SPEC['seconds']:g} s", "late": True}
    except SyntaxError as error:
        return {"bad": f"is not Python: {error.msg}"}
    except Forbidden as error:
        return {"bad": str(error)}
    except Exception as error:  # what the code raises is the answer
        return raised(error, case, calls)
    except SystemExit:
        return {"bad": "it ends the program"}


def answer(case, calls):
    """What a call returns, if it returns the same twice."""
    value, how, names = calls.call(case["call"])
    text, more = calls.written(value)
    again = calls.call(case["call"])[0]
    same = text is not None and calls.written(again)[0] == text
    told = {"value": text if same else None, "type": type(value).__name__, "how": how}
    return {**told, "names": {**names, **(more if same else {})}, "float": isinstance(value, float)}


def raised(error, case, calls):
    """The answer for a call that raised."""
    if type(error).__name__ in BLIND:
        return {"bad": f"raises {type(error).__name__}, as any mistake may"}
    if why := machine_behind(error):
        return {"bad": f"raises {type(error).__name__} because of this machine: {why}"}
    try:
        names = calls.names_in(case["call"])
    except SyntaxError:
        names = {}
    kind = type(error).__name__
    source = "" if hasattr(builtins, kind) else (SPEC["module"] if hasattr(calls.module, kind) else None)
    told = {"raises": kind, "source": source, "message": str(error)[:120], "names": names}
    return {**told, "how": how_ended(case, calls)}


def machine_behind(error):
    """What an error was made of, if that says what this machine lacks: a module, a connection; else empty."""
    seen, cause = [error], error.__cause__ or error.__context__
    while cause is not None and not any(cause is one for one in seen):  # `raise error from error` makes a circle
        if isinstance(cause, (ImportError, OSError)) and not isinstance(cause, FileNotFoundError):
            return type(cause).__name__
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
    return ""


def how_ended(case, calls):
    """How to run a call to its end: a generator or a coroutine raises only then."""
    try:
        with limited(SPEC["seconds"]):
            value = eval(case["call"], calls.scope(calls.names_in(case["call"])))
    except Exception:
        return ""
    if inspect.iscoroutine(value):
        value.close()
        return "await"
    return "list" if isinstance(value, types.GeneratorType) else ""


def expected(case, calls):
    """Whether the expected value is Python and equal to the result, and the names that it needs."""
    if case.get("expected") is None or case["expected"].startswith("raises "):
        return {}
    try:
        names = calls.names_in(case["expected"])
    except (SyntaxError, Forbidden) as error:
        return {"bad": f"has an expectation that cannot be: {error}"}
    return {"expected_names": names, "equal": None if None in names.values() else equal(case, names, calls)}


def equal(case, names, calls):
    """Whether the call returns the expected value; None if the two cannot be compared."""
    try:
        with limited(SPEC["seconds"]):
            value, wanted = calls.call(case["call"])[0], eval(case["expected"], calls.scope(names))
        return bool(value == wanted or (isinstance(value, float) and abs(value - wanted) <= 1e-6 * abs(wanted) + 1e-12))
    except Exception:  # whatever the code raises: the two cannot be compared
        return None


def elsewhere(config):
    """What the same calls do with another clock, time zone, hash seed and language, or why that is unknown."""
    words = ["-p", f"{__package__}.elsewhere", "-s", SPEC["path"]]
    until = time.monotonic() + 2 * ELSEWHERE_S
    said, in_time = run_again(words, config, SPEC["folders"], other_place(), ELSEWHERE_S, until)
    parts = said.split(SPEC["mark"])
    if in_time and len(parts) > 2:
        return json.loads(parts[-2])
    last = ([line for line in said.split("\n") if line.strip()] or [f"it did not end within {ELSEWHERE_S} s"])[-1]
    return [{"bad": f"could not be tried with the clock moved: {last[:100]}"} for _ in SPEC["cases"]]


def steady(here, there):
    """What calls do here, without what differs elsewhere.

    If one value differs, no value is believed: that of another call may be the same elsewhere by chance.
    """
    pairs = list(zip(here, there, strict=True))
    differs = any("value" in mine and mine["value"] != other.get("value", mine["value"]) for mine, other in pairs)
    found = [same_end(mine, other) for mine, other in pairs]
    return [{**one, "value": None} if differs and "value" in one else one for one in found]


def same_end(here, there):
    """What a call does here, if it ends the same way elsewhere."""
    if "bad" in here or "bad" in there:
        return here if "bad" in here else {"bad": there["bad"]}
    if (here.get("raises"), here.get("type")) != (there.get("raises"), there.get("type")):
        return {"bad": "does not do the same with another clock, time zone or language"}
    return here


def test_look(pytestconfig, request):
    """Report what each case does."""
    sys.addaudithook(note_outside)
    calls = Calls(SPEC, own_module(SPEC), fixtures(request, SPEC))
    with contextlib.redirect_stdout(io.StringIO()):
        told = look_at_all(calls)
    if not is_inside():
        told = steady(told, elsewhere(pytestconfig))
    report(told)
