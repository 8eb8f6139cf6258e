"""What a stream names outside of itself: blobs, and in a run's stream the heads of its agents."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from remora.events import FORMAT, Reference, references_of

_DIGEST = b'"sha256:'
_DIGEST_LENGTH = len("sha256:") + 64
_KEYS = (b'"blob":', b'"before":', b'"after":')
"""What stands before the digest in every reference of our own writer."""
_PREV_LENGTH = len(',"prev":""}') + _DIGEST_LENGTH
_OURS = b'{"v":1,"seq":'
"""What every line of our own writer begins with. Others may put spaces anywhere, so theirs are parsed."""
_FINISHED = b'"type":"agent_finished"'
_TYPE_AT = (40, 100)
"""The bytes of a line among which its type stands."""


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
            if self._names_new(line) or line.find(_FINISHED, *_TYPE_AT) >= 0 or not line.startswith(_OURS):
                self._read(seq, line)
            seq += 1

    def _names_new(self, line: bytes) -> bool:
        """Whether the line seems to name a blob that was not met before. One search, as it is done for every line."""
        end = len(line) - (_PREV_LENGTH if line.endswith(b'"}') else 0)  # the first line's `prev` is null
        at = line.find(_DIGEST, 0, end)
        while at >= 0:
            if line.endswith(_KEYS, 0, at) and line[at + 1 : at + 1 + _DIGEST_LENGTH] not in self._met:
                return True
            at = line.find(_DIGEST, at + 1, end)
        return False

    def __len__(self) -> int:
        return len(self.references)

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
