"""The queries that define what a node is: the bundled one, and those that a project adds.

A query captures a whole definition as `@function` or `@class` and its name as `@name`. A definition with decorators is
captured as `@decorated`, with `@definition` inside it. Captures that begin with `_` are private to the query.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from remora.errors import ConfigError, MissingExtra
from remora.files import read_plain

try:
    import tree_sitter_python
    from tree_sitter import Language, Query, QueryError
except ImportError as error:
    raise MissingExtra("tree-sitter, which finds functions and classes,", extra="agents") from error

BUNDLED = "python.scm"
MAX_QUERY = 1024 * 1024
"""Bytes of one query file. Links are refused: an error must not quote a file elsewhere."""
CAPTURES = frozenset({"function", "class", "name", "decorated", "definition"})


@cache
def language() -> Language:
    """Python's grammar."""
    return Language(tree_sitter_python.language())


@cache
def bundled_query() -> Query:
    """The query that comes with Remora."""
    return Query(language(), _bundled_text())


def query_with(folder: Path) -> Query:
    """The bundled query plus every `*.scm` file in `folder`. Raises `ConfigError` naming the file and its problem."""
    if not folder.is_dir():
        raise ConfigError(f"`{folder}` is not a folder: expected one with queries, `*.scm`")
    return Query(language(), "\n".join([_bundled_text(), *map(_read_query, sorted(folder.glob("*.scm")))]))


def _bundled_text() -> str:
    return files(__package__).joinpath(BUNDLED).read_text("utf-8")


def _read_query(file: Path) -> str:
    try:
        text = read_plain(file, MAX_QUERY).decode("utf-8")
        query = Query(language(), text)
    except (OSError, UnicodeDecodeError, QueryError) as error:
        raise ConfigError(f"`{file}` is not a query for Python code: {error}") from error
    captures = {query.capture_name(index) for index in range(query.capture_count)}
    unknown = sorted(name for name in captures - CAPTURES if not name.startswith("_"))
    if unknown:
        names = ", ".join(f"`@{name}`" for name in sorted(CAPTURES))
        raise ConfigError(
            f"`{file}`: capture `@{unknown[0]}` is not known: expected {names}, or one beginning with `_`"
        )
    if captures & {"function", "class"} and "name" not in captures:
        raise ConfigError(f"`{file}`: its captures have no name: expected a capture `@name`")
    return text
