"""Extracts the lines of text from HTML, in linear time."""

from __future__ import annotations

import html
import re

_START = re.compile(r"\s*<(?:!doctype html|html|head|body|div|p|ul|table)\b", re.IGNORECASE)
_TAG = re.compile(r"<(!(?:--)?|/?[a-zA-Z][a-zA-Z0-9]*)([^<>]{0,2000})>")
_LINK = re.compile(r"""href=["']?([^"'#>\s]{1,200})""", re.IGNORECASE)
_HIDDEN = frozenset({"script", "style", "svg", "noscript"})
_BLOCKS = frozenset(
    {"p", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "table", "ul", "ol", "title", "head", "pre"}
)
_BREAKS = _BLOCKS | {"br"} | {f"/{name}" for name in _BLOCKS}
_CELLS = frozenset({"/td", "/th"})


def is_html(text: str) -> bool:
    """Whether a text starts like an HTML page or fragment."""
    return _START.match(text) is not None


def html_lines(text: str) -> list[str]:
    """The visible lines of a page. The URL of a link follows its text."""
    parts: list[str] = []
    end, hidden, url = 0, "", ""
    for tag in _TAG.finditer(text):
        name = tag[1].lower()
        if not hidden:
            parts.append(text[end : tag.start()])
            if name == "/a":
                parts.append(url)
                url = ""
            parts.append("\n" if name in _BREAKS else " | " if name in _CELLS else "")
            if name == "a" and (link := _LINK.search(tag[2])):
                url = f" ({link[1]}) "
            hidden = name if name in _HIDDEN and not tag[2].endswith("/") else ""
        elif name == f"/{hidden}":
            hidden = ""
        end = tag.end()
    parts.append("" if hidden else text[end:])
    lines = (" ".join(line.split()) for line in html.unescape("".join(parts)).split("\n"))
    return [line for line in (line.removesuffix(" |") for line in lines) if line]
