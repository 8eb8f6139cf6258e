"""Properties that a function's name promises: an inverse gives the input back, twice is the same as once.

A property says what the code is for. So where it fails with the same changes as a pinned output, it is the better test.
It is believed if it holds for all inputs that the function accepts: those of the project's own tests and documents, and
the usual values of one type.
"""

import ast
import inspect
import re

from .exchange import SPEC

INVERSES = (
    ("encode", "decode"), ("dumps", "loads"), ("dump", "load"), ("pack", "unpack"), ("escape", "unescape"),
    ("quote", "unquote"), ("serialize", "deserialize"), ("serialise", "deserialise"), ("compress", "decompress"),
    ("encrypt", "decrypt"), ("format", "parse"), ("unparse", "parse"), ("to", "from"), ("join", "split"),
    ("flatten", "unflatten"), ("marshal", "unmarshal"), ("freeze", "unfreeze"), ("wrap", "unwrap"),
    ("hexlify", "unhexlify"), ("mangle", "demangle"), ("stringify", "parse"), ("compose", "decompose"),
    ("encipher", "decipher"), ("obfuscate", "deobfuscate"), ("encode", "parse"), ("enc", "dec"), ("int", "str"),
)  # fmt: skip
"""Words in the names of a function and its inverse."""
UNDOING = ("un", "de")
"""How the name of an inverse begins."""
SETTLING = (
    "normalize", "normalise", "normalized", "canonicalize", "canonical", "clean", "cleanup", "sanitize", "sanitise",
    "simplify", "dedupe", "deduplicate", "unique", "uniq", "slugify", "collapse", "trim", "standardize", "tidy", "sort",
    "strip", "unaccent", "squeeze", "titlecase",
)  # fmt: skip
"""Words in the names of functions whose result should be a fixed point."""
TURNING = ("reverse", "invert", "flip", "transpose", "mirror", "complement", "negate", "opposite", "swapcase")
"""Names of functions that undo themselves."""
FEWEST, FEWEST_CHANGED = 3, 2
"""Inputs that must have a property, and that the function does not return as they are."""
FEWEST_NOTICED = 2
"""Changes that a property must notice, if there are as many."""
LONGEST = 100
"""Characters of an assertion."""
MOST_INPUTS = 6
"""Inputs in one test."""
HOLDS = ("value", "bool", "True")
USUAL = {
    "text": ("''", "'a'", "'hello world'", "'Zażółć'"),
    "bytes": ("b''", "b'a'", "b'hello world'", "bytes(range(256))"),
    "int": ("0", "1", "255", "123456789"),
    "float": ("0.5", "-1.25", "1000.0"),
    "list": ("[]", "[1]", "[3, 1, 2]"),
    "dict": ("{}", "{'a': 1}", "{'a': {'b': 2}, 'c': [3]}"),
    "timedelta": ("timedelta(0)", "timedelta(seconds=1)", "timedelta(hours=4, minutes=3, seconds=2)"),
    "date": ("date(2000, 1, 1)", "date(2024, 2, 29)", "date(1999, 12, 31)"),
    "datetime": ("datetime(2000, 1, 1)", "datetime(2024, 2, 29, 12, 30)", "datetime(1999, 12, 31, 23, 59, 59)"),
}
"""Values of one type that everybody would try."""
HINTS = {"bytes": r"bytes|buf|bin(?:ary|data)?\b|raw|blob", "int": r"\bint\b|num|\bn\b", "dict": r"dict|mapping"}
"""What the parameter of a function for such values is called, or its type."""
UNTIDY = (
    "'  hello   world '", "'Hello, World!'", "'Crème brûlée'", "'one_two-three'",
    "[3, 1, 2, 3]", "[1, 1]", "['b', 'a', 'b']",
)  # fmt: skip
"""Values that a function which settles something has to change."""


