"""What a stream names outside of itself: blobs, and in a run's stream the heads of its agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from remora.events import FORMAT, Reference, references_of

_BLOB, _BEFORE, _AFTER = b'"blob":"sha256:', b'"before":"sha256:', b'"after":"sha256:'
"""What every reference begins with in a line of our own writer."""
_OURS = b'{"v":1,"seq":'
"""What every line of our own writer begins with. Others may put spaces anywhere, so theirs are parsed."""
_DIGEST_LENGTH = len("sha256:") + 64
_FINISHED = b'"type":"agent_finished"'


class Named:
    """Collects from the lines of one stream. Few of them are parsed: those that name what was not met before."""

    def __init__(self) -> None:
        self.references: dict[Reference, int] = {}
        """With the `seq` that first has it, in order."""
        self.ends: dict[str, str] = {}
        """By agent, the head that its run noted."""
        self._met: set[bytes] = set()

    def take(self, first: int, lines: Sequence[bytes]) -> None:
        """The lines, of which the first has the `seq` `first`."""
        seq = first
        for line in lines:
            # Spelled out, as this is done for every line there is.
            names = _BLOB in line or _BEFORE in line or _AFTER in line
            if (names and not self._met.issuperset(_digests(line))) or _FINISHED in line or not line.startswith(_OURS):
                self._read(seq, line)
            seq += 1

    def _read(self, seq: int, line: bytes) -> None:
        fields = orjson.loads(line)
        kind, data = fields["type"], fields.get("data")
        if fields.get("v") != FORMAT or not isinstance(data, dict):
            return
        for reference in references_of(kind, data):
            self.references.setdefault(reference, seq)
            self._met.add(reference.digest.encode(errors="replace"))
        agent_id, head = fields.get("agent_id"), data.get("head")
        if kind == "agent_finished" and isinstance(agent_id, str) and isinstance(head, str) and head:
            self.ends[agent_id] = head


def _digests(line: bytes) -> Iterator[bytes]:
    for mark in (_BLOB, _BEFORE, _AFTER):
        at = line.find(mark)
        while at >= 0:
            start = at + len(mark) - len("sha256:")
            yield line[start : start + _DIGEST_LENGTH]
            at = line.find(mark, start)
