"""Tasks for `flags`: requests of colleagues, a dictionary of feature flags, and code that asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.making import Case, call, made
from remora_lab.bench.tasks import Task

SHOP = '''"""Feature flags of the shop."""

FLAGS = {
{rows}}
TEAMS = ["team-checkout", "team-search", "team-growth", "team-apps"]


def choose(flag, on, off):
    return on if FLAGS[flag]["rollout"] == 100 else off
'''
CLINIC = """import random

TEAMS = ["booking", "records-and-letters", "waiting-room"]
FLAGS = {
{rows}}


def choose(flag, on, off):
    return on if random.randrange(100) < FLAGS[flag]["rollout"] else off
"""
SHOP_FLAGS = {
    "new_search": ("team-search", 100, False),
    "beta_cart": ("team-checkout", 10, False),
    "gift_cards": ("team-checkout", 35, False),
    "holiday_banner": ("team-growth", 100, True),
    "dark_mode": ("team-apps", 0, False),
}
CLINIC_FLAGS = {
    "sms_codes": ("booking", 40, False),
    "quick_view": ("booking", 25, False),
    "pdf_letters": ("records-and-letters", 100, False),
    "number_screen": ("waiting-room", 60, True),
}
CART = """from shop.flags import choose


def page(cart):
    layout = choose("beta_cart", fast(cart), classic(cart))
    return layout + choose("gift_cards", "Add a gift card", "")


def fast(cart):
    return f"{len(cart)} things"


def classic(cart):
    return ", ".join(cart)
"""
SEARCH = """from shop.flags import choose


def find(words, books):
    hits = choose("new_search", ranked(words, books), [book for book in books if words in book])
    return hits[:20]


def ranked(words, books):
    return sorted(books, key=lambda book: -sum(word in book for word in words.split()))


def colours():
    return choose("dark_mode", ("white", "black"), ("black", "white"))
