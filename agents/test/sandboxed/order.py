"""A pytest plugin that puts the new test file before or after the project's own tests, and logs how each ended.

The environment variable `REMORA_ORDER` says which file is new, in which order to run, and where to write the log.
"""

import copy
import json
import os

import pytest

SPEC = json.loads(os.environ["REMORA_ORDER"])
NEW = os.path.realpath(SPEC["new"])
PLACE = {}
"""The folder that node ids are relative to: pytest's root."""


def file_of(item):
    """The file of a test."""
    return os.path.realpath(str(getattr(item, "path", None) or item.fspath))


def write_line(value):
    """Append to the log."""
    with open(SPEC["log"], "a") as log:
        log.write(json.dumps(value) + "\n")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Make sure that the new file is collected, wherever the project says its tests are."""
    PLACE["root"] = str(config.rootdir)
    if SPEC["order"] == "own":
        return
    covered = [path == NEW or NEW.startswith(path + os.sep) for path in map(real_argument, config.args)]
    if not any(covered):
        config.args.append(SPEC["new"])


def real_argument(word):
    """The path in an argument of pytest."""
    return os.path.realpath(word.partition("::")[0])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session, config, items):
    """Choose and order the tests."""
    new = [item for item in items if file_of(item) == NEW]
    own = [item for item in items if file_of(item) != NEW]
    files = list(dict.fromkeys(map(file_of, own)))
    if SPEC["near"]:
        near = {file for file in files if names_it(file)}
        own = [item for item in own if file_of(item) in near]
    if SPEC["files"] is not None:
        own = [item for item in own if item.nodeid.partition("::")[0] in SPEC["files"]]
    used = len(set(map(file_of, own)))
    write_line({"collected": len(own), "new": len(new), "files": used, "all_files": len(files)})
    if SPEC["order"] == "own":
        items[:] = own
    else:
        items[:] = [*own, *new] if SPEC["order"] == "after" else [*new, *own, *map(twin, new)]


def names_it(file):
    """Whether a test file names what the new one tests."""
    try:
        with open(file, encoding="utf-8", errors="replace") as text:
            said = text.read()
    except OSError:
        return False
    return any(word in said for word in SPEC["near"])


def twin(item):
    """A copy of a test, to run it once more."""
    other = copy.copy(item)
    other._initrequest()
    return other


def pytest_collectreport(report):
    """Log a file that cannot be collected."""
    if report.failed:
        write_line({"id": report.nodeid, "new": is_new(report.nodeid), "why": str(report.longrepr)[-400:]})


def pytest_runtest_logreport(report):
    """Log how a test ended."""
    if report.failed:
        write_line({"id": report.nodeid, "new": is_new(report.nodeid), "why": str(report.longrepr)[-400:]})
    elif report.when == "call":
        write_line({"passed": is_new(report.nodeid)})


def is_new(nodeid):
    """Whether a test is one of the new file."""
    return os.path.realpath(os.path.join(PLACE["root"], nodeid.partition("::")[0])) == NEW


def pytest_sessionfinish():
    """Log that the run came to its end."""
    write_line({"ended": True})
