# What follows is added for one run only: it changes the code under test, one change at a time, and counts who notices.
import json as _json
import re as _re
import signal as _signal

import pytest as _pytest
from _remora_changes import Changes as _Changes

_SPEC = _json.loads(SPEC_TEXT)
_ALL = _Changes(_SPEC)


class _Recorder:
    """Which test failed with which change."""

    def __init__(self):
        self.failed = {}
        self.ran = 0

    def pytest_runtest_logreport(self, report):
        found = _re.search(r"remora(\d+)", report.nodeid)
        number = int(found.group(1)) if found else 0
        if number == 0 and report.when == "call":
            self.ran += report.passed
        if report.failed:
            self.failed.setdefault(number, str(report.longrepr)[-400:])

    def pytest_sessionfinish(self):
        told = {
            "ran": self.ran,
            "found": bool(_ALL.live),
            "mutants": [label for label, _, _ in _ALL.kinds],
            "failed": sorted(self.failed),
            "why": self.failed.get(0, ""),
        }
        print("\n" + _SPEC["mark"] + _json.dumps(told) + _SPEC["mark"], flush=True)


@_pytest.fixture(scope="session", autouse=True)
def _remora_recorder(request):
    if not request.config.pluginmanager.has_plugin("remora-recorder"):
        request.config.pluginmanager.register(_Recorder(), "remora-recorder")
    yield


def _late(number, frame):
    raise TimeoutError("the changed code did not end")


@_pytest.fixture(autouse=True, params=range(max(1, len(_ALL.kinds))), ids=lambda number: f"remora{number}")
def _remora_change(request):
    before = _signal.signal(_signal.SIGALRM, _late)
    _signal.setitimer(_signal.ITIMER_REAL, _SPEC["seconds"])
    with _ALL.made(request.param):
        yield
    _signal.setitimer(_signal.ITIMER_REAL, 0)
    _signal.signal(_signal.SIGALRM, before)
