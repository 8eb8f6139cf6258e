"""The few events of a stream that somebody asks for, without making typed events of all the others.

Every line is checked against the one before it, as always; only those of the wanted types are parsed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from remora.errors import TraceError
from remora.events import Event, from_record
from remora.trace._parse import parse
from remora.trace._reader import read_events
from remora.trace._skim import Skim

_TYPE_ENDS = 100
"""Where the type of a line in our writer's own form has ended, at the latest."""


def pick_events(path: Path, types: Collection[str]) -> Iterator[Event]:
    """The events of these types, oldest first, as far as the stream is intact; `verify` tells of the rest."""
    wanted = re.compile(b'","type":"(?:%s)"' % b"|".join(re.escape(name.encode()) for name in types))
    skim = Skim(path)
    try:
        for lines in skim:
            for line in lines:
                if wanted.search(line, 0, _TYPE_ENDS):
                    event = from_record(parse(line).fields or {})
                    if event.type in types:
                        yield event
        yield from (event for event in read_events(path, start=skim.here, torn_ok=True) if event.type in types)
    except TraceError:
        return
