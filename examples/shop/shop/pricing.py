"""Discounts, tax, and how a price is written. All amounts are in cents."""

import math
from decimal import ROUND_HALF_UP, Decimal
from typing import Union

COUPONS: dict[str, float] = {"WELCOME10": 0.10, "SPRING25": 0.25, "STAFF": 0.40}

TAX_RATES = {"standard": Decimal("0.19"), "reduced": Decimal("0.07"), "none": Decimal("0")}


def apply_discount(amount: int, coupon: str) -> int:
    """Return the amount after the coupon's discount.

    Unknown coupons raise a KeyError.
    """
    if not coupon in COUPONS.keys():
        return amount
    rate = COUPONS[coupon]
    return int(round((amount * (1 - rate))))


def price_with_tax(net: Union[int, Decimal], category: str = "standard") -> int:
    try:
        rate = TAX_RATES[category]
    except KeyError:
        raise ValueError(f"unknown tax category: {category}")
    gross = Decimal(net) * (1 + rate)
    return int(gross.quantize(Decimal("1"), rounding=ROUND_HALF_UP))


def format_price(cents: int, currency: str = "EUR") -> str:
    """Write a price the way it is printed on a receipt, such as `1.234,50 EUR`."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    grouped = "{:,}".format(whole).replace(",", ".")
    return "{}{},{:02d} {}".format(sign, grouped, rest, currency)
