"""Tasks for `dead_links`: the pages of a manual, and links that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.making import Case, call, made
from remora_lab.bench.tasks import Task

LANTERN = '''"""Settings of the Lantern manual."""

project = "Lantern"
extensions = ["myst_parser"]
moved = {
    "install.md": "guide/setup.md",
    "faq.md": "help/questions.md",
}
'''
KILN = """project = "Kiln"
html_title = "Kiln, a firing planner"
moved = {}
"""
LANTERN_PAGES = {
    "guide/setup.md": "# Setting up\n\nCharge the lantern first.\n",
    "guide/colours.md": "# Colours\n\nRed, green and white.\n",
    "help/questions.md": "# Questions\n\nWhy does it blink? See [colours](guide/colours.md).\n",
}
KILN_PAGES = {
    "firing/bisque.md": "# Bisque firing\n\nSlowly up to 1000 degrees.\n",
    "firing/glaze.md": "# Glaze firing\n\nThe second firing.\n",
    "safety.md": "# Safety\n\nNever open a hot kiln.\n",
}


@dataclass(frozen=True)
class _Case(Case):
    """The pages of a manual, edits that repair it, and the way there."""

    pages: Mapping[str, str]
    """Pages with the links that it is about."""
    others: Mapping[str, str]
    """Pages besides."""
    edits: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """What is replaced, by page."""
    way: Sequence[Any] = ()


def _search(words: str) -> dict[str, Any]:
    return call("search_pages", words=words)


def _point(page: str, line: int, address: str) -> dict[str, Any]:
    return call("point_link", page=page, line=line, address=address)


def _remove(page: str, line: int) -> dict[str, Any]:
    return call("remove_link", page=page, line=line)


CASES = (
    _Case("dead_links-colors", "easy", "docs/conf.py", LANTERN,
          {"index.md": "# Lantern\n\nAll about [colours](colours.md).\n"}, LANTERN_PAGES,
          {"index.md": [("(colours.md)", "(guide/colours.md)")]},
          [_search("colours"), _point("index.md", 3, "guide/colours.md")]),
    _Case("dead_links-shop", "easy", "docs/conf.py", LANTERN,
          {"index.md": "# Lantern\n\nSpare parts are in our [shop](shop.md).\n"}, LANTERN_PAGES,
          {"index.md": [("[shop](shop.md)", "shop")]},
          [_search("shop"), _remove("index.md", 3)]),
    _Case("dead_links-moved", "medium", "docs/conf.py", LANTERN,
          {"index.md": "# Lantern\n\nBegin with [the installation](install.md).\n"}, LANTERN_PAGES,
          {"index.md": [("(install.md)", "(guide/setup.md)")]},
          [_point("index.md", 3, "guide/setup.md")]),
    _Case("dead_links-firing", "hard", "manual/conf.py", KILN,
          {"index.md": "# Kiln\n\nRead about [firing](firing.md) first.\n"}, KILN_PAGES,
          way=[_search("firing")]),
    _Case("dead_links-built", "medium", "docs/conf.py", LANTERN,
          {"index.md": "# Lantern\n\nFor programmers: [blink](api/blink.md).\n"}, LANTERN_PAGES),
    _Case("dead_links-archive", "hard", "manual/conf.py", KILN,
          {"archive/2019.md": "# News of 2019\n\nWe wrote about [safety](rules/safety.md).\n",
           "index.md": "# Kiln\n\nBefore you start: [safety](rules/safety.md).\n"}, KILN_PAGES,
          {"index.md": [("(rules/safety.md)", "(safety.md)")]},
          [_search("safety"), _point("index.md", 3, "safety.md")]),
    _Case("dead_links-both", "medium", "manual/conf.py", KILN,
          {"index.md": "# Kiln\n\n- [Bisque](bisque.md)\n- [Glaze](glaze.md)\n"}, KILN_PAGES,
          {"index.md": [("(bisque.md)", "(firing/bisque.md)"), ("(glaze.md)", "(firing/glaze.md)")]},
          [[_search("bisque"), _search("glaze"), _point("index.md", 3, "firing/bisque.md"),
            _point("index.md", 4, "firing/glaze.md")]]),
    _Case("dead_links-mixed", "hard", "docs/conf.py", LANTERN,
          {"index.md": "# Lantern\n\nOften: [questions](faq.md).\n\n[The lamp](api/lamp.md)\n\n[Costs](cost.md)\n"},
          LANTERN_PAGES,
          {"index.md": [("(faq.md)", "(help/questions.md)"), ("[Costs](cost.md)", "Costs")]},
          [[_point("index.md", 3, "help/questions.md"), _search("cost")], _remove("index.md", 7)]),
    _Case("dead_links-nested", "easy", "manual/conf.py", KILN,
          {"firing/log.md": "# The log\n\nWrite it down.\n\nThen see [the glaze](glazes/glaze.md) page.\n"}, KILN_PAGES,
          {"firing/log.md": [("(glazes/glaze.md)", "(firing/glaze.md)")]},
          [_search("glaze"), _point("firing/log.md", 5, "firing/glaze.md")]),
)  # fmt: skip


def dead_links_tasks() -> Iterator[Task]:
    """Every task of the agent."""
    for case in CASES:
        folder = case.path.removesuffix("conf.py")
        files = {case.path: case.source}
        files |= {folder + page: text for page, text in {**case.pages, **case.others}.items()}
        after = {folder + page: _edited(case.pages[page], edits) for page, edits in case.edits.items()}
        way = [call("list_dead_links"), *case.way]
        yield made(case.name, case.level, files, case.path, after, way)


def _edited(text: str, edits: Sequence[tuple[str, str]]) -> str:
    for old, new in edits:
        text = text.replace(old, new)
    return text
