"""Which rules of its own linter a project keeps. What its code breaks widely, nobody runs: it asks for nothing.

Whoever runs a linter has no errors, or the few that a new version reports. Of 59 packages whose settings select ruff's
rules, 55 had 0 to 4 errors in their code. Two had 74 and 293, in nearly all of their files.
"""

from pinned import newer_rules
from settings import CLASSIC, PROVEN, TASTE, is_among, is_off

from remora.scripts import external
from remora.scripts.shared.places import is_beside, is_in_tests


@external
async def linter_totals(flags: list[str], under: str = "") -> dict: ...


WIDELY = 12
"""More errors than that of one rule mean that nobody runs it."""
TOGETHER, SHARE = 20, 4
"""More errors than that of all rules, in more than one of so many files, mean that nobody runs any of them."""
ALL_KEPT = {"all": False, "rules": [], "note": ""}
NEWER = "left alone: newer than the ruff that the project pins. `operations.lint.strict` asks for all"
RULES_NAMED = 3
"""Most rules that a note names."""
UNKEPT = {}
"""By file: several runs of ruff in one call need it once."""


async def find_unkept(file, settings):
    """The rules that the project does not keep, whether it runs none, and the note about it if this file breaks any."""
    if file not in UNKEPT:
        UNKEPT[file] = await read_unkept(file, settings) if settings["linter"] else ALL_KEPT
    return UNKEPT[file]


async def read_unkept(file, settings):
    totals = await linter_totals(settings["flags"], settings["place"])
    groups = [totals["code"]]
    if is_in_tests(file) or is_beside(file):
        # Where nobody runs the linter on the code, nobody runs it on the tests. The other way round, many do.
        groups.append(totals["beside"])
    every = {**totals["code"]["errors"], **totals["beside"]["errors"]}
    known = list(dict.fromkeys(code for counted in every.values() for code in counted))
    newer = await newer_rules(totals["since"], [code for code in known if not is_always_wrong(code)], settings["place"])
    settings = {**settings, "off": [*settings["off"], *newer]}
    found = ALL_KEPT
    for group in groups:
        found = found if found["all"] else merge(found, judge(group, settings))
    own = every.get(file, {})
    broken = [code for code in own if is_left(code, found) and not is_off(code, file, settings)]
    fresh = [code for code in own if code in newer]
    note = found["note"] if broken else f"{list_rules(fresh)} {NEWER}" if fresh else ""
    return with_rules(found, newer, note)


def with_rules(found, newer, note):
    """The finding with more rules that are left alone, and the note about the file."""
    return {**found, "rules": [*found["rules"], *newer], "note": note}


def judge(group, settings):
    """The rules that a group of files breaks widely, whether that is true of all of them together, and the note."""
    by_rule, files, broken = {}, {}, 0
    filtered = settings["off"] or settings["only"] or settings["files"]
    for path, counted in group["errors"].items():
        own = {code: counted[code] for code in counted if not filtered or not is_off(code, path, settings)}
        broken += 1 if own else 0
        for code, number in own.items():
            by_rule[code] = by_rule.get(code, 0) + number
            files[code] = [*files.get(code, []), path]
    every = sum(by_rule.values()) > TOGETHER and broken * SHARE > group["files"]
    rules = [code for code in by_rule if not is_always_wrong(code) and (every or by_rule[code] > WIDELY)]
    rules = sorted(rules, key=lambda code: -by_rule[code])
    if not rules:
        return {**ALL_KEPT, "all": every}
    places = len({path for code in rules for path in files[code]})
    words = f"{sum([by_rule[code] for code in rules])} errors of {list_rules(rules)} in {places} "
    words += f"{'file' if places == 1 else 'files'} left alone: the project does not run "
    words += "its linter" if every else "this rule" if len(rules) == 1 else "these rules"
    return {"all": every, "rules": rules, "note": words + ". `operations.lint.strict` asks for all"}


def merge(one, other):
    """Both findings; the note of the first that has one."""
    if other["all"]:
        return other
    return {"all": False, "rules": [*one["rules"], *other["rules"]], "note": one["note"] or other["note"]}


def list_rules(rules):
    """The first rules, and how many more there are."""
    more = len(rules) - RULES_NAMED
    return ", ".join(rules[:RULES_NAMED]) + (f" and {more} more" if more > 0 else "")


def is_left(code, found):
    """Whether errors of a rule are left alone."""
    return code in found["rules"] or (found["all"] and not is_always_wrong(code))


def is_always_wrong(code):
    """Whether a rule is about mistakes: it counts also where nobody runs a linter."""
    return code in PROVEN or (is_among(code, CLASSIC) and code not in TASTE)
