"""Properties that hold for every input of the project's own tests: an inverse gives the input back, twice is once.

A property says what the code is for. So where it fails with the same changes as a pinned output, it is the better test.
"""

import ast
import re

from .exchange import SPEC

INVERSES = (
    ("encode", "decode"), ("dumps", "loads"), ("dump", "load"), ("pack", "unpack"), ("escape", "unescape"),
    ("quote", "unquote"), ("serialize", "deserialize"), ("serialise", "deserialise"), ("compress", "decompress"),
    ("encrypt", "decrypt"), ("format", "parse"), ("unparse", "parse"), ("to", "from"), ("join", "split"),
    ("flatten", "unflatten"), ("marshal", "unmarshal"), ("freeze", "unfreeze"), ("wrap", "unwrap"),
    ("hexlify", "unhexlify"), ("mangle", "demangle"), ("stringify", "parse"), ("compose", "decompose"),
)  # fmt: skip
"""Words in the names of a function and its inverse."""
SETTLING = (
    "normalize", "normalise", "normalized", "canonicalize", "canonical", "clean", "cleanup", "sanitize", "sanitise",
    "simplify", "dedupe", "deduplicate", "unique", "uniq", "slugify", "collapse", "trim", "standardize", "tidy", "sort",
)  # fmt: skip
"""Words in the names of functions whose result should be a fixed point."""
FEWEST, FEWEST_CHANGED = 3, 2
"""Inputs of the project's own tests that must have a property, and that the function does not return as they are."""
LONGEST = 100
"""Characters of an assertion."""
HOLDS = ("value", "bool", "True")


class Properties:
    """The properties of one function that no input of its own tests refutes."""

    def __init__(self, search):
        self.search = search
        given = [one_argument(text) for text in SPEC["written"]]
        self.inputs = [text for text in dict.fromkeys(given) if text is not None]
        self.known = [one for one in self.possible() if self.is_proven(one)]

    def possible(self):
        """The properties that the function's name promises, as two expressions with `%s` for the input."""
        name, call = SPEC["name"], SPEC["call"]
        if not call.endswith(f"{name}(%s)"):
            return
        before = call[: -len(f"{name}(%s)")]
        for other in inverse_names(name):
            if self.is_beside(other):
                yield {"name": f"{other}_reverses_{name}", "call": f"{before}{other}({call})", "expected": "%s"}
        if any(word.lower() in SETTLING for word in words_of(name)):
            yield {"name": f"{name}_is_idempotent", "call": f"{before}{name}({call})", "expected": call}

    def is_beside(self, name):
        """Whether the same module or class has a function of this name."""
        owner = self.search.changes.module
        for one in SPEC["names"][:-1]:
            owner = getattr(owner, one, None)
        return callable(getattr(owner, name, None))

    def is_proven(self, one):
        """Whether a property holds for all inputs of the project's own tests that the function accepts."""
        accepted = [text for text in self.inputs if self.gives(SPEC["call"], text)]
        changed = [text for text in accepted if self.outcome(SPEC["call"], text, "%s") != HOLDS]
        enough = len(accepted) >= FEWEST and len(changed) >= FEWEST_CHANGED
        return enough and all(self.outcome(one["call"], text, one["expected"]) == HOLDS for text in accepted)

    def gives(self, call, text):
        """Whether a call with an input returns."""
        outcome = self.search.outcome(call.replace("%s", text), 0)[0]
        return outcome is not None and outcome[0] == "value"

    def outcome(self, call, text, expected, number=0):
        """Whether two expressions are equal for an input, if a change is made."""
        return self.search.outcome(f"{call} == {expected}".replace("%s", text), number)[0]

    def shown_by(self, text, needed):
        """A property with the input of this call which fails with all needed changes; None if there is none."""
        given = one_argument(text)
        for one in self.known if given is not None else []:
            size = len(f"{one['call']}{one['expected']}".replace("%s", given))
            holds = size <= LONGEST and self.outcome(one["call"], given, one["expected"]) == HOLDS
            if holds and all(self.outcome(one["call"], given, one["expected"], number) != HOLDS for number in needed):
                return {**one, "input": given}
        return None


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
    """The names that the inverse of a function can have."""
    found, words = [], words_of(name)
    for one, other in [each for pair in INVERSES for each in (pair, pair[::-1])]:
        for place, word in enumerate(words):
            if word.lower().endswith(one):
                new = word[: len(word) - len(one)] + (other.capitalize() if word[-len(one)].isupper() else other)
                found.append("".join([*words[:place], new, *words[place + 1 :]]))
    turned = re.fullmatch(r"(\w+?)(_to_|_2_|2)(\w+)", name)
    return [one for one in [*found, *([turned[3] + turned[2] + turned[1]] if turned else [])] if one != name]
