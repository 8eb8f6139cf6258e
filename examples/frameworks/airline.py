"""The airline of these examples: what its tools return, and what a scripted model asks for."""

from __future__ import annotations

import hashlib

CITIES = ("Lisbon", "Oslo", "Vienna", "Athens", "Dublin", "Prague")
RULES = {
    "baggage": "One bag of 23 kg is included. A second one costs 50 EUR, each further one 90 EUR.",
    "changes": "Changes are free until 24 hours before departure. Later they cost 75 EUR and the fare difference.",
    "wifi": "Wi-Fi is free on flights longer than two hours. The network is AirHarbor-WiFi.",
}


def _number(*parts: object) -> int:
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:8], 16)


def find_flights(origin: str, destination: str) -> list[dict[str, object]]:
    """Flights between two cities.

    Args:
        origin: The city of departure.
        destination: The city of arrival.
    """
    return [
        {
            "flight_id": f"AH{_number(origin, destination, index) % 9000 + 1000}",
            "origin": origin,
            "destination": destination,
            "departure": f"2026-12-{index + 1:02}T{6 + index}:40",
            "price_eur": 80 + _number(origin, destination, index) % 300,
            "seats_left": _number(destination, origin, index) % 40,
            "aircraft": ("A320", "B738", "E195")[index % 3],
        }
        for index in range(12)
    ]


def seat_map(flight_id: str) -> dict[str, object]:
    """Free seats of a flight.

    Args:
        flight_id: The id of the flight, such as AH1234.
    """
    rows = range(1, 31)
    free = {f"row {row}": [seat for seat in "ABCDEF" if _number(flight_id, row, seat) % 4 == 0] for row in rows}
    return {"flight_id": flight_id, "map_id": f"MAP-{_number(flight_id) % 100000:05}", "free": free}


def book_seat(flight_id: str, seat: str, map_id: str) -> dict[str, object]:
    """Book a seat.

    Args:
        flight_id: The id of the flight.
        seat: The seat, such as 12C.
        map_id: The id of the seat map that showed it.
    """
    return {"booking_id": f"BK-{_number(flight_id, seat, map_id) % 10**7:07}", "flight_id": flight_id, "seat": seat}


def rules(topic: str) -> str:
    """The airline's rules.

    Args:
        topic: One of baggage, changes, wifi.
    """
    return RULES.get(topic, f"There is no rule about {topic}: ask for one of {', '.join(RULES)}")


TOOLS = (find_flights, seat_map, book_seat, rules)
SYSTEM = "You are an agent of the airline AirHarbor. Find what the customer needs, and book it."
QUESTION = (
    "I am in Lisbon. Book me seat 12C, or the next free one, on the cheapest flight to each of Oslo, Vienna and Athens."
)


def script() -> list[tuple[str, dict[str, str]] | str]:
    """What a model with good sense does: three flights found, mapped and booked, then an answer."""
    steps: list[tuple[str, dict[str, str]] | str] = [("rules", {"topic": "baggage"})]
    found = {}
    for city in CITIES[1:4]:
        steps.append(("find_flights", {"origin": CITIES[0], "destination": city}))
        found[city] = str(
            min(find_flights(CITIES[0], city), key=lambda flight: int(str(flight["price_eur"])))["flight_id"]
        )
    steps += [("seat_map", {"flight_id": flight_id}) for flight_id in found.values()]
    for flight_id in found.values():
        shown = seat_map(flight_id)
        steps.append(("book_seat", {"flight_id": flight_id, "seat": "12C", "map_id": str(shown["map_id"])}))
    steps.append(("rules", {"topic": "changes"}))
    return [*steps, "Three seats are booked: " + ", ".join(found.values())]
