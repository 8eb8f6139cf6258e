"""The account is a function of the stream alone: the order of Python's sets differs by process and changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys

ACCOUNTS = """
import hashlib, random
from remora.context.evidence import Entry, Evidence, person_said, remember, words_of, write_account
from remora.context.evidence._worth import Judge

chance = random.Random(7)
words = [f"seat_{n}" for n in range(100, 400)]
found = hashlib.sha256()
for run in range(6):
    evidence = Evidence()
    for seq in range(0, 24, 2):
        evidence = remember(evidence, person_said(seq, " ".join(chance.sample(words, 60))))
        lines = tuple(" ".join(chance.sample(words, 40)) for _ in range(chance.randint(2, 25)))
        evidence = remember(evidence, Entry(seq + 1, "call", f"look({' '.join(chance.sample(words, 9))})", lines=lines))
    goal = " ".join(chance.sample(words, 9))
    found.update(repr(Judge(evidence.entries, words_of(goal)).pieces(300)).encode())
    account = write_account(goal, evidence, 300, lambda text: len(text) // 4)
    found.update(account.text.encode())
print(found.hexdigest())
"""


def digest_with(seed: int) -> str:
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    done = subprocess.run([sys.executable, "-c", ACCOUNTS], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_accounts_are_the_same_under_every_hash_seed() -> None:
    assert len({digest_with(seed) for seed in range(4)}) == 1
