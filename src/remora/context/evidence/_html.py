"""Extracts the lines of text from HTML, in linear time."""

from __future__ import annotations

import html
import re

_START = re.compile(r"\s*<(?:!doctype html|html|head|body|div|p|ul|table)\b", re.IGNORECASE)
_TAG = re.compile(r"<(!--|/?[a-zA-Z][a-zA-Z0-9]*)([^<>]{0,2000})>")
_LINK = re.compile(r"""href=["']?([^"'#>\s]{1,200})""", re.IGNORECASE)
_HIDDEN = frozenset({"script", "style", "svg", "head"})
_BREAKS = frozenset({"br", "/p", "/div", "/li", "/tr", "/h1", "/h2", "/h3", "/h4", "/h5", "/h6", "/table", "/ul"})
_CELLS = frozenset({"/td", "/th"})


def is_html(text: str) -> bool:
    """Whether a text starts like an HTML page or fragment."""
    return _START.match(text) is not None


def html_lines(text: str) -> list[str]:
    """The visible lines of a page, with the URLs of links."""
    parts: list[str] = []
    end, hidden = 0, ""
    for tag in _TAG.finditer(text):
        name = tag[1].lower()
        if not hidden:
            parts.append(text[end : tag.start()])
            parts.append(_shown(name, tag[2]))
            hidden = name if name in _HIDDEN and not tag[2].endswith("/") else ""
        elif name == f"/{hidden}":
            hidden = ""
        end = tag.end()
    parts.append("" if hidden else text[end:])
    lines = (" ".join(line.split()) for line in html.unescape("".join(parts)).split("\n"))
    return [line for line in lines if line]


def _shown(name: str, attributes: str) -> str:
    """The text that replaces a tag."""
    if name in _BREAKS:
        return "\n"
    if name in _CELLS:
        return " | "
    link = _LINK.search(attributes) if name == "a" else None
    return f" ({link[1]}) " if link else ""
