"""A shop, as people write one."""
import json
from functools import cached_property
from typing import Iterator, overload


class Order:
    items: list[str]
    paid: bool = False

    def __init__(self, items, *, paid=False):
        self.items = items
        self.paid = paid

    def total(self, prices: dict[str, float], tax: float = 0.19) -> float:
        # we don't round here
        if not prices:
            raise ValueError("no prices")
        return sum(prices[item] for item in self.items) * (1 + tax)

    @cached_property
    def size(self) -> int:
        return len(self.items)

    @property
    def name(self): return self._name

    @name.setter
    def name(self, value): self._name = value

    def is_paid(self) -> bool: return self.paid  # always known

    def close(self) -> None:
        self.items.clear()

    @staticmethod
    def parse(text: str, /) -> "Order":
        return Order(json.loads(text))


class EmptyOrderError(ValueError):
    pass


@overload
def load(path: str) -> Order: ...
@overload
def load(path: bytes) -> Order: ...
def load(path):
    return Order.parse(path)


async def fetch_all(urls: list[str], *args: int, retries: int = 3, verbose: bool = False, **options) -> None:
    """Fetch everything.

    It does so in order, and
    keeps what it got.

    Args:
        urls: Where to look.
            One after the other.
        timeout (float): How long to wait.

    Returns:
        Nothing.

    Example:
        >>> fetch_all([])
    """
    def once(): 'Try once.'; return 1
    once()


def pages(count: int) -> Iterator[int]:
    r'''Yields page numbers, such as \d.'''
    yield from range(count)


def größe(é: str = "ñ") -> int: return len(é)


def main(): fetch_all([])
