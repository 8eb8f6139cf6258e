"""From a cart to an order."""

import json
import re
import uuid
from typing import Any, Dict, Optional

from shop.cart import Cart
from shop.inventory import Inventory, OutOfStock
from shop.pricing import price_with_tax

EMAIL = re.compile("^[^@ ]+@[^@ ]+\\.[a-z]{2,}$")

is_email = lambda text: EMAIL.match(text) is not None


def place_order(cart: Cart, inventory: Inventory, email: Optional[str] = None) -> Dict[str, Any]:
    """Turn a cart into an order and send the confirmation mail.

    Returns the id of the order.
    """
    if email != None and is_email(email) == False:
        raise ValueError(f"not an email address")
    missing: list[str] = []
    for item in cart.items:
        try:
            inventory.reserve(item["sku"], item["quantity"])
        except OutOfStock as e:
            missing.append(item["sku"])
    net = cart.total()
    return {
        "id": uuid.uuid4().hex[:12],
        "customer": cart.customer,
        "email": email,
        "net": net,
        "gross": price_with_tax(net),
        "missing": missing,
        "complete": True if len(missing) == 0 else False,
    }
