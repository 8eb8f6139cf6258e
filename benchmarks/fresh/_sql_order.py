"""Tasks for `sql_order`: SQL files with headers, and a Python list of the sequence in which they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.making import Case, call, made
from remora_lab.bench.tasks import Task

LIBRARY = '''"""The order in which migrations of the lending library run."""

ORDER = {order}
POSTPONED = {postponed}
LAST_RELEASED = "{released}"
'''
CLUB = """from pathlib import Path

LAST_RELEASED = "{released}"
ORDER = {order}
POSTPONED = {postponed}


def statements(folder):
    for name in ORDER:
        yield Path(folder, name + ".sql").read_text()
"""
BOOKS = {
    "create_books": ("", "CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT);"),
    "create_loans": ("create_books", "CREATE TABLE loans (book INTEGER REFERENCES books, due TEXT);"),
    "add_isbn": ("create_books", "ALTER TABLE books ADD COLUMN isbn TEXT;"),
    "add_reminders": ("create_loans", "CREATE TABLE reminders (loan INTEGER, sent TEXT);"),
    "index_isbn": ("add_isbn", "CREATE INDEX books_isbn ON books (isbn);"),
    "fill_shelf": ("make_shelf", "UPDATE books SET shelf = 'unsorted';"),
    "make_shelf": ("add_reminders", "ALTER TABLE books ADD COLUMN shelf TEXT;"),
    "split_titles": ("add_isbn", "ALTER TABLE books RENAME COLUMN title TO main_title;"),
}
DOWNTIME = ("split_titles", "merge_members")
MEMBERS = {
    "create_members": ("", "CREATE TABLE members (id INTEGER PRIMARY KEY, name TEXT);"),
    "create_fees": ("create_members", "CREATE TABLE fees (member INTEGER, cents INTEGER);"),
    "add_birthdays": ("create_members", "ALTER TABLE members ADD COLUMN born TEXT;"),
    "add_discounts": ("create_fees", "ALTER TABLE fees ADD COLUMN discount INTEGER;"),
    "merge_members": ("add_birthdays", "DELETE FROM members WHERE name IN (SELECT old FROM doubles);"),
}


@dataclass(frozen=True)
class _Case(Case):
    """Names in ORDER before and after, all SQL files, and the way there."""

    released: str
    sql: Mapping[str, tuple[str, str]]
    files: Sequence[str]
    """Names of the SQL files that are there."""
    before: Sequence[str]
    after: Sequence[str]
    way: Sequence[Any] = ()
    postponed: Sequence[str] = ()
    """POSTPONED afterwards."""


def _header(migration: str) -> dict[str, Any]:
    return call("sql_header", migration=migration)


def _insert(migration: str, other: str) -> dict[str, Any]:
    return call("insert_after", migration=migration, other=other)


def _move(migration: str, other: str) -> dict[str, Any]:
    return call("move_after", migration=migration, other=other)


CASES = (
    _Case("sql_order-reminders", "easy", "library/order.py", LIBRARY, "create_books", BOOKS,
          ["create_books", "create_loans", "add_reminders"], ["create_books", "create_loans"],
          ["create_books", "create_loans", "add_reminders"],
          [_header("add_reminders"), _insert("add_reminders", "create_loans")]),
    _Case("sql_order-gone", "easy", "club/migrate.py", CLUB, "create_members", MEMBERS,
          ["create_members", "create_fees"], ["create_members", "add_newsletter", "create_fees"],
          ["create_members", "create_fees"], [call("forget", migration="add_newsletter")]),
    _Case("sql_order-index", "medium", "library/order.py", LIBRARY, "create_books", BOOKS,
          ["create_books", "add_isbn", "index_isbn"], ["create_books", "index_isbn", "add_isbn"],
          ["create_books", "add_isbn", "index_isbn"], [_move("index_isbn", "add_isbn")]),
    _Case("sql_order-downtime", "medium", "library/order.py", LIBRARY, "create_books", BOOKS,
          ["create_books", "add_isbn", "split_titles"], ["create_books", "add_isbn"], ["create_books", "add_isbn"],
          [_header("split_titles"), call("postpone", migration="split_titles")], ["split_titles"]),
    _Case("sql_order-late", "hard", "club/migrate.py", CLUB, "create_fees", MEMBERS,
          ["create_members", "create_fees", "add_birthdays", "add_discounts"],
          ["create_members", "create_fees", "add_discounts"],
          ["create_members", "create_fees", "add_birthdays", "add_discounts"],
          [_header("add_birthdays"), _insert("add_birthdays", "create_fees")]),
    _Case("sql_order-history", "hard", "club/migrate.py", CLUB, "create_fees", MEMBERS,
          ["create_members", "create_fees"], ["create_members", "rename_tables", "create_fees"],
          ["create_members", "rename_tables", "create_fees"]),
    _Case("sql_order-shelf", "hard", "books/order.py", LIBRARY, "create_loans", BOOKS,
          ["create_books", "create_loans", "add_reminders", "fill_shelf", "make_shelf"],
          ["create_books", "create_loans", "add_reminders"],
          ["create_books", "create_loans", "add_reminders", "make_shelf", "fill_shelf"],
          [[_header("fill_shelf"), _header("make_shelf")], _insert("make_shelf", "add_reminders"),
           _insert("fill_shelf", "make_shelf")]),
    _Case("sql_order-doubles", "hard", "club/migrate.py", CLUB, "create_members", MEMBERS,
          ["create_members", "add_birthdays", "merge_members"], ["create_members", "add_titles", "add_birthdays"],
          ["create_members", "add_birthdays"],
          [_header("merge_members"),
           [call("postpone", migration="merge_members"), call("forget", migration="add_titles")]], ["merge_members"]),
    _Case("sql_order-discounts", "medium", "members/migrate.py", CLUB, "create_members", MEMBERS,
          ["create_members", "create_fees", "add_discounts"], ["create_members", "create_fees", "add_logo"],
          ["create_members", "create_fees", "add_discounts"],
          [_header("add_discounts"),
           [_insert("add_discounts", "create_fees"), call("forget", migration="add_logo")]]),
    _Case("sql_order-old", "hard", "library/sequence.py", LIBRARY, "add_isbn", BOOKS,
          ["create_books", "index_isbn", "add_isbn", "create_loans"], ["create_books", "index_isbn", "add_isbn"],
          ["create_books", "index_isbn", "add_isbn", "create_loans"],
          [_header("create_loans"), _insert("create_loans", "add_isbn")]),
)  # fmt: skip


def sql_order_tasks() -> Iterator[Task]:
    """Every task of the agent."""
    for case in CASES:
        folder = case.path.rpartition("/")[0]
        files = {case.path: _source(case, case.before, ())}
        files |= {f"{folder}/sql/{name}.sql": _sql(name, *case.sql[name]) for name in case.files}
        after: dict[str, str | None] = {case.path: _source(case, case.after, case.postponed)}
        yield made(case.name, case.level, files, case.path, after, [call("compare_order"), *case.way])


def _source(case: _Case, order: Sequence[str], postponed: Sequence[str]) -> str:
    text = case.source.replace("{released}", case.released)
    return text.replace("{order}", _listed(order)).replace("{postponed}", _listed(postponed))


def _listed(names: Sequence[str]) -> str:
    return "[\n" + "".join(f'    "{name}",\n' for name in names) + "]" if names else "[]"


def _sql(name: str, after: str, statement: str) -> str:
    needs = "-- needs: downtime\n" if name in DOWNTIME else ""
    return (f"-- after: {after}\n" if after else "") + needs + statement + "\n"
