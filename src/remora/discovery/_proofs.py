"""Changes of code that can be proven: findings with the edits that mend them, and how edits are applied."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from remora.discovery._outline import ClassOutline, Outline, outline_of

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_WORD = re.compile(r"[^\W\d]\w*")
_BOUND = re.compile(r"(?:>=|~=|\^|==|>)\s*(\d+)(?:\.(\d+))?")


@dataclass(frozen=True)
class Edit:
    """Replaces lines `first` to `last` of a file by `text`; an empty text removes them."""

    path: str
    first: int
    last: int
    text: str = ""


@dataclass(frozen=True)
class Finding:
    """Something in a project that is provably dead, missing or false."""

    key: str
    """Names it the same way in every call, whatever else was changed."""
    path: str
    line: int
    what: str
    why: str
    """The proof, for a reader."""
    edits: tuple[Edit, ...] = ()
    """Mend it. Empty if a person must decide."""
    last: int = 0
    """The last line of the code that it is about, if that matters."""

    def record(self) -> dict[str, Any]:
        """The finding as plain JSON, without its edits."""
        place = {"key": self.key, "path": self.path, "line": self.line, "last": self.last or self.line}
        return place | {"what": self.what, "why": self.why, "fixable": bool(self.edits)}


@dataclass(frozen=True)
class Sources:
    """All text files of a project."""

    files: Mapping[str, bytes]

    def text(self, path: str) -> str:
        """The text of a file; empty if it is not there, or not UTF-8."""
        try:
            return self.files.get(path, b"").decode("utf-8")
        except UnicodeDecodeError:
            return ""

    @cached_property
    def outlines(self) -> dict[str, Outline]:
        """The outlines of all Python files."""
        return {path: outline_of(data) for path, data in self.files.items() if path.endswith((".py", ".pyi"))}

    @cached_property
    def classes(self) -> dict[str, list[ClassOutline]]:
        """The classes at the top level of modules, by name."""
        found: dict[str, list[ClassOutline]] = {}
        for outline in self.outlines.values():
            for name, each in outline.classes.items():
                found.setdefault(name, []).append(each)
        return found

    @cached_property
    def pieces(self) -> frozenset[tuple[str, bool]]:
        """Strings that can be a part of a name, and whether each is in a lookup by name."""
        return frozenset(piece for outline in self.outlines.values() for piece in outline.pieces)

    def words_beside(self, path: str) -> set[str]:
        """Every word of all other files that could be a name."""
        return {word for file, data in self.files.items() if file != path for word in words_of(data)}

    def with_text(self, path: str, text: str) -> Sources:
        """The same files, one of them with another text."""
        return Sources({**self.files, path: text.encode()})


@lru_cache(maxsize=2048)
def words_of(source: bytes) -> frozenset[str]:
    """Every word of a text that could be a name."""
    return frozenset(_WORD.findall(source.decode("utf-8", "replace")))


def count_words(text: str) -> Counter[str]:
    """How often each word that could be a name is in a text."""
    return Counter(_WORD.findall(text))


def count_word(text: str, word: str) -> int:
    """How often a name is in a text."""
    return len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", text))


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits. An edit that overlaps a later one is left out."""
    lines = LINE.findall(text)
    parts: list[str] = []
    limit = len(lines) + 1
    for edit in sorted(edits, key=lambda one: (one.first, one.last), reverse=True):
        if edit.last < limit:
            end = "" if not edit.text or edit.text.endswith(("\n", "\r")) else "\n"
            parts += ["".join(lines[edit.last : limit - 1]), edit.text + end]
            limit = edit.first
    return "".join([*lines[: limit - 1], *reversed(parts)])


def apply_findings(sources: Sources, findings: Sequence[Finding]) -> dict[str, str]:
    """By path, the new texts of all files that the edits change."""
    edits = [edit for finding in findings for edit in finding.edits]
    paths = dict.fromkeys(edit.path for edit in edits)
    texts = {path: apply_edits(sources.text(path), [edit for edit in edits if edit.path == path]) for path in paths}
    return {path: text for path, text in texts.items() if text != sources.text(path)}


def oldest_python(sources: Sources) -> tuple[int, int] | None:
    """The oldest Python that the project's settings allow; None if they do not say."""
    said = [_requires(sources.text("pyproject.toml"))]
    said += re.findall(r"(?m)^\s*python_requires\s*=\s*([^\n]+)", sources.text("setup.cfg"))
    said += re.findall(r"python_requires\s*=\s*[\"']([^\"']+)", sources.text("setup.py"))
    found = [(int(match[1]), int(match[2] or 0)) for each in said if (match := _BOUND.search(each))]
    return min(found) if found else None


def _requires(text: str) -> str:
    try:
        table = tomllib.loads(text)
    except ValueError:
        return ""
    project, poetry = table.get("project"), table.get("tool", {})
    own = project.get("requires-python", "") if isinstance(project, dict) else ""
    named = poetry.get("poetry", {}) if isinstance(poetry, dict) else {}
    needed = named.get("dependencies", {}).get("python", "") if isinstance(named, dict) else ""
    return str(own or needed)


def module_names(path: str) -> set[str]:
    """The dotted names by which a file may be imported: `src/shop/cart.py` is `shop.cart`."""
    parts = path.removesuffix(".py").removesuffix(".pyi").split("/")
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    starts = [0, 1] if parts[:1] in (["src"], ["lib"]) else [0]
    return {".".join(parts[start:]) for start in starts if parts[start:]}
