"""Tasks for `copyright`: files that bear our copyright, an older one, somebody else's, or none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.making import Case, call, made
from remora_lab.bench.tasks import Task

LAMP = "def brightness(hour):\n    return 1.0 if 7 <= hour < 22 else 0.2\n"
SIEVE = '''"""Primes by sieving."""


def primes(limit):
    return [n for n in range(2, limit) if all(n % d for d in range(2, n))]
'''
OURS = "# Copyright 2026 Willow Street Makers. MIT licensed."
OLDER = "# Copyright 2019 Willow Street Makers. MIT licensed."
OLDEST = "# Copyright (c) 2014-2016 Willow Street Makers, all rights reserved"
THEIRS = "# Copyright 2011 Otto Brandt. BSD licensed."
SHEBANG = "#!/usr/bin/env python3"
CODING = "# -*- coding: utf-8 -*-"


@dataclass(frozen=True)
class _Case(Case):
    """A file by its rows on top, and what is right for it."""

    top: tuple[str, ...] = ()
    old: str = ""
    """The copyright that it bears; empty for none."""


CASES = (
    _Case("copyright-lamp", "easy", "home/lamp.py", LAMP),
    _Case("copyright-script", "medium", "bin/lamp.py", LAMP, (SHEBANG,)),
    _Case("copyright-coding", "hard", "bin/sieve.py", SIEVE, (SHEBANG, CODING)),
    _Case("copyright-older", "easy", "sieve.py", SIEVE, (), OLDER),
    _Case("copyright-oldest", "medium", "maths/sieve.py", SIEVE, (SHEBANG,), OLDEST),
    _Case("copyright-theirs", "medium", "vendored/sieve.py", SIEVE, (), THEIRS),
    _Case("copyright-intact", "easy", "home/light.py", LAMP, (), OURS),
    _Case("copyright-borrowed", "hard", "vendored/lamp.py", LAMP, (SHEBANG, CODING), THEIRS),
)


def copyright_tasks() -> Iterator[Task]:
    """Every task of the agent."""
    for case in CASES:
        yield _task(case)


def _task(case: _Case) -> Task:
    ours = case.old in ("", OURS, OLDER, OLDEST)
    files = {case.path: _source(case, case.old), "LICENSE_HEADER.txt": OURS.removeprefix("# ") + "\n"}
    after = _source(case, OURS if ours else case.old)
    calls = [call("behold_preamble")]
    if not case.old:
        calls.append(call("affix_copyright", below=len(case.top)))
    elif ours and case.old != OURS:
        calls.append(call("renew_copyright", lineno=len(case.top) + 1))
    return made(case.name, case.level, files, case.path, {case.path: after}, calls)


def _source(case: _Case, copyright_line: str) -> str:
    return "\n".join([*case.top, *([copyright_line] if copyright_line else []), case.source])