"""
LETTERS = '''"""Letters to patients."""

from clinic.flags import choose


def letter(patient):
    kind = choose("pdf_letters", "pdf", "txt")
    return f"{patient}.{kind}"


def code(patient, send):
    send(choose("sms_codes", patient, "reception"))
'''
Flag = tuple[str, int, bool]
Flags = Mapping[str, Flag]


def _put(flags: Flags, name: str, flag: Flag, new_name: str = "") -> Flags:
    """The flags with another one in the place of `name`."""
    return {(new_name or each) if each == name else each: flag if each == name else flags[each] for each in flags}


def _without(flags: Flags, name: str) -> Flags:
    return {each: flag for each, flag in flags.items() if each != name}


@dataclass(frozen=True)
class _Case(Case):
    """What somebody asks, the flags and the code before and after, and the way there."""

    goal: str
    before: Flags
    after: Flags | None = None
    """None where nothing is to change."""
    code: Mapping[str, str] = field(default_factory=dict)
    edits: Sequence[tuple[str, str]] = ()
    """What changes in the code."""
    way: Sequence[Any] = ()


def _get(name: str) -> dict[str, Any]:
    return call("get_flag", name=name)


TEAMS = call("list_teams")
CASES = (
    _Case("flags-half", "easy", "clinic/flags.py", CLINIC,
          "Please roll quick_view out to 50 percent of our patients.", CLINIC_FLAGS,
          _put(CLINIC_FLAGS, "quick_view", ("booking", 50, False)),
          way=[_get("quick_view"), call("set_rollout", name="quick_view", percent=50)]),
    _Case("flags-rename", "easy", "shop/flags.py", SHOP,
          "The flag beta_cart needs a better name: call it fast_cart, everywhere.", SHOP_FLAGS,
          _put(SHOP_FLAGS, "beta_cart", ("team-checkout", 10, False), "fast_cart"),
          {"shop/cart.py": CART}, [('choose("beta_cart"', 'choose("fast_cart"')],
          [_get("beta_cart"), call("rename_flag", name="beta_cart", new_name="fast_cart")]),
    _Case("flags-growth", "medium", "shop/flags.py", SHOP,
          "gift_cards now belongs to the growth people, can you note that down?", SHOP_FLAGS,
          _put(SHOP_FLAGS, "gift_cards", ("team-growth", 35, False)), {"shop/cart.py": CART},
          way=[[_get("gift_cards"), TEAMS], call("give_to_team", name="gift_cards", team="team-growth")]),
    _Case("flags-ranked", "medium", "shop/flags.py", SHOP,
          "Everyone has had new_search since summer. Get rid of the flag.", SHOP_FLAGS,
          _without(SHOP_FLAGS, "new_search"), {"shop/search.py": SEARCH},
          [('choose("new_search", ranked(words, books), [book for book in books if words in book])',
            "ranked(words, books)")],
          [_get("new_search"), call("retire_flag", name="new_search", keep="on")]),
    _Case("flags-unfinished", "hard", "shop/flags.py", SHOP,
          "Let's clean up: gift_cards is done, take the flag out of the code.", SHOP_FLAGS,
          code={"shop/cart.py": CART}, way=[_get("gift_cards")]),
    _Case("flags-screen", "hard", "clinic/flags.py", CLINIC,
          "The number_screen is broken again. Set it to 0 percent until it is repaired.", CLINIC_FLAGS,
          way=[_get("number_screen")]),
    _Case("flags-dark", "medium", "shop/flags.py", SHOP,
          "We gave up on dark_mode. Please retire it.", SHOP_FLAGS,
          _without(SHOP_FLAGS, "dark_mode"), {"shop/search.py": SEARCH, "shop/cart.py": CART},
          [('choose("dark_mode", ("white", "black"), ("black", "white"))', '("black", "white")')],
          [_get("dark_mode"), call("retire_flag", name="dark_mode", keep="off")]),
    _Case("flags-off", "medium", "clinic/flags.py", CLINIC,
          "Patients complain about the codes by text message, so nobody should get sms_codes for now.", CLINIC_FLAGS,
          _put(CLINIC_FLAGS, "sms_codes", ("booking", 0, False)), {"clinic/letters.py": LETTERS},
          way=[_get("sms_codes"), call("set_rollout", name="sms_codes", percent=0)]),
    _Case("flags-unknown", "hard", "clinic/flags.py", CLINIC,
          "Rename video_calls to remote_visits, please.", CLINIC_FLAGS, way=[_get("video_calls")]),
    _Case("flags-letters", "hard", "clinic/settings/flags.py", CLINIC,
          "sms_codes goes over to the folks who do records. And let everybody have it from today.", CLINIC_FLAGS,
          _put(CLINIC_FLAGS, "sms_codes", ("records-and-letters", 100, False)), {"clinic/letters.py": LETTERS},
          way=[[_get("sms_codes"), TEAMS],
               [call("give_to_team", name="sms_codes", team="records-and-letters"),
                call("set_rollout", name="sms_codes", percent=100)]]),
)  # fmt: skip


def flags_tasks() -> Iterator[Task]:
    """Every task of the agent."""
    for case in CASES:
        files = {case.path: _source(case, case.before), **case.code}
        after = {path: _edited(text, case.edits) for path, text in case.code.items()}
        after[case.path] = _source(case, case.before if case.after is None else case.after)
        yield made(case.name, case.level, files, case.path, after, list(case.way), goal=case.goal)


def _source(case: _Case, flags: Flags) -> str:
    rows = [
        f'    "{name}": {{"team": "{team}", "rollout": {rollout}, "locked": {locked}}},\n'
        for name, (team, rollout, locked) in flags.items()
    ]
    return case.source.replace("{rows}", "".join(rows))


def _edited(text: str, edits: Sequence[tuple[str, str]]) -> str:
    for old, new in edits:
        text = text.replace(old, new)
    return text
