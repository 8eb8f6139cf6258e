"""Search for calls that tell the code from the same code with one change.

New calls vary the given ones: other values of the same types, taken from what the code itself compares with.
`choosing` takes the few that are worth a test.
"""

import contextlib
import copy
import io
import random
import sys
import time

from .calls import Calls, Forbidden, ended, fixtures, import_names, limited
from .changes import EMPTY, Changes
from .choosing import chosen
from .documented import LONGEST, examples
from .errors import is_deliberate
from .exchange import SPEC, report
from .numbers import Numbers
from .seeds import seeds, values_compared
from .values import Values
from .words import Words, constants_of

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
REMEMBERED = 80


class Case:
    """A call, its outcome, and the changes that it notices."""

    def __init__(self, text, outcome, usable, deliberate=False):
        self.text, self.outcome, self.usable, self.deliberate = text, outcome, usable, deliberate
        self.notices, self.last_line = set(), 0


class Search:
    """Tries calls until every change is noticed, or the time is up."""

    def __init__(self, calls, changes, explicit, documented=()):
        self.calls, self.changes, self.explicit, self.documented = calls, changes, explicit, list(documented)
        self.random = random.Random(7)  # noqa: S311 (the same search every time)
        self.values = Values(calls, changes, self.random)
        written = [*SPEC["given"], *SPEC["written"], *self.documented]
        self.known = {value for text in written for value in constants_of(text)}
        self.known |= set(SPEC.get("texts", ()))
        self.words = Words([one for one in self.known if isinstance(one, str)], self.values.own)
        self.numbers = Numbers(changes.live[0], changes.definition, written, SPEC["bound"])
        self.tried, self.paths, self.cases = set(), set(), []
        # What only an empty body would break is no mistake that anybody makes.
        wanted = range(len(changes.kinds)) if SPEC["targets"] is None else SPEC["targets"]
        self.targets = {number for number in wanted if EMPTY < number < len(changes.kinds)}
        self.unnoticed = set(self.targets)
        self.turns = self.progress = self.endless = 0
        self.last, self.deliberate = ("", (None, {})), False
        self.trusted, self.only_refused, self.edges = set(self.documented), [], set()
        self.pins, self.compared = True, values_compared(changes)
        self.ends = time.process_time() + MOST_SECONDS
        self.late = time.monotonic() + MOST_WAITING

    def run(self, given):
        """Find cases, starting with the given calls."""
        for text in given:
            self.attempt(text)
        while self.cases and self.goes_on():
            recent = self.cases[-12:] if self.random.random() < 0.5 else self.cases
            self.attempt(self.values.varied(self.random.choice(recent).text))

    def edge_calls(self):
        """Calls at the edges that the code has, if a value for its only argument says all."""
        edges, kinds = seeds(self.changes, SPEC)
        self.trusted.update(edges, kinds)
        self.only_refused = [one for one in kinds if one not in edges]
        return [*edges, *kinds]

    def goes_on(self):
        self.turns += 1
        patience = PATIENCE if self.unnoticed else LITTLE_PATIENCE
        is_hopeful = self.turns - self.progress < patience and self.turns < MOST_CALLS
        return is_hopeful and time.process_time() < self.ends and time.monotonic() < self.late

    def attempt(self, text):
        """Keep the call if it takes a new path through the code or notices a new change."""
        longest = LONGEST if text in self.trusted else SPEC["longest"]
        if text is None or text in self.tried or len(text) > longest or not self.is_believable(text):
            return
        self.tried.add(text)
        case, lines, slow = self.looked_at(text)
        if case is None or (text in self.only_refused and not case.deliberate):
            return
        if case.usable and not slow:
            case.notices = {number for number in self.unnoticed if self.notices(case, number)}
            self.unnoticed -= case.notices
        path = (lines, case.outcome[:2] if case.usable else "")
        if case.notices or text in self.documented or (path not in self.paths and len(self.cases) < REMEMBERED):
            self.paths.add(path)
            self.cases.append(case)
            self.progress = self.turns

    def is_believable(self, text):
        """Whether a reader would believe a call: texts are words, or of the project's own tests, and numbers fit."""
        if text in self.trusted:
            return True
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
        deliberate = raises and self.deliberate
        usable = deliberate or outcome[1] in self.explicit if raises else self.calls.written(value)[0] is not None
        case = Case(text, outcome, usable, deliberate)
        case.last_line = lines[-1] if lines else 0
        return case, frozenset(lines), time.monotonic() - began > SLOW

    def notices(self, case, number):
        return self.outcome(case.text, number)[0] != case.outcome

    def outcome(self, text, number):
        """What the call does with a change, as a value that can be compared, and its result; None if it is no case."""
        with self.changes.made(number):
            try:
                with limited(LATE):
                    code, names = self.prepared(text)
                    value = ended(eval(code, {**names, **copy.deepcopy(self.calls.given)}))[0]
                    return ("value", type(value).__name__, repr(value)), value
            except TimeoutError:
                self.endless += not number
                return (("late",) if number else None), None
            except (Forbidden, SyntaxError, SystemExit, MemoryError):
                return None, None
            except Exception as error:  # what the code raises is an outcome
                self.deliberate = is_deliberate(error)
                return ("raises", type(error).__name__), None

    def prepared(self, text):
        """The compiled call and the names that it needs. The last one is cached."""
        if self.last[0] != text:
            self.last = (text, (compile(text, "case", "eval"), import_names(self.calls.names_in(text))))
        return self.last[1]


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
    found, missed, endless, targets, tried = [], [], False, [], 0
    if len(changes.kinds) > 2:
        calls = Calls(SPEC, changes.module, fixtures(request, SPEC))
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            shown = examples(calls, changes.module, SPEC["name"]) if SPEC["documents"] else []
            search = Search(calls, changes, SPEC["explicit"], [one["call"] for one in shown])
            search.run([*SPEC["given"], *search.documented, *SPEC["seeds"], *search.edge_calls()])
            found = chosen(search, shown)
        targets, tried = search.targets, len(search.cases)
        missed = [changes.kinds[number][0] for number in sorted(search.unnoticed)]
        endless = bool(search.endless and not search.cases)
    told = {"calls": found, "missed": missed, "changes": len(targets), "tried": tried}
    report({**told, "endless": LATE if endless else 0})
