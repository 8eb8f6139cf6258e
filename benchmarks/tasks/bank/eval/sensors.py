"""Readings of thermometers and gauges in a greenhouse."""

from __future__ import annotations

import statistics
from dataclasses import dataclass


@dataclass
class Reading:
    """A value of a probe, valid by default."""

    probe: str
    value: float
    valid: bool = True


FROST = 0.0
MAX_STEP = 8.0


def mean_value(readings: list[Reading], probe: str | None = None) -> float | None:
    """Average the trustworthy readings.

    Args:
        readings: Everything that was measured.
        probe: Use this probe alone.

    Returns:
        The mean, or None where nothing can be trusted.
    """
    values = [reading.value for reading in readings if reading.valid and (probe is None or reading.probe == probe)]
    if not values:
        return None
    return statistics.fmean(values)


#: [Reading("n", 2.0), Reading("s", 4.0), Reading("n", 90.0, False)] -> 3.0
#: [Reading("n", 2.0), Reading("s", 4.0)], "s" -> 4.0
#: [Reading("n", 2.0, False)] -> None


def spikes(values: list[float], step: float = MAX_STEP) -> list[int]:
    """Locate sudden jumps in a series.

    Args:
        values: The series, oldest value first.
        step: The largest believable change.

    Returns:
        Positions whose value is too far from the one before.
    """
    positions = range(1, len(values))
    return [place for place in positions if abs(values[place] - values[place - 1]) > step]


#: [1.0, 9.0, 18.0, 17.0] -> [2]
#: [5.0, 1.0, 5.0], 3.5 -> [1, 2]
#: [4.0] -> []


def to_fahrenheit(celsius: float, digits: int = 1) -> float:
    """Convert degrees that are not below absolute zero.

    Args:
        celsius: The temperature as measured.
        digits: Digits to round to.

    Returns:
        The temperature in degrees Fahrenheit.

    Raises:
        ValueError: When it is colder than physics allows.
    """
    if celsius < -273.15:
        raise ValueError(f"{celsius} is below absolute zero")
    return round(celsius * 9 / 5 + 32, digits)


#: 100 -> 212.0
#: 36.66, 2 -> 97.99
#: -300 -> raises ValueError
#: -273.15 -> -459.7


def frost_warning(forecast: dict[str, float], margin: float = 2.0) -> list[str]:
    """Choose the nights on which the heating must run.

    Args:
        forecast: The lowest temperature by night.
        margin: Degrees above frost that are still too risky.

    Returns:
        The risky nights, coldest first.
    """
    risky = {night: low for night, low in forecast.items() if low <= FROST + margin}
    return sorted(risky, key=lambda night: risky[night])


#: {"mon": 1.0, "tue": -4.0, "wed": 2.0, "thu": 2.1} -> ["tue", "mon", "wed"]
#: {"mon": 1.0}, 0.5 -> []
#: {} -> []


def smooth(values: list[float], window: int = 3) -> list[float]:
    """Flatten a series by a moving average.

    Args:
        values: The series, oldest value first.
        window: How many neighbours are averaged.

    Returns:
        The flattened series, shorter by the window less one.

    Raises:
        ValueError: When the window has no width.
    """
    if window < 1:
        raise ValueError("a window spans one value or more")
    starts = range(len(values) - window + 1)
    return [sum(values[start : start + window]) / window for start in starts]


#: [1.0, 2.0, 6.0, 4.0] -> [3.0, 4.0]
#: [1.0, 3.0, 5.0], 2 -> [2.0, 4.0]
#: [1.0], 0 -> raises ValueError
#: [1.0, 2.0], 3 -> []


def merge_probes(left: list[Reading], right: list[Reading], prefer: str | None = None) -> dict[str, float]:
    """Unite two rounds of readings into one table.

    Args:
        left: The first round.
        right: The second round, which wins.
        prefer: A probe whose first value is kept.

    Returns:
        The newest value of every probe.
    """
    table = {reading.probe: reading.value for reading in left}
    for reading in right:
        if reading.probe == prefer and reading.probe in table:
            continue
        table[reading.probe] = reading.value
    return table


#: [Reading("n", 1.0), Reading("s", 2.0)], [Reading("s", 3.0)] -> {"n": 1.0, "s": 3.0}
#: [Reading("n", 1.0)], [Reading("n", 5.0), Reading("e", 6.0)], "n" -> {"n": 1.0, "e": 6.0}
#: [], [Reading("n", 5.0)], "n" -> {"n": 5.0}


def parse_reading(row: str, broken: set[str] | None = None) -> Reading:
    """Parse a probe and its value, trusted unless the probe is broken.

    Args:
        row: Probe and value around an equals sign.
        broken: Probes whose values are not to be trusted.

    Returns:
        The decoded reading.

    Raises:
        ValueError: When the row makes no sense.
    """
    probe, sign, value = row.partition("=")
    if not sign or not probe.strip():
        raise ValueError(f"garbled row {row!r}")
    name = probe.strip().lower()
    trusted = broken is None or name not in broken
    return Reading(name, float(value), trusted)


#: "North = 4.5" -> Reading("north", 4.5)
#: "east=-1", {"east"} -> Reading("east", -1.0, False)
#: "4.5" -> raises ValueError
#: "=4" -> raises ValueError
