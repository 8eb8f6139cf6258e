"""Choose the few tests that are worth having: each has a proof that somebody means what it says.

The proofs, best first: a property that the function's name promises, an example of the project's documents, an error
that the project raises itself, an edge that the code compares with, and types for all that it takes.
"""

import ast
import inspect
import re

from .exchange import SPEC
from .numbers import SMALL
from .properties import Properties
from .words import constants_of

MOST_EXAMPLES = 4
"""Examples of documents in one test."""
SHORTER = 40
"""How often a chosen call is tried in a shorter form."""
NO_RESULT = "becomes `return None`"
"""How a change ends that takes a function's result away."""


TEXTS = r"\b(?:str|bytes|bytearray|Any|object|AnyStr|Text)\b"
"""Types that do not say which value is meant."""


def chosen(search, shown):
    """The tests to write: their calls, what they notice, and what proves them."""
    usable = [case for case in search.cases if case.usable]
    for case in usable:
        case.notices = {number for number in search.targets if search.notices(case, number)}
    left = set().union(*(case.notices for case in usable)) if usable else set()
    search.edges, found = telling_edges(search, usable), []
    for one, notices in Properties(search, search.documented).tests():
        found += [{**told(search, text, notices), "property": one} for text in one["inputs"]]
        left -= notices
    documented = examples_that_notice(usable, [one for one in shown if one["expected"]])
    # Where documents show what comes out, a pinned result adds little.
    search.pins = not documented
    for one, case in documented:
        found.append({**told(search, case.text, case.notices), **one, "line": case.last_line})
        left -= case.notices
    had = {case.text for _, case in documented}
    worth = [case for case in usable if case.text not in had and is_worth_it(search, case)]
    return found + searched(search, worth, left)


def told(search, text, notices, line=0):
    """What the script needs to know about a chosen call."""
    counts = {number: sum(number in case.notices for case in search.cases) for number in notices}
    labels = [search.changes.kinds[number][0] for number in sorted(notices, key=lambda one: (counts[one], one))]
    # What the fewest calls notice says best why a call was chosen.
    return {"call": text, "notices": labels, "line": line, "property": None, "deliberate": False}


def examples_that_notice(usable, shown):
    """A few examples that notice what all of them notice, and the first ones: they show best what a function does."""
    by_text = {case.text: case for case in usable if case.notices}
    pairs = [(one, by_text[one["call"]]) for one in shown if one["call"] in by_text]
    left = set().union(*(case.notices for _, case in pairs)) if pairs else set()
    found = []
    while left and len(found) < MOST_EXAMPLES:
        best = max(pairs, key=lambda pair: (len(pair[1].notices & left), -len(pair[0]["call"])))
        found.append(best)
        left -= best[1].notices
    found += [pair for pair in pairs if pair not in found][: MOST_EXAMPLES - len(found)]
    return [pair for pair in pairs if pair in found]


def is_worth_it(search, case):
    """Whether something proves that a call is meant to end so."""
    if case.text in SPEC["given"]:
        return True
    if says_nothing(search, case):
        return False
    if case.outcome[0] == "raises":
        return case.deliberate or is_typed(search)
    return is_typed(search) or is_at_an_edge(search, case)


def is_typed(search):
    """Whether types say what each parameter is; of a text, words of the docstring must say which one it is."""
    function = search.changes.live[0]
    usual = list(inspect.signature(function).parameters.values())[1 if SPEC["bound"] else 0 :]
    typed = search.pins and all(
        one.name in SPEC["fixtures"] or is_described(one, function.__doc__ or "") for one in usual
    )
    return typed and (not SPEC["bound"] or is_typed_class(search))


def is_typed_class(search):
    """Whether types say what an object of a method's class is made of, or it is a fixture of the project."""
    if re.match(r"\w*", SPEC["call"])[0] in SPEC["fixtures"]:
        return True
    owner = search.changes.module
    for one in SPEC["names"][:-1]:
        owner = getattr(owner, one, None)
    try:
        usual = inspect.signature(owner).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(one.annotation is not one.empty for one in usual)


