"""Tasks for `locales`: a module that asks for texts, and JSON files with translations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.making import Case, call, made
from remora_lab.bench.tasks import Task

Texts = Mapping[str, str]
CART = """from shop.i18n import t


def summary(cart):
    if not cart:
        return t("cart.empty", was="basket.empty")
    return t("cart.items") + ": " + str(len(cart))
"""
TICKETS = '''"""Tickets as they are printed."""

from museum.texts import t


class Ticket:
    def __init__(self, name, adults, children):
        self.name = name
        self.adults = adults
        self.children = children

    def lines(self):
        yield t("ticket.title")
        yield t("ticket.adults", was="ticket.grownups") + f" {self.adults}"
        if self.children:
            yield t("ticket.children") + f" {self.children}"
'''
ENGLISH = {"cart.empty": "Your cart is empty", "cart.items": "Items in your cart"}
GERMAN = {"cart.empty": "Ihr Warenkorb ist leer", "cart.items": "Artikel im Warenkorb"}
FRENCH = {"cart.empty": "Votre panier est vide", "cart.items": "Articles dans le panier"}
PRINTED = {"ticket.adults": "Adults", "ticket.children": "Children", "ticket.title": "Museum of Clocks"}
DANISH = {"ticket.adults": "Voksne", "ticket.children": "Børn", "ticket.title": "Urmuseet"}
SPANISH = {"ticket.adults": "Adultos", "ticket.children": "Niños", "ticket.title": "Museo de Relojes"}


def _without(texts: Texts, *keys: str) -> dict[str, str]:
    return {key: text for key, text in texts.items() if key not in keys}


def _move(language: str, old: str, new: str) -> dict[str, Any]:
    return call("move_text", language=language, old_key=old, new_key=new)


def _copy(language: str, key: str) -> dict[str, Any]:
    return call("copy_english", language=language, key=key)


def _delete(language: str, key: str) -> dict[str, Any]:
    return call("delete_text", language=language, key=key)


@dataclass(frozen=True)
class _Case(Case):
    """A module, its languages before and after, and the way there."""

    before: Mapping[str, Texts]
    after: Mapping[str, Texts] = field(default_factory=dict)
    """Only languages that change."""
    way: Sequence[Any] = ()
    notes: Texts = field(default_factory=dict)


CASES = (
    _Case("locales-items", "easy", "shop/cart.py", CART,
          {"de": _without(GERMAN, "cart.items"), "en": ENGLISH},
          {"de": {**GERMAN, "cart.items": "(en) Items in your cart"}},
          [_copy("de", "cart.items")]),
    _Case("locales-unwritten", "easy", "museum/tickets.py", TICKETS,
          {"da": _without(DANISH, "ticket.children"), "en": _without(PRINTED, "ticket.children")}),
    _Case("locales-basket", "easy", "shop/cart.py", CART,
          {"de": {**_without(GERMAN, "cart.empty"), "basket.empty": "Der Korb ist leer"}, "en": ENGLISH},
          {"de": {**GERMAN, "cart.empty": "Der Korb ist leer"}},
          [_move("de", "basket.empty", "cart.empty")]),
    _Case("locales-voucher", "medium", "shop/cart.py", CART,
          {"de": {**GERMAN, "cart.voucher": "Gutschein"}, "en": ENGLISH},
          {"de": GERMAN},
          [call("show_text", key="cart.voucher"), _delete("de", "cart.voucher")]),
    _Case("locales-kiosk", "medium", "museum/tickets.py", TICKETS,
          {"da": {**DANISH, "ticket.touch": "Rør skærmen"}, "en": {**PRINTED, "ticket.touch": "Touch the screen"}},
          way=[call("show_text", key="ticket.touch")], notes={"ticket.touch": "Needed by the kiosk app"}),
    _Case("locales-three", "hard", "shop/cart.py", CART,
          {"de": {**_without(GERMAN, "cart.empty"), "basket.empty": "Leer!"}, "en": ENGLISH,
           "fr": _without(FRENCH, "cart.items")},
          {"de": {**GERMAN, "cart.empty": "Leer!"}, "fr": {**FRENCH, "cart.items": "(en) Items in your cart"}},
          [[_move("de", "basket.empty", "cart.empty"), _copy("fr", "cart.items")]]),
    _Case("locales-audio", "hard", "museum/tickets.py", TICKETS,
          {"da": {**DANISH, "ticket.audio": "Lyd"}, "en": {**PRINTED, "ticket.audio": "Audio"}, "es": SPANISH},
          {"da": DANISH, "en": PRINTED},
          [call("show_text", key="ticket.audio"), [_delete("da", "ticket.audio"), _delete("en", "ticket.audio")]]),
    _Case("locales-new", "medium", "museum/tickets.py", TICKETS,
          {"da": _without(DANISH, "ticket.title"), "en": PRINTED, "es": _without(SPANISH, "ticket.title")},
          {"da": {**DANISH, "ticket.title": "(en) Museum of Clocks"},
           "es": {**SPANISH, "ticket.title": "(en) Museum of Clocks"}},
          [[_copy("da", "ticket.title"), _copy("es", "ticket.title")]]),
    _Case("locales-complete", "easy", "shop/cart.py", CART, {"de": GERMAN, "en": ENGLISH, "fr": FRENCH}),
    _Case("locales-season", "hard", "museum/tickets.py", TICKETS,
          {"da": {**_without(DANISH, "ticket.adults"), "ticket.grownups": "Voksne"}, "en": PRINTED,
           "es": {**SPANISH, "ticket.night": "Noche de museos"}},
          {"da": DANISH},
          [[_move("da", "ticket.grownups", "ticket.adults"), call("show_text", key="ticket.night")]],
          {"ticket.night": "Printed once a year, in May"}),
)  # fmt: skip


def locales_tasks() -> Iterator[Task]:
    """Every task of the agent."""
    for case in CASES:
        files = {case.path: case.source, **_files(case.before)}
        if case.notes:
            files["locales/notes.json"] = _encoded(case.notes)
        yield made(case.name, case.level, files, case.path, _files(case.after), list(case.way))


def _files(languages: Mapping[str, Texts]) -> dict[str, str]:
    return {f"locales/{language}.json": _encoded(texts) for language, texts in languages.items()}


def _encoded(texts: Texts) -> str:
    return json.dumps(texts, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
