"""Search for calls that tell the code from the same code with one change, and choose the fewest.

New calls vary the given ones: other values of the same types, taken from what the code itself compares with.
"""

import ast
import contextlib
import copy
import io
import random
import re
import signal
import sys
import time

from .calls import Calls, Forbidden, ended, fixtures, import_names
from .changes import EMPTY, Changes
from .exchange import SPEC, report
from .numbers import Numbers
from .properties import Properties
from .values import Values
from .words import Words

MOST_CALLS = 3000
MOST_SECONDS = 4.0
"""Of CPU time, so that a busy machine finds the same cases."""
MOST_WAITING = 15.0
PATIENCE = 1000
"""Most calls in a row that find nothing new: no call may be able to notice the changes that are left."""
SLOW = 0.05
"""Seconds from which on a call is too slow to be tried on every change."""
MADE = ("Path", "PurePath", "Decimal", "UUID", "date.fromisoformat", "datetime.fromisoformat")
"""What makes a value of a text that only looks like one."""
LITTLE_PATIENCE = 200
"""The same once every change is noticed: there may still be an error that no case shows."""
LATE = 0.25
NO_RESULT = "becomes `return None`"
"""How a change ends that takes a function's result away."""
PLAIN_RESULT = rf"`return [\w.]+` {NO_RESULT}$"
"""The same for a function that gives back what it has: nobody forgets that."""
NO_MORE = ("[]", "()", "{}", "set()", "''", "False", "0")
"""Results that are empty."""
REMEMBERED = 80
SHORTER = 40
"""How often a chosen call is tried in a shorter form."""


class Case:
    """A call, its outcome, and the changes that it notices."""

    def __init__(self, text, outcome, usable):
        self.text, self.outcome, self.usable = text, outcome, usable
        self.notices, self.last_line = set(), 0


