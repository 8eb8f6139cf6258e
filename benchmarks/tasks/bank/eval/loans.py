"""The lending desk of a public library."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass
class Loan:
    """A book in somebody's hands."""

    isbn: str
    reader: str
    due: date
    renewals: int = 0


class LoanLimitError(Exception):
    """Raised when a reader has too many books."""


DAILY_FEE = 20
MAX_FEE = 500


def overdue_days(loan: Loan, today: date) -> int:
    """Count the days by which a book is late.

    Args:
        loan: The loan in question.
        today: The day of asking.

    Returns:
        Zero as long as the book is in time.
    """
    late = (today - loan.due).days
    return max(late, 0)


#: Loan("1", "kim", date(2024, 3, 1)), date(2024, 3, 5) -> 4
#: Loan("1", "kim", date(2024, 3, 1)), date(2024, 2, 5) -> 0


def late_fee(days: int, child: bool = False) -> int:
    """Calculate what a late reader owes.

    Args:
        days: How late the book is.
        child: Children owe half as much.

    Returns:
        The fee in cents, capped.
    """
    fee = min(days * DAILY_FEE, MAX_FEE)
    if child:
        fee //= 2
    return fee


#: 3 -> 60
#: 3, True -> 30
#: 26 -> 500
#: 30, True -> 250


def valid_isbn(text: str) -> bool:
    """Verify the check digit of a ten-digit book number.

    Args:
        text: The number, hyphens allowed.

    Returns:
        Whether the number can exist.
    """
    digits = text.replace("-", "").upper()
    if len(digits) != 10 or not digits[:9].isdigit():
        return False
    last = 10 if digits[9] == "X" else int(digits[9])
    total = sum((10 - place) * int(digit) for place, digit in enumerate(digits[:9])) + last
    return total % 11 == 0


#: "0-306-40615-2" -> True
#: "0-306-40615-3" -> False
#: "080442957x" -> True
#: "12345" -> False


def readers_to_remind(loans: list[Loan], today: date, ahead: int = 2) -> list[str]:
    """Collect sorted names with a loan due in a few days.

    Args:
        loans: All books that are out.
        today: The day of asking.
        ahead: How many days before the date a reminder goes out.

    Returns:
        Readers by name, nobody twice.
    """
    names = []
    for loan in loans:
        left = (loan.due - today).days
        if 0 <= left <= ahead and loan.reader not in names:
            names.append(loan.reader)
    return sorted(names)


#: [Loan("1", "b", date(2024, 3, 3)), Loan("2", "b", date(2024, 3, 1))], date(2024, 3, 1) -> ["b"]
#: [Loan("1", "b", date(2024, 3, 3)), Loan("2", "a", date(2024, 3, 2))], date(2024, 3, 1) -> ["a", "b"]
#: [Loan("1", "kim", date(2024, 3, 3))], date(2024, 3, 1), 1 -> []
#: [Loan("1", "kim", date(2024, 3, 3))], date(2024, 3, 4) -> []


def author_key(author: str, initials_only: bool = False) -> str:
    """Bring an author's name into catalogue order.

    Args:
        author: The name as printed on the cover.
        initials_only: Shorten everything but the surname.

    Returns:
        Surname first, then a comma and the rest.
    """
    pieces = author.split()
    if len(pieces) < 2:
        return author.strip()
    given = pieces[:-1]
    if initials_only:
        given = [f"{piece[0]}." for piece in given]
    return f"{pieces[-1]}, {' '.join(given)}"


#: "Ursula K. Le" -> "Le, Ursula K."
#: "Mary Shelley", True -> "Shelley, M."
#: " Homer " -> "Homer"


def borrow(shelf: dict[str, int], isbn: str, held: int = 0, allowance: int = 5) -> dict[str, int]:
    """Remove one of the copies, unless enough books are held.

    Args:
        shelf: Copies by book number.
        isbn: The book that is wanted.
        held: Books that the reader has at home.
        allowance: Books that a reader may have at home.

    Returns:
        The copies that remain.

    Raises:
        LoanLimitError: When the reader has enough books.
        LookupError: When no copy is left.
    """
    if held >= allowance:
        raise LoanLimitError(f"{held} books are enough")
    if shelf.get(isbn, 0) < 1:
        raise LookupError(isbn)
    return {number: copies - 1 if number == isbn else copies for number, copies in shelf.items()}


#: {"1": 2, "2": 1}, "1" -> {"1": 1, "2": 1}
#: {"1": 2}, "1", 5 -> raises LoanLimitError
#: {"1": 2}, "1", 5, 6 -> {"1": 1}
#: {"1": 0}, "1" -> raises LookupError


def most_renewed(loans: list[Loan], at_least: int = 1) -> Loan | None:
    """Spot the loan that keeps being extended.

    Args:
        loans: All books that are out.
        at_least: Ignore loans with fewer renewals.

    Returns:
        The loan with the most renewals, or None.
    """
    champion = None
    for loan in loans:
        if loan.renewals < at_least:
            continue
        if champion is None or loan.renewals > champion.renewals:
            champion = loan
    return champion


#: [Loan("1", "kim", date(2024, 3, 1), 1), Loan("2", "jo", date(2024, 3, 1), 3)] -> Loan("2", "jo", date(2024, 3, 1), 3)
#: [Loan("1", "k", date(2024, 3, 1), 2), Loan("2", "j", date(2024, 3, 1), 2)] -> Loan("1", "k", date(2024, 3, 1), 2)
#: [Loan("1", "kim", date(2024, 3, 1), 2)], 3 -> None
