"""Texts to merge, and what git makes of them: made at random, with lines that repeat.

`python -m workspaces.triples` (from `tests/`) writes the corpus that is merged without git: `git_merges.json`.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

Triple = tuple[bytes, bytes, bytes]
CORPUS = Path(__file__).with_name("git_merges.json")
_LOOP = """
at={first}
while [ $at -lt {count} ]; do git merge-file -p -q $at.o $at.b $at.t > $at.m; echo $at $?; at=$((at+{step})); done
"""


def random_triple(chance: random.Random) -> Triple:
    """A base of up to 40 lines from a small alphabet, and two edits of it."""
    letters = [b"%c" % (97 + each) for each in range(chance.choice([1, 2, 2, 3, 3, 4, 6, 10, 26]))]
    letters += [b""] * (chance.random() < 0.5)
    fresh = [b"%c" % (65 + each) for each in range(chance.choice([1, 2, 5]))]
    size = chance.randint(0, chance.choice([5, 15, 40]))
    base = [chance.choice(letters) for _ in range(size)]

    def edited(lines: Sequence[bytes]) -> list[bytes]:
        lines = list(lines)
        for _ in range(chance.choice([0, 1, 1, 1, 2, 2, 3, 5])):
            at, gone = chance.randint(0, len(lines)), chance.choice([0, 0, 1, 1, 2, 3, 6])
            new = [chance.choice(chance.choice([letters, fresh])) for _ in range(chance.choice([0, 1, 1, 2, 4]))]
            lines[at : at + gone] = new
        return lines

    def one_line(at: int) -> list[bytes]:
        lines = list(base)
        lines[at : at + chance.choice([0, 1])] = [chance.choice(fresh + letters)] * chance.choice([0, 1, 1])
        return lines

    how = chance.random()
    if how < 0.12:  # one side goes on from the other
        ours = edited(base)
        theirs = edited(ours) if how < 0.08 else ours
    elif how < 0.3:  # both have made one edit, and others of their own
        common = edited(base)
        ours, theirs = edited(common), edited(common)
    elif how < 0.45:  # edits that touch, or nearly
        at = chance.randint(0, len(base))
        ours, theirs = one_line(at), one_line(at + chance.choice([0, 1, 1, 2, 3]))
    else:
        ours, theirs = edited(base), edited(base)
    ends = [True] * 3 if chance.random() < 0.8 else [chance.random() < 0.5 for _ in range(3)]
    newline = b"\r\n" if chance.random() < 0.15 else b"\n"
    newlines = [newline, b"\n" if chance.random() < 0.05 else newline, newline]
    sides = zip((base, ours, theirs), ends, newlines, strict=True)
    one, two, three = (_text(lines, end, line_end) for lines, end, line_end in sides)
    return one, two, three


def python_triple(chance: random.Random, source: bytes, *, gap: int) -> Triple:
    """Two edits as agents and people make them: a docstring, a fixed or removed line, so many lines apart."""
    lines = source.split(b"\n")
    at = chance.randrange(len(lines) - gap - 2)
    return source, _like_an_agent(chance, lines, at), _like_an_agent(chance, lines, at + gap + 1)


def _like_an_agent(chance: random.Random, lines: Sequence[bytes], at: int) -> bytes:
    edited, line = list(lines), lines[at]
    indent = line[: len(line) - len(line.lstrip())]
    match chance.randrange(4):
        case 0:
            edited[at] = indent + b"# checked: " + line.strip()
        case 1:
            edited[at : at + 1] = [line, indent + b'    """Do what line %d says."""' % at, b""]
        case 2:
            edited[at] = line + b"  # noqa"
        case _:
            del edited[at]
    return b"\n".join(edited)


def _text(lines: Sequence[bytes], ends: bool, newline: bytes) -> bytes:
    return newline.join(lines) + (newline if ends and lines else b"")


def merge_all(triples: Sequence[Triple], folder: Path) -> list[bytes | None]:
    """What `git merge-file` makes of each; None for a conflict. A shell for each core starts git, and nothing else."""
    for at, triple in enumerate(triples):
        for name, text in zip("bot", triple, strict=True):
            (folder / f"{at}.{name}").write_bytes(text)
    cores = os.cpu_count() or 1
    loops = [_LOOP.format(first=core, step=cores, count=len(triples)) for core in range(cores)]
    shells = [
        subprocess.Popen(["/bin/sh", "-c", loop], cwd=folder, env=_environment(), stdout=subprocess.PIPE)
        for loop in loops
    ]
    told = b"".join(shell.communicate()[0] for shell in shells)
    codes = dict(map(int, line.split()) for line in told.splitlines())
    assert len(codes) == len(triples)
    assert all(code < 128 for code in codes.values()), "git could not merge"
    return [None if codes[at] else (folder / f"{at}.m").read_bytes() for at in range(len(triples))]


def _environment() -> dict[str, str]:
    """No settings of the user's, whatever they say about merging."""
    mine = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return mine | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def write_corpus(folder: Path, count: int = 500) -> None:
    """The corpus: triples and what `git merge-file` makes of each."""
    chance = random.Random(16)
    triples = [random_triple(chance) for _ in range(count)]
    merged = merge_all(triples, folder)
    rows = [[_decoded(text) for text in (*triple, found)] for triple, found in zip(triples, merged, strict=True)]
    CORPUS.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", encoding="utf-8")


def _decoded(text: bytes | None) -> str | None:
    return None if text is None else text.decode()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        write_corpus(Path(name))