class Search:
    """Tries calls until every change is noticed, or the time is up."""

    def __init__(self, calls, changes, explicit):
        self.calls, self.changes, self.explicit = calls, changes, explicit
        self.random = random.Random(7)  # noqa: S311 (the same search every time)
        self.values = Values(calls, changes, self.random)
        self.known = {value for text in SPEC["given"] + SPEC["written"] for value in constants_of(text)}
        self.known |= set(SPEC.get("texts", ()))
        self.words = Words([one for one in self.known if isinstance(one, str)], self.values.own)
        written = [*SPEC["given"], *SPEC["written"]]
        self.numbers = Numbers(changes.live[0], changes.definition, written, SPEC["bound"])
        self.tried, self.paths, self.cases = set(), set(), []
        # What only an empty body would break is no mistake that anybody makes.
        self.targets = {number for number in SPEC["targets"] if EMPTY < number < len(changes.kinds)}
        self.unnoticed = set(self.targets)
        self.turns = self.progress = self.endless = 0
        self.last, self.lines = ("", (None, {})), {}
        self.ends = time.process_time() + MOST_SECONDS
        self.late = time.monotonic() + MOST_WAITING

    def run(self, given):
        """Find cases, starting with the given calls."""
        for text in given:
            self.attempt(text)
        while self.cases and self.goes_on():
            recent = self.cases[-12:] if self.random.random() < 0.5 else self.cases
            self.attempt(self.values.varied(self.random.choice(recent).text))

    def goes_on(self):
        self.turns += 1
        patience = PATIENCE if self.unnoticed else LITTLE_PATIENCE
        is_hopeful = self.turns - self.progress < patience and self.turns < MOST_CALLS
        return is_hopeful and time.process_time() < self.ends and time.monotonic() < self.late

    def attempt(self, text):
        """Keep the call if it takes a new path through the code or notices a new change."""
        if text is None or text in self.tried or len(text) > SPEC["longest"] or not self.is_believable(text):
            return
        self.tried.add(text)
        case, lines, slow = self.looked_at(text)
        if case is None:
            return
        if case.usable and not slow:
            case.notices = {number for number in self.unnoticed if self.notices(case, number)}
            self.unnoticed -= case.notices
        path = (lines, case.outcome[:2] if case.usable else "")
        if case.notices or (path not in self.paths and len(self.cases) < REMEMBERED):
            self.paths.add(path)
            self.cases.append(case)
            self.progress = self.turns

    def is_believable(self, text):
        """Whether a reader would believe a call: texts are words, or of the project's own tests, and numbers fit."""
        if not self.numbers.could_write(text):
            return False
        new = [one for one in constants_of(text, MADE) if isinstance(one, str) and one not in self.known]
        return all(self.words.could_write(one) for one in new)

    def looked_at(self, text):
        """The call on the unchanged code, the lines that it ran, and whether it was slow."""
        lines, began = [], time.monotonic()
        with traced(self.changes.live[0].__code__, lines):
            outcome, value = self.outcome(text, 0)
        if outcome is None:
            return None, None, False
        raises = outcome[0] == "raises"
        usable = outcome[1] in self.explicit if raises else self.calls.written(value)[0] is not None
        case = Case(text, outcome, usable)
        case.last_line = lines[-1] if lines else 0
        return case, frozenset(lines), time.monotonic() - began > SLOW

    def notices(self, case, number):
        return self.outcome(case.text, number)[0] != case.outcome

    def outcome(self, text, number):
        """What the call does with a change, as a value that can be compared, and its result; None if it is no case."""
        with self.changes.made(number):
            try:
                signal.setitimer(signal.ITIMER_REAL, LATE)
                code, names = self.prepared(text)
                value = ended(eval(code, {**names, **copy.deepcopy(self.calls.given)}))[0]
                return ("value", type(value).__name__, repr(value)), value
            except TimeoutError:
                self.endless += not number
                return (("late",) if number else None), None
            except (Forbidden, SyntaxError, SystemExit, MemoryError):
                return None, None
            except Exception as error:  # what the code raises is an outcome
                return ("raises", type(error).__name__), None
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def prepared(self, text):
        """The compiled call and the names that it needs. The last one is cached."""
        if self.last[0] != text:
            self.last = (text, (compile(text, "case", "eval"), import_names(self.calls.names_in(text))))
        return self.last[1]

    def chosen(self, given):
        """The fewest calls that notice the most: given calls that notice anything, then the strongest first."""
        usable = [case for case in self.cases if case.usable]
        for case in usable:
            case.notices = {number for number in self.targets if self.notices(case, number)}
        usable = [case for case in usable if not self.says_nothing(case)]
        seen_by = {number: sum(number in case.notices for case in usable) for number in self.targets}
        kept = {case.text: case.notices for case in usable if case.text in given and case.notices}
        self.lines = {case.text: case.last_line for case in usable}
        left = set().union(*(case.notices for case in usable)) - set().union(*kept.values())
        while left and len(kept) < SPEC["kept"]:
            best = max(usable, key=lambda case: (len(case.notices & left), case.outcome[0] == "value", -len(case.text)))
            short = self.shortened(best, best.notices & left)
            kept.setdefault(short.text, best.notices & left)
            self.lines[short.text] = short.last_line
            left -= best.notices
        # What the fewest calls notice says best why a call was chosen.
        return {text: sorted(notices, key=lambda number: (seen_by[number], number)) for text, notices in kept.items()}

    def says_nothing(self, case):
        """Whether a call only shows that the code returns something, which is empty or a name's plain value."""
        labels = [self.changes.kinds[number][0] for number in case.notices]
        is_plain = all(re.search(PLAIN_RESULT, label) for label in labels)
        return is_plain or (case.outcome[-1] in NO_MORE and all(label.endswith(NO_RESULT) for label in labels))

    def shortened(self, case, needed):
        """A shorter call that notices the same changes, if a few tries find one."""
        tries, better = 0, True
        while better and tries < SHORTER:
            better = False
            for text in self.values.shorter(case.text):
                tries += 1
                is_shorter = len(text) < len(case.text) and tries < SHORTER and self.is_believable(text)
                other = self.looked_at(text)[0] if is_shorter else None
                if other and other.usable and all(self.notices(other, number) for number in needed):
                    other.notices = case.notices
                    case, better = other, True
                    break
        return case


def constants_of(text, without=()):
    """The constants in a call, but not those given to functions in `without`; none if it is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return set()
    calls = [part for part in ast.walk(tree) if isinstance(part, ast.Call)]
    left = [each for part in calls if ast.unparse(part.func) in without for each in part.args]
    return {part.value for part in ast.walk(tree) if isinstance(part, ast.Constant) and part not in left}


@contextlib.contextmanager
def traced(code, lines):
    """Collect the lines of this code that run."""

    def inside(frame, event, argument):
        lines.append(frame.f_lineno)
        return inside

    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: inside if frame.f_code is code else None)
    try:
        yield
    finally:
        sys.settrace(before)


def test_search(request):
    """Report the chosen calls with the changes that each notices, and the changes that no call notices."""
    changes = Changes(SPEC)
    found, lines, missed, endless, shown = {}, {}, [], False, {}
    if len(changes.kinds) > 2:
        search = Search(Calls(SPEC, changes.module, fixtures(request, SPEC)), changes, SPEC["explicit"])
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            search.run(SPEC["given"] + SPEC["seeds"])
            found = search.chosen(SPEC["given"])
            lines = search.lines
            properties = Properties(search)
            shown = {text: properties.shown_by(text, notices) for text, notices in found.items()}
        missed = [changes.kinds[number][0] for number in sorted(search.unnoticed)]
        endless = bool(search.endless and not search.cases)
    labels = {text: [changes.kinds[number][0] for number in notices] for text, notices in found.items()}
    calls = [
        {"call": text, "notices": notices, "line": lines.get(text, 0), "property": shown[text]}
        for text, notices in labels.items()
    ]
    report({"calls": calls, "missed": missed, "changes": len(SPEC["targets"]), "endless": LATE if endless else 0})
