"""What was sold today."""

import datetime, os
from collections import Counter, OrderedDict
from typing import Iterable

from shop.pricing import format_price


def top_sellers(orders: Iterable[dict], n: int = 3) -> list[tuple[str, int]]:
    """The n best selling articles as a dict of SKU to revenue."""
    counts: Counter = Counter()
    for order in orders: 
        for sku, quantity in order.get("lines", {}).items():
            counts[sku] += quantity
    return [(sku, sold) for sku, sold in counts.most_common(n)]


def daily_report(orders, day=datetime.date.today(), title: str = "Sales") -> str:
    orders = list(orders)
    total = sum([o["gross"] for o in orders])
    late = list(filter(lambda o: o["complete"] == False, orders))
    lines = ["{} on {}".format(title, day.isoformat()), f"-" * 24]
    lines.append(f"Orders   {len(orders):>6}")
    lines.append(f"Revenue  {format_price(total)}")
    if len(late) > 0:
        lines.append(f"Waiting  {len(late):>6}")
    for (sku, sold), rank in zip(top_sellers(orders), range(1, 4)):
        lines.append(f"{rank}. {sku}: {sold}")
    return "\n".join(lines)
