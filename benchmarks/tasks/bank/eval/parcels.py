"""Postage, addresses and the load of delivery vans."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Parcel:
    """A box with its weight in grams and its sides in centimetres."""

    code: str
    grams: int
    sides: tuple[int, int, int] = (10, 10, 10)
    fragile: bool = False


@dataclass
class Address:
    """Where a parcel goes."""

    street: str
    town: str
    country: str | None = None


class OversizeError(ValueError):
    """Raised for a box that no van takes."""


RATES = {1000: 390, 5000: 590, 20000: 990}


def postage(parcel: Parcel, insured: bool = False) -> int:
    """Determine the stamp that a parcel needs.

    Args:
        parcel: What is to be sent.
        insured: Whether its loss shall be paid for.

    Returns:
        The price in cents.

    Raises:
        OversizeError: When the parcel is too heavy.
    """
    for most, price in RATES.items():
        if parcel.grams <= most:
            extra = 250 if insured else 0
            return price + extra + (100 if parcel.fragile else 0)
    raise OversizeError(f"{parcel.grams} g is too heavy")


#: Parcel("p", 1000) -> 390
#: Parcel("p", 1001), True -> 840
#: Parcel("p", 400, (1, 1, 1), True) -> 490
#: Parcel("p", 20001) -> raises OversizeError


def girth(parcel: Parcel) -> int:
    """Measure a box around its two shorter sides, plus its length.

    Args:
        parcel: The box.

    Returns:
        Centimetres of string.
    """
    short, middle, long = sorted(parcel.sides)
    return 2 * (short + middle) + long


#: Parcel("p", 1, (30, 10, 20)) -> 90
#: Parcel("p", 1) -> 50


def load_vans(parcels: list[Parcel], capacity: int) -> list[list[str]]:
    """Distribute parcels over vans, heaviest first.

    Args:
        parcels: Everything that leaves today.
        capacity: Grams that one van carries.

    Returns:
        The codes on board of each van.

    Raises:
        OversizeError: When a parcel exceeds a whole van.
    """
    vans: list[list[str]] = []
    free: list[int] = []
    for parcel in sorted(parcels, key=lambda parcel: -parcel.grams):
        if parcel.grams > capacity:
            raise OversizeError(parcel.code)
        for number, space in enumerate(free):
            if parcel.grams <= space:
                vans[number].append(parcel.code)
                free[number] -= parcel.grams
                break
        else:
            vans.append([parcel.code])
            free.append(capacity - parcel.grams)
    return vans


#: [Parcel("a", 4), Parcel("b", 6), Parcel("c", 5)], 10 -> [["b", "a"], ["c"]]
#: [Parcel("a", 10), Parcel("b", 1)], 10 -> [["a"], ["b"]]
#: [Parcel("a", 11)], 10 -> raises OversizeError
#: [], 10 -> []


def address_lines(address: Address, recipient: str | None = None) -> list[str]:
    """Lay out an address for printing.

    Args:
        address: The destination.
        recipient: The person on the first line.

    Returns:
        The lines of the sticker, country in capitals.
    """
    lines = [] if recipient is None else [recipient]
    lines += [address.street, address.town]
    if address.country is not None:
        lines.append(address.country.upper())
    return lines


#: Address("Low Rd 1", "Ely"), "Flo" -> ["Flo", "Low Rd 1", "Ely"]
#: Address("Low Rd 1", "Ely", "Eire") -> ["Low Rd 1", "Ely", "EIRE"]


def check_code(code: str) -> bool:
    """Check the total of the digits, every other one times a factor.

    Args:
        code: Digits, the last of which is computed from the others.

    Returns:
        Whether the code was typed correctly.
    """
    if not code.isdigit() or len(code) < 2:
        return False
    total = 0
    for place, digit in enumerate(code[:-1]):
        factor = 3 if place % 2 == 0 else 1
        total += int(digit) * factor
    return (total + int(code[-1])) % 10 == 0


#: "1234" -> False
#: "1236" -> True
#: "5" -> False
#: "12a6" -> False
#: "00" -> True


def towns_served(addresses: list[Address], abroad: bool = False) -> list[str]:
    """Compile the towns of a tour.

    Args:
        addresses: Every stop of the tour.
        abroad: Whether towns in other countries are listed too.

    Returns:
        Town names without doubles, sorted.
    """
    towns = {address.town for address in addresses if abroad or address.country is None}
    return sorted(towns)


#: [Address("a", "Ely"), Address("b", "Ayr"), Address("c", "Ely")] -> ["Ayr", "Ely"]
#: [Address("a", "Ely"), Address("b", "Brest", "France")], True -> ["Brest", "Ely"]
#: [Address("b", "Brest", "France")] -> []


def delivery_window(stops: int, start: int = 8, per_stop: float = 7.5) -> tuple[int, int]:
    """Predict the hours between which a customer should wait.

    Args:
        stops: How many customers come before.
        start: The hour at which the van leaves.
        per_stop: Minutes spent at each door.

    Returns:
        The first and the last hour of waiting.

    Raises:
        ValueError: When stops are counted below zero.
    """
    if stops < 0:
        raise ValueError(f"{stops} stops cannot come before")
    arrival = start + int(stops * per_stop // 60)
    return (arrival, arrival + 2)


#: 0 -> (8, 10)
#: 16, 9 -> (11, 13)
#: 10, 8, 12.5 -> (10, 12)
#: -1 -> raises ValueError


class Van:
    """A plate with a tank of fuel and its usage."""

    def __init__(self, plate: str, tank: float, usage: float = 8.0) -> None:
        self.plate = plate
        self.tank = tank
        self.usage = usage

    def range_left(self, reserve: float | None = None) -> int:
        """Compute how far the fuel lasts.

        Args:
            reserve: Litres that must stay in the tank.

        Returns:
            Whole kilometres.
        """
        fuel = self.tank if reserve is None else self.tank - reserve
        if fuel <= 0:
            return 0
        return int(fuel / self.usage * 100)

    def drive(self, kilometres: float) -> float:
        """Take the fuel that is needed out of the tank.

        Args:
            kilometres: Length of the trip.

        Returns:
            Litres left in the tank.

        Raises:
            RuntimeError: When the tank would run dry.
        """
        needed = kilometres * self.usage / 100
        if needed > self.tank:
            raise RuntimeError(f"{self.plate} would stop on the way")
        self.tank -= needed
        return self.tank


#! Van.range_left: assert Van("x", 40.0).range_left() == 500
#! Van.range_left: assert Van("x", 40.0).range_left(8.0) == 400
#! Van.range_left: assert Van("x", 4.0).range_left(8.0) == 0
#! Van.drive: assert Van("x", 40.0).drive(100) == 32.0
#! Van.drive: assert Van("x", 8.0).drive(100) == 0.0
#! Van.drive: with pytest.raises(RuntimeError): Van("x", 8.0).drive(101)
