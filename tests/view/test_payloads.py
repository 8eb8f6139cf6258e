"""Row 36: no text of a stream becomes markup, in any field of any page."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from remora import app
from remora.events import FileChange
from remora.trace import FileBlobs
from remora.view import export_agent
from remora.view._pages import Pages
from view.hostile import PAYLOADS, end, start, turn
from view.loops import finish

TAGS = re.compile(
    r"a|article|b|body|br|button|circle|code|datalist|dd|details|dialog|div|dl|dt|form|h1|h2|h3|h4|head|header|html|i|input|"
    r"label|li|line|link|main|meta|meter|nav|ol|option|output|p|path|polygon|pre|rect|script|section|span|style|summary|svg|"
    r"table|tbody|td|th|thead|time|title|tr|ul"
)
ATTRIBUTES = re.compile(
    r"action|aria-[a-z]+|autocomplete|autofocus|charset|checked|class|colspan|content|cx|cy|d|data-[a-z-]+|defer|for|height|hidden|"
    r"href|http-equiv|id|lang|list|max|min|name|open|placeholder|points|preserveaspectratio|r|rel|required|role|rowspan|scope|src|"
    r"tabindex|title|type|value|viewbox|width|x|x1|x2|y|y1|y2"
)
GROUPS = [" ".join(PAYLOADS[at : at + 8]) for at in range(0, len(PAYLOADS), 8)]
"""The same payloads, several in one text."""
LINK = re.compile(r"/(?![/\\])|[?#]|$")


class Strict(HTMLParser):
    """Fails at any element, attribute or address that our templates do not write."""

    def __init__(self, *, inline: bool = False) -> None:
        super().__init__()
        self.inline = inline
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert TAGS.fullmatch(tag), tag
        for name, value in attrs:
            assert ATTRIBUTES.fullmatch(name), (tag, name)
            if name in ("href", "src", "action"):
                assert LINK.match(value or ""), (tag, name, value)
            if name == "http-equiv":
                assert self.inline and value == "Content-Security-Policy"
        if tag in ("script", "style") and not self.inline:
            assert tag == "script" and dict(attrs)["src"] == "/static/view.js"

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def check(page: str, *, inline: bool = False) -> str:
    """The text of a page that has only our own markup."""
    parser = Strict(inline=inline)
    parser.feed(page)
    parser.close()
    assert "\x00" not in page and "\x1b" not in page and "\u202e" not in page
    return "".join(parser.words)


@pytest.fixture
def change(folder: Path) -> FileChange:
    """A change of a file whose content and path are payloads."""
    blobs = FileBlobs(folder / ".agentfs")
    before, after = (finish(blobs.put(text.encode())) for text in (PAYLOADS[0], "\n".join(PAYLOADS)))
    return FileChange(path=PAYLOADS[0], before=before, after=after)


def test_there_are_at_least_150_different_payloads() -> None:
    assert len(set(PAYLOADS)) == len(PAYLOADS) >= 150


def test_no_payload_becomes_markup_in_any_event_of_any_page(
    write: Any, project: app.Project, change: FileChange, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    turns = [each for number, text in enumerate(PAYLOADS, 1) for each in turn(text, number, change)]
    agent = write(start(PAYLOADS[0]), *turns, end(PAYLOADS[0]))
    pages, shown = Pages(project), 0
    for number, payload in enumerate(PAYLOADS, 1):
        text = check(pages.turn(agent, number))
        shown += text.count("window.pwned=1")
        seq = 1 + 16 * (number - 1) + 7  # its first tool result
        if number % 40 == 1:
            check(pages.output(agent, seq, 0, 0, payload))
            check(pages.seen(agent, seq, payload))
            check(pages.explain(agent, payload, seq - 3, payload))
            check(pages.search_agent(agent, payload))
    assert shown > 20 * len(PAYLOADS)  # they are there, as text
    for page in (
        pages.agent(agent, 7),
        pages.turns(agent, 0),
        pages.files(agent, None),
        pages.ladder(agent),
        pages.changes(agent),
        pages.report(agent),
    ):
        check(page)
    check(pages.compare(agent, agent))
    record_property("row 36", f"{len(PAYLOADS)} payloads in every field of every page: none became markup")


def test_no_payload_becomes_markup_in_an_exported_page(
    write: Any, project: app.Project, change: FileChange, tmp_path: Path
) -> None:
    turns = [each for number, text in enumerate(GROUPS, 1) for each in turn(text, number, change)]
    agent = write(start(GROUPS[0]), *turns, end(GROUPS[0]))
    exported = export_agent(project, agent, tmp_path / "run.html", max_bytes=30_000_000)
    assert exported.turns == len(GROUPS) + 1 and not exported.left_out
    assert check(exported.path.read_text(), inline=True).count("window.pwned=1") > 20 * len(PAYLOADS)


def test_no_payload_becomes_markup_at_the_top_of_a_page_or_in_the_list(write: Any, project: app.Project) -> None:
    agents = [write(start(text), end(text)) for text in PAYLOADS]
    pages = Pages(project)
    for page in ("0", "1"):
        assert "window.pwned=1" in check(pages.runs({"page": page}))
    for agent in agents:
        check(pages.agent(agent, None))
    for payload in PAYLOADS[::15]:
        check(pages.search(payload))
    for agent in agents[::15]:
        check(pages.report(agent))
        check(pages.compare(agent, agents[0]))
        check(pages.compare(agent, ""))


def test_no_payload_becomes_markup_in_what_an_address_asks_for(running: Any, write: Any, change: FileChange) -> None:
    agent = write(start("x"), *turn("x", 1, change), end("x"))
    for payload in GROUPS:
        given = quote(payload, safe="")
        for path in (
            f"/?operation={given}&node={given}&page={given}",
            f"/search?q={given}",
            f"/compare?a={given}",
            f"/compare?a={given}&b={given}",
            f"/report?id={given}",
            f"/a/{given}",
            f"/a/{agent}?turn={given}",
            f"/a/{agent}/explain?key={given}&before=5&item={given}",
            f"/a/{agent}/seen?seq=8&line={given}",
            f"/a/{agent}/output?seq=8&q={given}",
        ):
            answer = running.get(path)
            assert answer.status < 500, (path, answer.text)
            if answer.headers["content-type"].startswith("text/html"):
                check(answer.text)
