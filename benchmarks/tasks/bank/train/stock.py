"""What lies on the shelves of a small warehouse."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Shelf(Enum):
    """Where a product is kept."""

    COLD = "cold"
    DRY = "dry"
    BULK = "bulk"


@dataclass
class Product:
    """One article and how many pieces of it are there."""

    sku: str
    pieces: int
    shelf: Shelf = Shelf.DRY
    supplier: str | None = None


LOW_MARK = 5


def count_pieces(products: list[Product], shelf: Shelf | None = None) -> int:
    """Add up the pieces of all products.

    Args:
        products: The articles to look at.
        shelf: Count only what is kept there; everything if left out.

    Returns:
        The number of pieces.
    """
    total = 0
    for product in products:
        if shelf is None or product.shelf == shelf:
            total += product.pieces
    return total


#: [Product("a", 3), Product("b", 4, Shelf.COLD)] -> 7
#: [Product("a", 3), Product("b", 4, Shelf.COLD)], Shelf.COLD -> 4
#: [] -> 0


def needs_reorder(pieces: int, sold_per_day: int, delivery_days: int = 3) -> bool:
    """Tell whether the stock runs out before a delivery could arrive.

    Args:
        pieces: What is on the shelf now.
        sold_per_day: How many are sold on a usual day.
        delivery_days: How long the supplier takes.

    Returns:
        True if it is time to order.

    Raises:
        ValueError: If a number is negative.
    """
    if pieces < 0 or sold_per_day < 0:
        raise ValueError("stock numbers cannot be negative")
    remaining = pieces - sold_per_day * delivery_days
    return remaining <= LOW_MARK


#: 20, 2 -> False
#: 11, 2 -> True
#: 20, 2, 8 -> True
#: -1, 2 -> raises ValueError


def split_by_shelf(products: list[Product]) -> dict[str, list[str]]:
    """Group article numbers by the shelf they lie on.

    Args:
        products: The articles to group.

    Returns:
        Article numbers by the name of their shelf, in order.
    """
    groups: dict[str, list[str]] = {}
    for product in products:
        place = product.shelf.value
        if place not in groups:
            groups[place] = []
        groups[place].append(product.sku)
    return groups


#: [Product("x", 1), Product("y", 2, Shelf.BULK), Product("z", 0)] -> {"dry": ["x", "z"], "bulk": ["y"]}
#: [] -> {}


def parse_stock_line(line: str) -> Product:
    """Read a product from a line of a supplier's list.

    Args:
        line: Article number, pieces and shelf, with semicolons between.

    Returns:
        The product that the line describes.

    Raises:
        ValueError: If the line has too few fields or no number.
    """
    fields = [field.strip() for field in line.split(";")]
    if len(fields) < 2:
        raise ValueError(f"too few fields in {line!r}")
    try:
        pieces = int(fields[1])
    except ValueError as error:
        raise ValueError(f"no number of pieces in {line!r}") from error
    shelf = Shelf(fields[2]) if len(fields) > 2 else Shelf.DRY
    return Product(fields[0], pieces, shelf)


#: "bolt ; 12" -> Product("bolt", 12, Shelf.DRY)
#: "milk;4;cold" -> Product("milk", 4, Shelf.COLD)
#: "bolt" -> raises ValueError
#: "bolt;many" -> raises ValueError


def pick_list(wanted: dict[str, int], available: dict[str, int]) -> list[str]:
    """List what can be picked for an order, one line for each article.

    Args:
        wanted: Pieces by article number, as ordered.
        available: Pieces by article number, as counted.

    Returns:
        Lines such as `3 x bolt`, sorted by article.
    """
    lines = []
    for sku in sorted(wanted):
        pieces = min(wanted[sku], available.get(sku, 0))
        if pieces > 0:
            lines.append(f"{pieces} x {sku}")
    return lines


#: {"nut": 4, "bolt": 3}, {"bolt": 9, "nut": 1} -> ["3 x bolt", "1 x nut"]
#: {"nut": 4}, {} -> []


class Bin:
    """A box that holds pieces of one article, up to a limit."""

    def __init__(self, sku: str, limit: int = 40) -> None:
        self.sku = sku
        self.limit = limit
        self.pieces = 0

    def put(self, pieces: int) -> int:
        """Fill the box as far as it goes.

        Args:
            pieces: How many to put in.

        Returns:
            How many did not fit.
        """
        space = self.limit - self.pieces
        stored = min(space, pieces)
        self.pieces += stored
        return pieces - stored

    def label(self, prefix: str | None = None) -> str:
        """Build the text on the front of the box.

        Args:
            prefix: What stands before the article number, if anything.

        Returns:
            The label in capital letters.
        """
        if prefix is None:
            return self.sku.upper()
        return f"{prefix}-{self.sku}".upper()


#! Bin.put: assert Bin("nut", 10).put(4) == 0
#! Bin.put: assert Bin("nut", 10).put(14) == 4
#! Bin.put: box = Bin("nut", 10); box.put(7); assert (box.put(5), box.pieces) == (2, 10)
#! Bin.label: assert Bin("nut").label() == "NUT"
#! Bin.label: assert Bin("nut").label("a") == "A-NUT"
