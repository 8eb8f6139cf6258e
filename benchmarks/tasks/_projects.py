"""Projects: pieces of the bank put together as a small repository."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.tasks._bank import Module, Piece

FUTURE = "from __future__ import annotations"


@dataclass(frozen=True)
class Project:
    """Where a task's code stands in its repository."""

    module: Module
    layout: str
    """`flat` (a package), `src` (a package below `src`) or `bare` (one module)."""

    @property
    def path(self) -> str:
        name, package = self.module.name, self.module.package
        return {"flat": f"{package}/{name}.py", "src": f"src/{package}/{name}.py", "bare": f"{name}.py"}[self.layout]

    @property
    def importable(self) -> str:
        return self.module.name if self.layout == "bare" else f"{self.module.package}.{self.module.name}"

    def files(self, text: str, rules: Sequence[str] = ("E", "F", "W", "I"), more: str = "") -> dict[str, str]:
        """The repository with this text as its module."""
        root = "src" if self.layout == "src" else "."
        settings = (
            f'[project]\nname = "{self.module.package}"\nversion = "0.1.0"\nrequires-python = ">=3.11"\n\n'
            f'[tool.pytest.ini_options]\npythonpath = ["{root}"]\n\n'
            f"[tool.ruff]\nline-length = 120\n\n[tool.ruff.lint]\nselect = [{', '.join(_quoted(rules))}]\n{more}"
        )
        found = {"pyproject.toml": settings, self.path: text}
        if self.layout != "bare":
            found[f"{self.path.rpartition('/')[0]}/__init__.py"] = ""
        return found


def _quoted(words: Sequence[str]) -> list[str]:
    return [f'"{word}"' for word in words]


def drawn(module: Module, draw: random.Random) -> Project:
    """A project around the module, in some layout."""
    return Project(module, draw.choice(("flat", "flat", "src", "bare")))


def neighbours(module: Module, wanted: str, draw: random.Random, most: int = 2) -> set[str]:
    """The names of the piece that is wanted and a few functions beside it."""
    others = [each.name for each in module.pieces if each.is_function and each.name != wanted]
    return {wanted, *draw.sample(others, k=draw.randint(0, min(most, len(others))))}


def source(module: Module, pieces: Sequence[Piece], texts: dict[str, str] | None = None) -> str:
    """The module with these pieces; `texts` stand in for some of them."""
    texts = texts or {}
    head = [f'"""{module.docstring}"""', "", FUTURE, ""]
    imports = module.header(tuple(pieces))
    head += [*imports, ""] if imports else []
    text, before = "\n".join(head).rstrip("\n"), ""
    for piece in pieces:
        kind = "block" if hasattr(piece.node, "body") else "line"
        text += _GAPS[before, kind] + texts.get(piece.name, piece.text)
        before = kind
    return text + "\n"


_GAPS = {
    ("", "block"): "\n\n\n", ("", "line"): "\n\n", ("line", "line"): "\n",
    ("line", "block"): "\n\n\n", ("block", "line"): "\n\n\n", ("block", "block"): "\n\n\n",
}  # fmt: skip
"""What stands between a piece and the one before it."""
