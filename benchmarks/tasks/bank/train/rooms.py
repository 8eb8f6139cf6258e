"""Bookings of meeting rooms, in whole hours of one day."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Booking:
    """A room that somebody has for some hours."""

    room: str
    begin: int
    hours: int
    guest: str = "house"


class RoomTakenError(Exception):
    """Raised where two bookings would meet."""


OPEN_FROM = 8
OPEN_UNTIL = 20


def booking_end(booking: Booking) -> int:
    """Work out the hour at which a booking is over.

    Args:
        booking: The booking.

    Returns:
        The first hour in which the room is free again.
    """
    end = booking.begin + booking.hours
    return min(end, OPEN_UNTIL)


#: Booking("blue", 9, 3) -> 12
#: Booking("blue", 18, 5) -> 20


def bookings_clash(first: Booking, second: Booking) -> bool:
    """Tell whether two bookings want one room at one time.

    Args:
        first: A booking.
        second: Another one.

    Returns:
        True if they cannot both be kept.
    """
    if first.room != second.room:
        return False
    return first.begin < second.begin + second.hours and second.begin < first.begin + first.hours


#: Booking("blue", 9, 3), Booking("blue", 11, 1) -> True
#: Booking("blue", 9, 2), Booking("blue", 11, 1) -> False
#: Booking("blue", 13, 2), Booking("blue", 11, 2) -> False
#: Booking("blue", 9, 3), Booking("red", 9, 3) -> False


def free_hours(room: str, bookings: list[Booking], first: int = OPEN_FROM, last: int = OPEN_UNTIL) -> list[int]:
    """List the hours in which nobody has a room.

    Args:
        room: The room's name.
        bookings: All bookings of the day.
        first: Where the day begins.
        last: Where the day ends.

    Returns:
        The hours, earliest first.
    """
    taken = set()
    for booking in bookings:
        if booking.room == room:
            taken.update(range(booking.begin, booking.begin + booking.hours))
    return [hour for hour in range(first, last) if hour not in taken]


#: "blue", [Booking("blue", 9, 2), Booking("red", 11, 2)], 8, 13 -> [8, 11, 12]
#: "green", [], 18 -> [18, 19]
#: "blue", [Booking("blue", 8, 12)] -> []


def add_booking(bookings: list[Booking], wanted: Booking) -> list[Booking]:
    """Give the bookings with a new one among them.

    Args:
        bookings: What is booked already.
        wanted: What is to be added.

    Returns:
        All bookings, earliest first.

    Raises:
        RoomTakenError: If the room is not free at that time.
    """
    for booking in bookings:
        same_room = booking.room == wanted.room
        if same_room and booking.begin < wanted.begin + wanted.hours and wanted.begin < booking.begin + booking.hours:
            raise RoomTakenError(f"{wanted.room} is taken by {booking.guest}")
    return sorted([*bookings, wanted], key=lambda booking: booking.begin)


#: [Booking("blue", 12, 1)], Booking("blue", 9, 3) -> [Booking("blue", 9, 3), Booking("blue", 12, 1)]
#: [Booking("blue", 12, 1)], Booking("blue", 11, 2) -> raises RoomTakenError
#: [Booking("red", 12, 2)], Booking("blue", 12, 2) -> [Booking("red", 12, 2), Booking("blue", 12, 2)]


def price_of_stay(hours: int, rate: float, member: bool = False) -> float:
    """Work out what a booking costs.

    Args:
        hours: How long the room is used.
        rate: The price of an hour.
        member: Whether the guest has the members' discount.

    Returns:
        The price, rounded to cents.

    Raises:
        ValueError: If the time is not at least an hour.
    """
    if hours < 1:
        raise ValueError("a booking takes at least an hour")
    price = hours * rate
    if hours >= 6:
        price *= 0.9
    if member:
        price -= 5
    return round(max(price, 0), 2)


#: 2, 10.5 -> 21.0
#: 6, 10.0 -> 54.0
#: 5, 10.0, True -> 45.0
#: 1, 3.0, True -> 0
#: 0, 10.0 -> raises ValueError


def parse_hour(text: str) -> int:
    """Read an hour such as `9`, `9:00` or `3pm`.

    Args:
        text: What a guest typed.

    Returns:
        The hour, from 0 to 23.

    Raises:
        ValueError: If it is no hour.
    """
    clean = text.strip().lower()
    offset = 12 if clean.endswith("pm") else 0
    digits = clean.removesuffix("pm").removesuffix("am").partition(":")[0]
    if not digits.isdigit() or int(digits) + offset > 23:
        raise ValueError(f"not an hour: {text!r}")
    return int(digits) + offset


#: " 9 " -> 9
#: "9:00" -> 9
#: "3PM" -> 15
#: "24" -> raises ValueError
#: "noon" -> raises ValueError


def busiest_room(bookings: list[Booking], fallback: str | None = None) -> str | None:
    """Find the room that is used for the most hours.

    Args:
        bookings: All bookings of the day.
        fallback: What to answer on a day without any.

    Returns:
        The room's name; of equals, the one that comes first in the alphabet.
    """
    if not bookings:
        return fallback
    hours: dict[str, int] = {}
    for booking in bookings:
        hours[booking.room] = hours.get(booking.room, 0) + booking.hours
    most = max(hours.values())
    return min(room for room in hours if hours[room] == most)


#: [Booking("red", 9, 2), Booking("blue", 9, 1), Booking("blue", 12, 3)] -> "blue"
#: [Booking("red", 9, 2), Booking("blue", 9, 2)] -> "blue"
#: [], "hall" -> "hall"
