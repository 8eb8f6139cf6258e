"""Ways to damage a database file, for whoever must survive them."""

from __future__ import annotations

import os
import random
from pathlib import Path


def emptied(db: Path, rnd: random.Random) -> None:
    db.write_bytes(b"")


def garbage(db: Path, rnd: random.Random) -> None:
    db.write_bytes(rnd.randbytes(rnd.choice([1, 100, 4096, 50_000])))


def truncated(db: Path, rnd: random.Random) -> None:
    os.truncate(db, rnd.randrange(db.stat().st_size))
