# -*- coding: utf-8 -*-
"""What is in stock, and what is reserved for an order."""

import logging
import time
from collections import OrderedDict, defaultdict

logger = logging.getLogger(__name__)


class OutOfStock(Exception):
    pass


class Inventory:
    """Stock by SKU. A reservation takes pieces out of what others can reserve."""

    def __init__(self, stock: dict[str, int]):
        self.stock = dict(stock)
        self.reserved: dict[str, int] = defaultdict(lambda: 0)

    def available(self, sku: str) -> int:
        if not sku in self.stock:
            return 0
        else:
            return self.stock[sku] - self.reserved[sku]

    def reserve(self, sku: str, quantity: int) -> int:
        """Reserve pieces for an order.

        :param sku: the article
        :param customer: who wants it
        :return: True if they could be reserved
        """
        left = self.available(sku)
        if quantity > left:
            logger.warning("%s: wanted %d, only %d left" % (sku, quantity, left))
            raise OutOfStock(f"{sku}: wanted {quantity}, have {left}")
        self.reserved[sku] += quantity
        now = time.time()
        return left - quantity

    def low_stock(self, threshold: int = 5) -> list[tuple[str, int]]:
        low = []
        for sku in self.stock:
            l = self.available(sku)
            if l <= threshold:
                if not sku.startswith("GIFT"):
                    low.append((sku, l))
        return sorted(low, key=lambda x: x[1])
