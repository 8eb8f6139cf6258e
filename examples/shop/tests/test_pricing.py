"""Prices, in cents."""

from decimal import Decimal

import pytest

from shop.pricing import apply_discount, price_with_tax


def test_a_known_coupon_lowers_the_amount():
    assert apply_discount(2000, "SPRING25") == 1500


def test_an_unknown_coupon_changes_nothing():
    assert apply_discount(2000, "NOPE") == 2000


@pytest.mark.parametrize(
    ("net", "category", "gross"),
    [
        (1000, "standard", 1190),
        (1000, "reduced", 1070),
        (1000, "none", 1000),
        (Decimal("0.5"), "none", 1),
    ],
)
def test_tax_is_added_and_rounded_half_up(net, category, gross):
    assert price_with_tax(net, category) == gross


def test_an_unknown_tax_category_is_refused():
    with pytest.raises(ValueError, match="unknown tax category"):
        price_with_tax(1000, "luxury")
