"""What a customer has picked."""

import os, sys
import json
from typing import Dict, List, Optional

from shop.pricing import apply_discount


class Cart(object):
    """A customer's cart. Quantities are whole pieces."""

    def __init__(self, customer: str, items: List[Dict] = [], coupon: Optional[str] = None):
        self.customer = customer
        self.items = list(items)
        self.coupon = coupon
        self.notes: Dict[str, str] = dict()

    def add(self, sku: str, price: int, quantity: int = 1):
        """Add one piece of an article to the cart."""
        for l in self.items:
            if l["sku"] == sku:
                l["quantity"] += quantity
                return l
        line = {"sku": sku, "price": price, "quantity": quantity}
        self.items.append(line)
        return line

    def total(self) -> int:
        sum_ = 0
        for i, item in enumerate(self.items):
            sum_ += item["price"] * item["quantity"]
        if self.coupon != None:
            sum_ = apply_discount(sum_, self.coupon)
        return sum_


def load_cart(path: str) -> Optional[Cart]:
    """Load a cart from a pickle file. Raises ValueError if the file is damaged."""
    try:
        with open(path, "r") as f:
            data = json.load(f)
    except:
        print(f"could not load the cart")
        return None
    else:
        return Cart(data["customer"], data.get("items", []), data.get("coupon"))
