"""Reading the log files of a web service."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """How bad a message is."""

    INFO = 1
    WARNING = 2
    FATAL = 3


@dataclass
class Entry:
    """One message of a log."""

    seconds: int
    severity: Severity
    text: str
    host: str | None = None


PATTERN = re.compile(r"^(\d+) (INFO|WARNING|FATAL) (.*)$")


def read_entry(line: str, host: str | None = None) -> Entry:
    """Turn a line of a log into an entry.

    Args:
        line: Seconds, severity and text, with blanks between.
        host: The machine that the log comes from.

    Returns:
        The entry.

    Raises:
        ValueError: If the line has another form.
    """
    found = PATTERN.match(line.strip())
    if found is None:
        raise ValueError(f"not a log line: {line!r}")
    return Entry(int(found[1]), Severity[found[2]], found[3], host)


#: "12 INFO started" -> Entry(12, Severity.INFO, "started")
#: " 7 FATAL disk is full ", "db1" -> Entry(7, Severity.FATAL, "disk is full", "db1")
#: "started" -> raises ValueError


def worst_severity(entries: list[Entry]) -> Severity | None:
    """Find the highest severity among log entries.

    Args:
        entries: The entries to search.

    Returns:
        The highest severity, or None without entries.
    """
    worst = None
    for entry in entries:
        if worst is None or entry.severity.value > worst.value:
            worst = entry.severity
    return worst


#: [Entry(1, Severity.INFO, "a"), Entry(2, Severity.FATAL, "b"), Entry(3, Severity.WARNING, "c")] -> Severity.FATAL
#: [Entry(1, Severity.INFO, "a")] -> Severity.INFO
#: [] -> None


def messages_between(entries: list[Entry], start: int, end: int, limit: int = 100) -> list[str]:
    """Collect the texts of entries within a span of time.

    Args:
        entries: The entries to choose from.
        start: First second that counts.
        end: Last second that counts.
        limit: How many texts at most.

    Returns:
        The texts, oldest first.
    """
    chosen = [entry for entry in entries if start <= entry.seconds <= end]
    chosen.sort(key=lambda entry: entry.seconds)
    return [entry.text for entry in chosen][:limit]


#: [Entry(5, Severity.INFO, "e"), Entry(2, Severity.INFO, "b"), Entry(9, Severity.INFO, "i")], 2, 5 -> ["b", "e"]
#: [Entry(5, Severity.INFO, "e"), Entry(2, Severity.INFO, "b"), Entry(9, Severity.INFO, "i")], 3, 9 -> ["e", "i"]
#: [Entry(5, Severity.INFO, "e"), Entry(2, Severity.INFO, "b")], 0, 9, 1 -> ["b"]


def count_hosts(entries: list[Entry]) -> int:
    """Count the machines that wrote something.

    Args:
        entries: The entries to look through.

    Returns:
        How many different hosts are named.
    """
    hosts = {entry.host for entry in entries if entry.host is not None}
    return len(hosts)


#: [Entry(1, Severity.INFO, "a", "x"), Entry(2, Severity.INFO, "b", "y"), Entry(3, Severity.INFO, "c", "x")] -> 2
#: [Entry(1, Severity.INFO, "a")] -> 0


def shorten_message(text: str, width: int = 20) -> str:
    """Cut a message so that it fits into a column.

    Args:
        text: The message.
        width: Characters that the column holds.

    Returns:
        The message, with dots where it was cut.

    Raises:
        ValueError: If the column is too narrow for the dots.
    """
    if width < 4:
        raise ValueError("a column needs at least four characters")
    words = " ".join(text.split())
    if len(words) <= width:
        return words
    return words[: width - 3].rstrip() + "..."


#: "disk   is full" -> "disk is full"
#: "the disk is full again", 12 -> "the disk..."
#: "0123456789", 10 -> "0123456789"
#: "0123456789", 4 -> "0..."
#: "abc", 3 -> raises ValueError


def query_fields(query: str, separator: str = "&") -> dict[str, str]:
    """Split the query of a request into its fields.

    Args:
        query: Pairs such as `page=2`.
        separator: What stands between two pairs.

    Returns:
        The values by name; a name without a value has an empty one.
    """
    fields = {}
    for pair in query.split(separator):
        if not pair:
            continue
        name, _, value = pair.partition("=")
        fields[name] = value
    return fields


#: "page=2&size=10" -> {"page": "2", "size": "10"}
#: "debug;page=3", ";" -> {"debug": "", "page": "3"}
#: "" -> {}


def error_rate(codes: list[int]) -> float:
    """Tell which share of answers failed on the server's side.

    Args:
        codes: Status codes of all answers.

    Returns:
        A number from 0 to 1.
    """
    if not codes:
        return 0.0
    failed = [code for code in codes if code >= 500]
    return len(failed) / len(codes)


#: [200, 500, 404, 503] -> 0.5
#: [499, 500] -> 0.5
#: [] -> 0.0
