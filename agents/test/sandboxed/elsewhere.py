"""A pytest plugin that shifts the clock and renames the machine before the project is imported.

`REMORA_SHIFT_S` says by how many seconds, `REMORA_HOST` the name. It shifts the clock for `time` and
`datetime`. The times of files and the clock of SQLite stay as they are.
"""

import ctypes
import datetime
import gc
import os
import platform
import socket
import time

SHIFT = "REMORA_SHIFT_S"
LATER = 4_068_793.0 + 3 * 365 * 86400
"""Seconds: another year, month, day of the week and hour."""
EARLIER = -2_340_121.0 - 2 * 365 * 86400
HOST = "REMORA_HOST"


def other_place(later=True):
    """Environment variables of another day on another machine: clock, time zone, hash seed and language differ."""
    zone, plain = ("Pacific/Kiritimati", "XXX-14") if later else ("America/St_Johns", "YYY3:30")
    return {
        SHIFT: str(LATER if later else EARLIER),
        "TZ": zone if os.path.exists(f"/usr/share/zoneinfo/{zone}") else plain,
        "PYTHONHASHSEED": "1" if later else "2",
        HOST: "elsewhere",
        **dict.fromkeys(("HOSTNAME", "USER", "LOGNAME"), "elsewhere"),
        # `C` is the only other locale that every machine has; `gettext` reads `LANGUAGE`.
        "LC_ALL": "C",
        "LANG": "C",
        "LANGUAGE": "de:fr:es",
    }


def move_clock(seconds):
    """Shift the clock in `time` and `datetime` by `seconds`."""
    real = {name: getattr(time, name) for name in ("time", "time_ns", "clock_gettime", "clock_gettime_ns")}
    time.time = lambda: real["time"]() + seconds
    time.time_ns = lambda: real["time_ns"]() + int(seconds) * 1_000_000_000
    time.clock_gettime = lambda kind: real["clock_gettime"](kind) + (seconds if kind == time.CLOCK_REALTIME else 0)
    whole = int(seconds) * 1_000_000_000
    time.clock_gettime_ns = lambda kind: real["clock_gettime_ns"](kind) + (whole if kind == time.CLOCK_REALTIME else 0)
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, of_now(getattr(time, name)))
    time.asctime = at_now(time.asctime, time.localtime)
    strftime = time.strftime
    time.strftime = lambda form, moment=None: strftime(form, time.localtime() if moment is None else moment)
    replace_methods(datetime.datetime, {"now": now, "utcnow": utcnow})


def rename_host(name):
    """Give this machine another name, for `socket`, `os` and `platform`."""
    real = os.uname()
    os.uname = lambda: os.uname_result((real.sysname, name, real.release, real.version, real.machine))
    socket.gethostname = socket.getfqdn = lambda *given: name
    platform._uname_cache = None


def of_now(function):
    """A function of `time` whose default is the shifted time."""
    return lambda seconds=None: function(time.time() if seconds is None else seconds)


def at_now(function, local):
    """The same for a function that takes a struct of local time."""
    return lambda moment=None: function(local() if moment is None else moment)


def now(cls, tz=None):
    """`datetime.now` on the shifted clock."""
    return cls.fromtimestamp(time.time(), tz)


def utcnow(cls):
    """`datetime.utcnow` on the shifted clock."""
    return cls.fromtimestamp(time.time(), datetime.UTC).replace(tzinfo=None)


def replace_methods(kind, functions):
    """Replace class methods of a type made in C in place, so that the type stays the same object."""
    inside = gc.get_referents(kind.__dict__)[0]
    for name, function in functions.items():
        inside[name] = classmethod(function)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


if os.environ.get(SHIFT):
    move_clock(float(os.environ[SHIFT]))
if os.environ.get(HOST):
    rename_host(os.environ[HOST])
