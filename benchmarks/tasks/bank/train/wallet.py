"""Money in whole cents, as a cash desk needs it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Currency(Enum):
    """What an amount is counted in."""

    EUR = "EUR"
    USD = "USD"


@dataclass(frozen=True)
class Money:
    """An amount of one currency."""

    cents: int
    currency: Currency = Currency.EUR


class CurrencyMismatchError(Exception):
    """Raised where two currencies meet that should not."""


def add_amounts(amounts: list[Money], currency: Currency = Currency.EUR) -> Money:
    """Sum up amounts of one currency.

    Args:
        amounts: What to add.
        currency: What all of them must be counted in.

    Returns:
        The sum.

    Raises:
        CurrencyMismatchError: If an amount has another currency.
    """
    total = 0
    for amount in amounts:
        if amount.currency is not currency:
            raise CurrencyMismatchError(f"{amount.currency.value} among {currency.value}")
        total += amount.cents
    return Money(total, currency)


#: [Money(150), Money(250)] -> Money(400)
#: [Money(5, Currency.USD)], Currency.USD -> Money(5, Currency.USD)
#: [Money(5, Currency.USD)] -> raises CurrencyMismatchError
#: [] -> Money(0)


def format_money(money: Money, symbol: str | None = None) -> str:
    """Write an amount for a receipt.

    Args:
        money: The amount.
        symbol: What stands before it instead of the currency's code.

    Returns:
        Units and cents, with a minus sign where money is owed.
    """
    sign = "-" if money.cents < 0 else ""
    units, cents = divmod(abs(money.cents), 100)
    if symbol is None:
        symbol = f"{money.currency.value} "
    return f"{sign}{symbol}{units}.{cents:02d}"


#: Money(1205) -> "EUR 12.05"
#: Money(-50), "$" -> "-$0.50"
#: Money(0, Currency.USD) -> "USD 0.00"


def change_coins(cents: int, coins: list[int] | None = None) -> dict[int, int]:
    """Choose coins for an amount, the largest first.

    Args:
        cents: The amount to pay out.
        coins: The values that there are; the usual ones if left out.

    Returns:
        How many coins of which value.

    Raises:
        ValueError: If the coins cannot make up the amount.
    """
    if coins is None:
        coins = [200, 100, 50, 20, 10, 5, 2, 1]
    chosen: dict[int, int] = {}
    rest = cents
    for coin in sorted(coins, reverse=True):
        number, rest = divmod(rest, coin)
        if number > 0:
            chosen[coin] = number
    if rest != 0:
        raise ValueError(f"{cents} cannot be paid with these coins")
    return chosen


#: 275 -> {200: 1, 50: 1, 20: 1, 5: 1}
#: 30, [10, 25] -> raises ValueError
#: 50, [10, 20] -> {20: 2, 10: 1}
#: 0 -> {}


def split_bill(cents: int, people: int) -> list[int]:
    """Share a bill so that nobody pays more than a cent too much.

    Args:
        cents: What the bill says.
        people: How many share it.

    Returns:
        What each of them pays, the larger shares first.

    Raises:
        ValueError: If nobody is there to pay.
    """
    if people < 1:
        raise ValueError("a bill needs somebody to pay it")
    share, extra = divmod(cents, people)
    return [share + 1 if index < extra else share for index in range(people)]


#: 100, 3 -> [34, 33, 33]
#: 90, 3 -> [30, 30, 30]
#: 100, 0 -> raises ValueError


def parse_amount(text: str, currency: Currency = Currency.EUR) -> Money:
    """Read an amount such as `12.50` or `1,200`.

    Args:
        text: What a customer typed.
        currency: What it is counted in.

    Returns:
        The amount.

    Raises:
        ValueError: If it is no amount.
    """
    units, _, cents = text.strip().replace(",", "").partition(".")
    if not units.isdigit() or (cents and not cents.isdigit()):
        raise ValueError(f"not an amount: {text!r}")
    return Money(int(units) * 100 + int(cents.ljust(2, "0")[:2]), currency)


#: "12.5" -> Money(1250)
#: " 1,200 ", Currency.USD -> Money(120000, Currency.USD)
#: "0.07" -> Money(7)
#: "twelve" -> raises ValueError


def discount_steps(cents: int, steps: dict[int, int]) -> int:
    """Find the price after a discount that grows with the amount.

    Args:
        cents: The amount before.
        steps: Percent of discount by the amount from which it is given.

    Returns:
        The amount after the best discount that is reached.
    """
    percent = 0
    for amount in sorted(steps):
        if cents >= amount:
            percent = max(percent, steps[amount])
    return cents - cents * percent // 100


#: 1000, {500: 5, 1000: 10} -> 900
#: 999, {500: 5, 1000: 10} -> 950
#: 400, {500: 5} -> 400


def loyalty_points(amounts: list[int], bonus: bool = False) -> int:
    """Work out the points that a customer earned.

    Args:
        amounts: What was paid each time, in cents.
        bonus: Whether points count twice today.

    Returns:
        One point for each full unit paid.
    """
    points = sum(amount // 100 for amount in amounts if amount > 0)
    return points * 2 if bonus else points


#: [250, 199, -300] -> 3
#: [250, 100], True -> 6
#: [] -> 0
