"""Languages that the index supports: a folder each, with a query (`index.scm`) and a mapping (`language.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable

from remora.errors import ConfigError, MissingExtra

try:
    import tree_sitter
except ImportError as error:
    raise MissingExtra("tree-sitter, which finds functions and classes,", extra="agents") from error

CAPTURES = frozenset(
    {"function", "class", "decorated", "definition", "decorator", "doc", "parameter.typed", "parameter.plain"}
    | {"call", "raise", "branch", "import", "import.from", "import.name", "import.alias", "typed.name", "typed.type"}
)
"""Captures that a query may use. Others must begin with `_` and are private to the query."""


@dataclass(frozen=True)
class Mapped:
    """One language, as its folder describes it."""

    name: str
    suffixes: tuple[str, ...]
    grammar: tree_sitter.Language = field(repr=False)
    query: tree_sitter.Query = field(repr=False)
    fields: Mapping[str, str]
    """The grammar's names for the fields `name`, `body` and `returns` of a definition."""
    package_files: tuple[str, ...] = ()
    own_names: tuple[str, ...] = ()
    test_files: tuple[str, ...] = ()
    test_names: tuple[str, ...] = ()

    def is_test_file(self, path: str) -> bool:
        """Whether the file contains tests."""
        name = path.rpartition("/")[2]
        return any(fnmatchcase(name, pattern) for pattern in self.test_files)

    def module_of(self, path: str) -> str:
        """The module name of a path: `shop/cart.py` is `shop.cart`, `shop/__init__.py` is `shop`."""
        parts = path.rpartition(".")[0].split("/")
        return ".".join(parts[:-1] if parts[-1] in self.package_files else parts)


def load_language(folder: Traversable) -> Mapped:
    """Load the language of a folder. Raises `ConfigError` if it is not valid."""
    try:
        settings = tomllib.loads(folder.joinpath("language.toml").read_text("utf-8"))
        text = folder.joinpath("index.scm").read_text("utf-8")
        grammar = tree_sitter.Language(import_module(settings["grammar"]).language())
        query = tree_sitter.Query(grammar, text)
        language = Mapped(
            settings["name"],
            tuple(settings["suffixes"]),
            grammar,
            query,
            settings["fields"],
            *(tuple(settings.get(key, ())) for key in ("package_files", "own_names", "test_files", "test_names")),
        )
    except (OSError, ValueError, KeyError, TypeError, ImportError, tree_sitter.QueryError) as error:
        raise ConfigError(f"`{folder.name}` is not a valid language: {error!r}") from error
    names = {query.capture_name(index) for index in range(query.capture_count)}
    if unknown := sorted(name for name in names - CAPTURES if not name.startswith("_")):
        expected = ", ".join(f"`@{name}`" for name in sorted(CAPTURES))
        raise ConfigError(f"`{folder.name}/index.scm`: capture `@{unknown[0]}` is not known: expected {expected}")
    return language


@cache
def languages() -> Mapping[str, Mapped]:
    """All bundled languages, by file suffix."""
    folders = [item for item in files(__package__).joinpath("languages").iterdir() if item.is_dir()]
    bundled = [load_language(item) for item in folders if item.joinpath("language.toml").is_file()]
    return {suffix: language for language in bundled for suffix in language.suffixes}


def language_of(path: str) -> Mapped | None:
    """The language of a file, by its suffix; None if it is not supported."""
    return languages().get("." + path.rpartition(".")[2])
