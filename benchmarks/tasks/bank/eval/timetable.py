"""Departures of a bus company, in minutes after midnight."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import pairwise


class DayKind(Enum):
    """Which plan is in force."""

    WORKDAY = "workday"
    WEEKEND = "weekend"


@dataclass
class Departure:
    """A bus that leaves a stop."""

    line: str
    minute: int
    stop: str
    delay: int = 0
    days: DayKind = DayKind.WORKDAY


MINUTES_OF_DAY = 24 * 60


def clock_text(minute: int, short: bool = False) -> str:
    """Show a minute of the day the way station clocks do.

    Args:
        minute: Minutes since midnight; a later day wraps around.
        short: Leave the zero before a single hour away.

    Returns:
        Something like `07:45`.
    """
    hours, minutes = divmod(minute % MINUTES_OF_DAY, 60)
    if short:
        return f"{hours}:{minutes:02d}"
    return f"{hours:02d}:{minutes:02d}"


#: 465 -> "07:45"
#: 465, True -> "7:45"
#: 1500 -> "01:00"


def minute_of(clock: str) -> int:
    """Convert a time of day into minutes since midnight.

    Args:
        clock: Hours and minutes around a colon.

    Returns:
        The minute of the day.

    Raises:
        ValueError: When the colon is missing or the hour does not exist.
    """
    hours, colon, minutes = clock.partition(":")
    if not colon or not hours.isdigit() or not minutes.isdigit():
        raise ValueError(f"unreadable time {clock!r}")
    result = int(hours) * 60 + int(minutes)
    if result >= MINUTES_OF_DAY:
        raise ValueError(f"no such time: {clock}")
    return result


#: "07:45" -> 465
#: "0:05" -> 5
#: "24:00" -> raises ValueError
#: "745" -> raises ValueError


def next_departure(plan: list[Departure], after: int, line: str | None = None) -> Departure | None:
    """Pick the bus that a traveller can still catch.

    Args:
        plan: Every departure of the day.
        after: The minute from which on the traveller waits.
        line: The only line that will do, if there is one.

    Returns:
        The earliest fitting departure, delays included; None late at night.
    """
    reachable = []
    for departure in plan:
        if line is not None and departure.line != line:
            continue
        if departure.minute + departure.delay >= after:
            reachable.append(departure)
    if not reachable:
        return None
    return min(reachable, key=lambda departure: departure.minute + departure.delay)


#: [Departure("7", 60, "dock"), Departure("9", 50, "dock")], 45 -> Departure("9", 50, "dock")
#: [Departure("7", 60, "dock"), Departure("9", 50, "dock")], 45, "7" -> Departure("7", 60, "dock")
#: [Departure("7", 60, "dock", 5)], 65 -> Departure("7", 60, "dock", 5)
#: [Departure("7", 60, "dock")], 61 -> None


def headway(minutes: list[int]) -> float:
    """Average the gaps between buses.

    Args:
        minutes: When buses leave, in any order.

    Returns:
        The mean gap in minutes; zero for fewer than two buses.
    """
    ordered = sorted(minutes)
    gaps = [later - earlier for earlier, later in pairwise(ordered)]
    if not gaps:
        return 0.0
    return sum(gaps) / len(gaps)


#: [30, 10, 0] -> 15.0
#: [5] -> 0.0
#: [0, 20, 25, 60] -> 20.0


def delayed_lines(plan: list[Departure], tolerance: int = 3) -> set[str]:
    """Name the lines that run late.

    Args:
        plan: The departures to examine.
        tolerance: Minutes of delay that nobody minds.

    Returns:
        Each late line once.
    """
    return {departure.line for departure in plan if departure.delay > tolerance}


#: [Departure("7", 60, "dock", 4), Departure("7", 90, "dock", 9), Departure("9", 50, "dock", 3)] -> {"7"}
#: [Departure("7", 60, "dock", 4)], 4 -> set()
#: [], 0 -> set()


def plan_for(departures: list[Departure], days: DayKind, stop: str | None = None) -> list[str]:
    """List the minute and the line of each departure, sorted.

    Args:
        departures: The whole plan.
        days: The kind of day in question.
        stop: Restrict the board to a single stop.

    Returns:
        Rows of time and line in travelling order.
    """
    rows = []
    for departure in sorted(departures, key=lambda departure: departure.minute):
        if departure.days is not days:
            continue
        if stop is None or departure.stop == stop:
            rows.append(f"{departure.minute // 60}:{departure.minute % 60:02d} {departure.line}")
    return rows


#: [Departure("9", 125, "dock"), Departure("7", 61, "mill")], DayKind.WORKDAY -> ["1:01 7", "2:05 9"]
#: [Departure("9", 125, "dock"), Departure("7", 61, "mill")], DayKind.WORKDAY, "dock" -> ["2:05 9"]
#: [Departure("9", 125, "dock")], DayKind.WEEKEND -> []


class Driver:
    """Somebody at the wheel, with the minutes driven so far."""

    def __init__(self, badge: str, allowed: int = 540) -> None:
        self.badge = badge
        self.allowed = allowed
        self.driven = 0

    def take_tour(self, duration: int) -> bool:
        """Add to the minutes driven unless more than allowed.

        Args:
            duration: How many minutes the tour lasts.

        Returns:
            Whether the tour was taken.
        """
        if self.driven + duration > self.allowed:
            return False
        self.driven += duration
        return True

    def rest_needed(self, pause: int = 45) -> int:
        """Compute the break that is due.

        Args:
            pause: Length of one break.

        Returns:
            Break minutes after each four and a half hours at the wheel.
        """
        return self.driven // 270 * pause


#! Driver.take_tour: assert Driver("k", 60).take_tour(60) is True
#! Driver.take_tour: assert Driver("k", 60).take_tour(61) is False
#! Driver.take_tour: ann = Driver("k", 60); ann.take_tour(40); assert (ann.take_tour(30), ann.driven) == (False, 40)
#! Driver.rest_needed: eve = Driver("k", 999); eve.take_tour(600); assert eve.rest_needed() == 90
#! Driver.rest_needed: eve = Driver("k", 999); eve.take_tour(269); assert eve.rest_needed(10) == 0