def is_described(parameter, doc):
    """Whether a type says what a parameter is; of a text, also a default, the docstring or texts of a fixture."""
    if parameter.annotation is parameter.empty:
        return False
    kind = (
        parameter.annotation
        if isinstance(parameter.annotation, str)
        else inspect.formatannotation(parameter.annotation)
    )
    in_words = re.search(rf"\b{parameter.name.rstrip('s')}s?\b", doc) or SPEC.get("texts")
    has_default = parameter.default not in (parameter.empty, None)
    return has_default or not re.search(TEXTS, kind) or bool(in_words)


def telling_edges(search, usable):
    """The changes at an edge that some calls notice and others do not: only then a call is at the edge."""
    noticed = [case.notices for case in usable]
    return {number for number in search.changes.edges if not all(number in notices for notices in noticed)}


def is_at_an_edge(search, case):
    """Whether a call is at the edge of a comparison, and every value in it and of it can be checked by eye."""
    is_known = all(is_shown(search, value) for value in constants_of(case.text))
    return bool(case.notices & search.edges) and is_known and is_checkable(search, case)


def is_checkable(search, case):
    """Whether a result consists of values of the call, of the code and of small numbers."""
    known = constants_of(case.text)
    known |= {one.value for one in ast.walk(search.changes.definition) if isinstance(one, ast.Constant)}
    found = constants_of(case.outcome[-1])
    return all(one in known or not one or (type(one) is int and abs(one) <= SMALL) for one in found)


def is_shown(search, value):
    """Whether tests, documents or the comparisons of the code have a value."""
    return isinstance(value, bool) or value in (None, "", b"") or value in search.known or value in search.compared


def says_nothing(search, case):
    """Whether a call only shows that the code returns something at all."""
    return all(search.changes.kinds[number][0].endswith(NO_RESULT) for number in case.notices)


def searched(search, usable, left):
    """The fewest calls that notice the most of what is left: given calls first, then the strongest."""
    kept = {case.text: (case, case.notices) for case in usable if case.text in SPEC["given"] and case.notices}
    seen = set().union(*(notices for _, notices in kept.values())) if kept else set()
    left = (left - seen) & (set().union(*(proves(search, case) for case in usable)) if usable else set())
    while left and len(kept) < SPEC["kept"]:
        best = max(usable, key=lambda case: strength(search, case, left))
        short = shortened(search, best, best.notices & left)
        kept.setdefault(short.text, (short, best.notices & left))
        left -= best.notices
    pairs = kept.values()
    return [{**told(search, one.text, notices, one.last_line), "deliberate": one.deliberate} for one, notices in pairs]


def proves(search, case):
    """The changes for which a call is a test: without types, what decides about an error, or is at an edge."""
    if is_typed(search):
        return case.notices
    return case.notices & (search.changes.guards if case.outcome[0] == "raises" else search.edges)


def strength(search, case, left):
    """How good a call is: what it notices, a value before an error, the usual mistake, a short text."""
    usual = search.only_refused.index(case.text) if case.text in search.only_refused else 0
    return len(proves(search, case) & left), case.outcome[0] == "value", -usual, -len(case.text)


def shortened(search, case, needed):
    """A shorter call that notices the same changes, if a few tries find one."""
    tries, better = 0, True
    while better and tries < SHORTER:
        better = False
        for text in search.values.shorter(case.text):
            tries += 1
            is_shorter = len(text) < len(case.text) and tries < SHORTER and search.is_believable(text)
            other = search.looked_at(text)[0] if is_shorter else None
            if other and other.usable and all(search.notices(other, number) for number in needed):
                other.notices = case.notices
                if is_worth_it(search, other):
                    case, better = other, True
                    break
    return case
