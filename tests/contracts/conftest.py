"""A clock for the contract tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest


class TickingClock:
    """One microsecond later every time it is asked, unless it is set."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 15, 18, 20, 45, tzinfo=UTC)

    def now(self) -> datetime:
        self.time += timedelta(microseconds=1)
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()
