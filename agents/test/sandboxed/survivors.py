"""A pytest plugin that runs the project's own tests against each change of one function, and logs what they miss.

It also logs the arguments that the tests give to the function: values that a reader believes. The environment variable
`REMORA_SURVIVORS` names the log.
"""

import builtins
import copy
import inspect
import json
import os
import signal
import time

import pytest
from _pytest.runner import runtestprotocol

from .changes import Changes
from .exchange import SPEC

LOG = os.environ["REMORA_SURVIVORS"]
FIRST_S, ALL_S = 3.0, 7.0
"""Seconds of CPU time: for one run of all tests, and for everything."""
MOST_TESTS = 400
"""Tests that are run for each change, until one fails: the quickest of those that call the function."""
MOST_CALLS = 12
LONGEST = 60
PLAIN = (int, float, str, bool, type(None), bytes)


class Late(BaseException):
    """A change made the code endless. No `except Exception` of the project catches this."""


def stop(number, frame):
    """Handle the alarm."""
    raise Late


def is_literal(value, depth=0):
    """Whether the `repr` of a value is a literal that gives the value again."""
    if type(value) in PLAIN:
        return value == value and abs(value) != float("inf") if isinstance(value, float) else True
    if type(value) in (list, tuple) and depth < 3:
        return all(is_literal(one, depth + 1) for one in value)
    if type(value) is dict and depth < 3:
        return all(is_literal(key, depth + 1) and is_literal(one, depth + 1) for key, one in value.items())
    return False


class Calls:
    """Collects the arguments of calls, as the text between the brackets."""

    def __init__(self, function):
        self.count, self.texts = 0, []
        self.parameters = list(inspect.signature(function).parameters.values())
        if SPEC["bound"]:
            self.parameters = self.parameters[1:]

    def take(self, values):
        """Called with the parameters at the start of each call."""
        self.count += 1
        if len(self.texts) < MOST_CALLS:
            text = self.written(values)
            if text is not None and text not in self.texts:
                self.texts.append(text)

    def written(self, values):
        parts, named = [], False
        for one in self.parameters:
            value = values.get(one.name)
            if one.kind is one.VAR_POSITIONAL:
                pairs = [("", each) for each in value]
            elif one.kind is one.VAR_KEYWORD:
                pairs = [(f"{key}=", each) for key, each in value.items()]
            elif one.default is not one.empty and type(value) is type(one.default) and value == one.default:
                named, pairs = True, []
            else:
                pairs = [(f"{one.name}=" if named or one.kind is one.KEYWORD_ONLY else "", value)]
            if not all(is_literal(each) for _, each in pairs):
                return None
            parts += [f"{name}{each!r}" for name, each in pairs]
        text = ", ".join(parts)
        return text if len(text) <= LONGEST and " at 0x" not in text else None


def file_names_it(item):
    """Whether the file of a test names the function."""
    return names_it(str(getattr(item, "path", None) or item.fspath), False)


def names_it(path, unknown):
    """Whether a file names the function; `unknown` if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return SPEC["name"] in file.read()
    except OSError:
        return unknown


def twin(item):
    """A copy of a test, to run it once more."""
    other = copy.copy(item)
    if hasattr(other, "_initrequest"):
        other._initrequest()
    return other


def passes(item, following):
    """Whether a test passes, None if it was skipped; and what it says if it fails."""
    for kind in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(kind, stop)
    # Time of the processor, so that a busy machine gives the same result; and of the clock, for code that waits.
    signal.setitimer(signal.ITIMER_PROF, SPEC["seconds"])
    signal.setitimer(signal.ITIMER_REAL, 10 * SPEC["seconds"])
    try:
        reports = runtestprotocol(item, log=False, nextitem=following)
    except (Late, Exception) as error:  # a plugin of the project may turn the one into the other
        return False, f"it does not end: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    failed = [str(report.longrepr)[-400:] for report in reports if report.failed]
    if failed:
        return False, failed[0]
    return True if any(report.when == "call" and report.passed for report in reports) else None, ""


BROKEN = []
"""What files say that name the function and could not be collected."""


def pytest_collectreport(report):
    """Remember a file that cannot be collected."""
    if report.failed and names_it(report.nodeid.partition("::")[0], True):
        BROKEN.append(str(report.longrepr)[-400:])


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """Run the tests here instead of pytest."""
    told = {"tests": 0, "survivors": [], "killed": 0, "calls": [], "untried": 0, "failed": ""}
    changes = Changes(SPEC)
    if changes.live and len(changes.kinds) > 1:
        told = Survivors(session, changes).look()
    with open(LOG, "w") as log:
        json.dump({**told, "broken": BROKEN[:1]}, log)
    return True


class Survivors:
    """Which changes of the function the project's own tests do not notice."""

    def __init__(self, session, changes):
        self.items = sorted(session.items, key=lambda item: not file_names_it(item))
        self.changes = changes
        self.calls = Calls(changes.live[0])
        self.failed = ""
        """What the first test that fails says."""

    def look(self):
        """The report."""
        using = [item for _, item in sorted(self.using(), key=lambda pair: pair[0])[:MOST_TESTS]]
        survivors, killed, untried = [], 0, 0
        for number in range(1, len(self.changes.kinds)):
            if not using:
                survivors.append(number)
                continue
            noticed = self.noticed(using, number)
            killed += noticed is True
            untried += noticed is None
            survivors += [number] if noticed is False else []
        told = {"tests": len(using), "survivors": survivors, "killed": killed, "untried": untried}
        labels = [self.changes.kinds[number][0] for number in survivors]
        return {**told, "calls": self.calls.texts, "failed": self.failed, "missed": labels}

    def noticed(self, using, number):
        """Whether a test fails with a change; None if the time is up before all were tried."""
        for item in using:
            if time.process_time() > ALL_S:
                return None
            if self.fails(item, number):
                return True
        return False

    def using(self):
        """The tests that call the function and pass, each with its seconds."""
        builtins.__remora_seen__ = self.calls.take
        found, ends = [], time.process_time() + FIRST_S
        with self.changes.watched("__remora_seen__"):
            for item, following in zip(self.items, [*self.items[1:], None], strict=False):
                if time.process_time() > ends:
                    break
                before, began = self.calls.count, time.monotonic()
                good, why = passes(item, following)
                self.failed = self.failed or why
                if good and self.calls.count > before:
                    found.append((time.monotonic() - began, item))
        return found

    def fails(self, item, number):
        """Whether a test fails with a change."""
        with self.changes.made(number):
            return passes(twin(item), None)[0] is False
