"""A shop, as people write one."""
import json
from functools import cached_property
from typing import Iterator, overload


class Order:
    """An order with `items` and `paid`."""

    items: list[str]
    paid: bool = False

    def __init__(self, items, *, paid=False):
        """Set up a new `Order` from `items` and `paid`.

        Args:
            items: The items.
            paid: Flag for paid. Defaults to False.
        """
        self.items = items
        self.paid = paid

    def total(self, prices: dict[str, float], tax: float = 0.19) -> float:
        """Return the total of `prices` and `tax`.

        Args:
            prices: The prices.
            tax: The tax. Defaults to 0.19.

        Returns:
            A value of type `float`.

        Raises:
            ValueError: Raised in the body.
        """
        # we don't round here
        if not prices:
            raise ValueError("no prices")
        return sum(prices[item] for item in self.items) * (1 + tax)

    @cached_property
    def size(self) -> int:
        """Return the size of this `Order`."""
        return len(self.items)

    @property
    def name(self):
        """Return the name of this `Order`."""
        return self._name

    @name.setter
    def name(self, value): self._name = value

    def is_paid(self) -> bool:
        """Tell whether this `Order` is paid.

        Returns:
            `True` if so, else `False`.
        """
        return self.paid  # always known

    def close(self) -> None:
        """Close this `Order`."""
        self.items.clear()

    @staticmethod
    def parse(text: str, /) -> "Order":
        """Parse `text`.

        Args:
            text: The text.

        Returns:
            A value of type `Order`.
        """
        return Order(json.loads(text))


class EmptyOrderError(ValueError):
    """A `ValueError` about empty order."""

    pass


@overload
def load(path: str) -> Order: ...
@overload
def load(path: bytes) -> Order: ...
def load(path):
    """Load `path`.

    Args:
        path: The path.

    Returns:
        The result.
    """
    return Order.parse(path)


async def fetch_all(urls: list[str], *args: int, retries: int = 3, verbose: bool = False, **options) -> None:
    """Fetch everything.

    It does so in order, and
    keeps what it got.

    Args:
        urls: Where to look.
            One after the other.
        retries: The retries. Defaults to 3.
        verbose: Flag for verbose. Defaults to False.

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


def größe(é: str = "ñ") -> int:
    """Return the größe of `é`.

    Args:
        é: The é. Defaults to "ñ".

    Returns:
        A value of type `int`.
    """
    return len(é)


def main():
    """Run main by calling `fetch_all`."""
    fetch_all([])
