"""Fixtures that run every test once for each change of the code under test, and report which changes fail a test.

The new test file imports both fixtures for one run.
"""

import re
import signal

import pytest

from .changes import Changes
from .exchange import SPEC, report

CHANGES = Changes(SPEC)


class Recorder:
    """A pytest plugin that records which test failed with which change."""

    def __init__(self):
        self.failed = {}
        self.ran = 0
        self.bad = 0

    def pytest_runtest_logreport(self, report):
        """Record how a test ended. Change 0 is the code as it is."""
        found = re.search(r"remora(\d+)", report.nodeid)
        number = int(found.group(1)) if found else 0
        if number == 0 and report.when == "call":
            self.ran += report.passed
            self.bad += report.failed
        if report.failed:
            self.failed.setdefault(number, str(report.longrepr)[-400:])

    def pytest_sessionfinish(self):
        """Report once all tests have ended."""
        report(
            {
                "ran": self.ran,
                "bad": self.bad,
                "found": bool(CHANGES.live),
                "mutants": [label for label, _, _ in CHANGES.kinds],
                "failed": sorted(self.failed),
                "why": self.failed.get(0, ""),
            }
        )


@pytest.fixture(scope="session", autouse=True)
def remora_recorder(request):
    """Register the recorder once."""
    if not request.config.pluginmanager.has_plugin("remora-recorder"):
        request.config.pluginmanager.register(Recorder(), "remora-recorder")
    yield


def stop_late_code(number, frame):
    """Handle the alarm: a change may make a loop endless."""
    raise TimeoutError("the changed code did not end")


@pytest.fixture(autouse=True, params=range(max(1, len(CHANGES.kinds))), ids=lambda number: f"remora{number}")
def remora_change(request):
    """Make one change of the code, for one test."""
    before = signal.signal(signal.SIGALRM, stop_late_code)
    signal.setitimer(signal.ITIMER_REAL, SPEC["seconds"])
    with CHANGES.made(request.param):
        yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