class Properties:
    """The properties of one function that no input refutes."""

    def __init__(self, search, documented=()):
        self.search = search
        given = [one_argument(text) for text in [*SPEC["written"], *documented]]
        self.inputs = [text for text in dict.fromkeys(given) if text is not None]
        self.known = [one for one in map(self.proven, self.possible()) if one]

    def possible(self):
        """The properties that the function's name promises, as two expressions with `%s` for the input."""
        name, call = SPEC["name"], SPEC["call"]
        if not call.endswith(f"{name}(%s)"):
            return
        before = call[: -len(f"{name}(%s)")]
        for one, other in inverse_names(name):
            forward, back = (name, other) if one else (other, name)
            if self.is_beside(other):
                made = f"{before}{back}({before}{forward}(%s))"
                yield {"name": f"{back}_reverses_{forward}", "call": made, "expected": "%s", "first": forward}
        words = [word.lower() for word in words_of(name)]
        if any(word in SETTLING for word in words):
            made = f"{before}{name}({call})"
            yield {"name": f"{name}_is_idempotent", "call": made, "expected": call, "first": name, "settles": True}
        if words[:1] and words[0] in TURNING:
            made = f"{before}{name}({call})"
            yield {"name": f"{name}_twice_gives_the_input_back", "call": made, "expected": "%s", "first": name}

    def is_beside(self, name):
        """Whether the same module or class has a function of this name."""
        owner = self.search.changes.module
        for one in SPEC["names"][:-1]:
            owner = getattr(owner, one, None)
        return callable(getattr(owner, name, None))

    def proven(self, one):
        """The property with the inputs that show it, if it holds for all that the function accepts; else None."""
        first = SPEC["call"][: -len(f"{SPEC['name']}(%s)")] + f"{one['first']}(%s)"
        own = [text for text in self.inputs if self.gives(first, text)] if one["first"] == SPEC["name"] else []
        if not all(self.holds(one, text) for text in own):
            return None
        # The agent of the inverse finds the same usual values, and so writes the same test.
        for inputs in (UNTIDY,) if one.get("settles") else self.usual(one["first"]):
            accepted = [text for text in inputs if self.gives(first, text)]
            if self.is_enough(first, accepted) and all(self.holds(one, text) for text in accepted):
                return {**one, "inputs": accepted[:MOST_INPUTS]}
        return {**one, "inputs": own[:MOST_INPUTS]} if self.is_enough(first, own) else None

    def usual(self, first):
        """The values of each type, those first that the parameter of this function asks for."""
        owner = self.search.changes.module
        for one in [*SPEC["names"][:-1], first]:
            owner = getattr(owner, one, None)
        try:
            words = " ".join(str(one) for one in inspect.signature(owner).parameters.values())
        except (TypeError, ValueError):
            words = ""
        hinted = [kind for kind, hint in HINTS.items() if re.search(rf"(?i){hint}", words)]
        return [USUAL[kind] for kind in dict.fromkeys([*hinted, *USUAL])]

    def is_enough(self, first, inputs):
        """Whether inputs are enough to believe a property: some are changed by the function."""
        changed = [text for text in inputs if self.outcome(first, text, "%s") != HOLDS]
        return len(inputs) >= FEWEST and len(changed) >= FEWEST_CHANGED

    def gives(self, call, text):
        """Whether a call with an input returns."""
        outcome = self.search.outcome(call.replace("%s", text), 0)[0]
        return outcome is not None and outcome[0] == "value"

    def holds(self, one, text, number=0):
        """Whether a property holds for an input, if a change is made."""
        return self.outcome(one["call"], text, one["expected"], number) == HOLDS

    def outcome(self, call, text, expected, number=0):
        """Whether two expressions are equal for an input, if a change is made."""
        return self.search.outcome(f"{call} == {expected}".replace("%s", text), number)[0]

    def tests(self):
        """The known properties, each with the changes that its inputs notice together."""
        for one in self.known:
            noticed = {
                number
                for number in self.search.targets
                if not all(self.holds(one, text, number) for text in one["inputs"])
            }
            sizes = [len(f"{one['call']}{one['expected']}".replace("%s", text)) for text in one["inputs"]]
            if len(noticed) >= min(FEWEST_NOTICED, len(self.search.targets)) and max(sizes) <= LONGEST:
                yield one, noticed


def one_argument(text):
    """The only argument of a call, as text; None if it has another number, or a name."""
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    plain = isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords
    return ast.unparse(call.args[0]) if plain and not isinstance(call.args[0], ast.Starred) else None


def words_of(name):
    """The words of a name and the underscores between them."""
    return re.findall(r"_+|[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])", name)


def inverse_names(name):
    """Whether the function comes first, and the name that its inverse can have, for each way."""
    found, words = [], words_of(name)
    pairs = [(True, *pair) for pair in INVERSES] + [(False, *pair[::-1]) for pair in INVERSES]
    for is_first, one, other in pairs:
        for place, word in enumerate(words):
            if word.lower().endswith(one) or word.lower().startswith(one):
                low = word.lower()
                new = word[: len(word) - len(one)] + other if low.endswith(one) else other + word[len(one) :]
                new = new[:1].upper() + new[1:] if word[:1].isupper() else new
                found.append((is_first, "".join([*words[:place], new, *words[place + 1 :]])))
    found += [(False, name[2:])] if name.startswith(UNDOING) else [(True, f"{mark}{name}") for mark in UNDOING]
    turned = re.fullmatch(r"(\w+?)(_to_|_2_|2)(\w+)", name)
    if turned:
        other = turned[3] + turned[2] + turned[1]
        found.append((name < other, other))
    return list(dict.fromkeys(one for one in found if one[1] != name))
