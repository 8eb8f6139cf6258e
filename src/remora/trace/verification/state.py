"""`Library.verify`: all streams of a state directory, the blobs that they reference, and `heads.log`.

Runs are read first, because they note the heads of their agents. Each stream is read once, and each blob once, however
many streams reference it. Hashing and decompressing release the GIL, so several threads read blobs.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from remora.errors import TraceError
from remora.events import MAX_BLOB, Reference
from remora.trace.files.blobs import MAX_PROVEN, BlobProof, FileBlobs, Found
from remora.trace.files.heads import FILE, Heads, read_heads
from remora.trace.retention.prune import PRUNED
from remora.trace.verification.stream import NamedReferences, StreamReport, unreadable, verify

Progress = Callable[[int, int], None]
"""Called with the number of streams done, and their total."""

_AT_ONCE = 256
"""Streams whose blobs are read together: enough to keep all threads busy, few enough to hold in memory."""
_THREADS = min(8, os.cpu_count() or 1)


class Provable(Protocol):
    """Blobs whose bytes can be checked against their digests."""

    def prove(self, digest: str, limit: int) -> BlobProof:
        """Check the digest of a blob; read at most `limit` bytes of it."""
        ...

    def looks(self, digest: str) -> Found:
        """Whether the blob exists or was pruned, without reading it."""
        ...


@dataclass(frozen=True)
class BlobCounts:
    """Counts of the referenced blobs, each counted once."""

    named: int = 0
    read: int = 0
    """Blobs that were read and have the right digest."""
    bytes: int = 0
    """Bytes of those blobs, decompressed."""
    pruned: int = 0
    gone: int = 0
    damaged: int = 0
    not_read: int = 0
    """Only looked up, or too large to read to the end."""


@dataclass(frozen=True)
class HeadCounts:
    """The state of `heads.log`."""

    file: Path
    there: bool
    streams: int = 0
    """Streams that it notes."""
    damaged_lines: tuple[int, ...] = ()
    torn_lines: tuple[int, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Verification:
    """The result of `verify`. Iterates over the reports of the streams."""

    streams: tuple[StreamReport, ...]
    blobs: BlobCounts
    heads: HeadCounts
    not_checked: tuple[str, ...] = ()
    """What could not be checked, or was not requested, one sentence each."""

    def __iter__(self) -> Iterator[StreamReport]:
        return iter(self.streams)

    def __len__(self) -> int:
        return len(self.streams)

    def by_ids(self) -> Verification:
        """The same with every stream named by its kind and id: the files of a store are only copies in a cache."""
        return replace(
            self, streams=tuple(replace(each, file=Path(each.kind, each.file.stem)) for each in self.streams)
        )

    @property
    def damaged(self) -> bool:
        """Whether anything is damaged."""
        return bool(self.heads.problem) or any(report.status == "damaged" for report in self.streams)


class Verifier:
    """Checks the streams of one state directory."""

    def __init__(
        self,
        state_dir: Path,
        *,
        quick: bool = False,
        progress: Progress | None = None,
        blobs: Provable | None = None,
        heads: Heads | None = None,
    ) -> None:
        """`blobs` and `heads` are those of the folder, unless the streams are copies from a store that has its own."""
        self._state_dir = state_dir
        self._quick = quick
        self._progress = progress
        self._blobs = blobs or FileBlobs(state_dir)
        self._right: set[bytes] = set()
        self._others: dict[tuple[str, int], BlobProof] = {}
        self._read = 0
        self._heads, self._problem = _heads(state_dir) if heads is None else (heads, "")
        self._ends: dict[str, str] = {}
        """Heads of agents, as noted by their runs."""

    def verify_all(self, runs: Sequence[Path], traces: Sequence[Path]) -> Verification:
        """Check all streams, and report those that are missing."""
        found: list[StreamReport] = []
        paths = [*runs, *traces]
        for start in range(0, len(paths), _AT_ONCE):
            found += self._reports(paths[start : start + _AT_ONCE])
            if self._progress is not None:
                self._progress(len(found), len(paths))
        there = set(map(_stream_id, paths))
        return self._verification([*found, *self._gone(there)])

    def verify_one(self, path: Path, runs: Iterable[Path]) -> Verification:
        """Check one stream. Runs are read too, because one of them may note its head."""
        for run in runs:
            if run != path:
                self._report(run)
        return self._verification(self._reports([path]))

    def _reports(self, paths: Sequence[Path]) -> list[StreamReport]:
        found = [self._report(path) for path in paths]
        self._prove({reference for _, named in found for reference in named.references})
        return [self._with_blobs(report, named) for report, named in found]

    def _report(self, path: Path) -> tuple[StreamReport, NamedReferences]:
        """Check one stream; return its report and its references."""
        named, stream_id = NamedReferences(), _stream_id(path)
        try:
            head = self._ends.get(stream_id.removeprefix("traces/"))
            report = verify(path, head=head, noted=self._heads.noted.get(stream_id, ()), visitor=named)
        except TraceError as error:
            return unreadable(path, error.message), named
        self._ends |= named.ends
        return report, named

    def _with_blobs(self, report: StreamReport, named: NamedReferences) -> StreamReport:
        """The report, with the first blob that is missing or damaged."""
        for reference, seq in named.references.items():
            problem = self._problem_of(reference)
            if problem and (report.seq is None or seq < report.seq):
                return replace(
                    report, status="damaged", sealed=False, problem=f"names blob {problem}", line=seq + 1, seq=seq
                )
        return report

    def _prove(self, references: Iterable[Reference]) -> None:
        """Check every blob that was not checked before."""
        new = {(each.digest, _limit(each)) for each in references if _key(each.digest) not in self._right}
        new -= self._others.keys()
        if self._quick:
            proofs: Iterable[BlobProof] = [BlobProof(self._blobs.looks(digest)) for digest, _ in new]
        elif len(new) <= 2 * _THREADS:
            proofs = [self._blobs.prove(*each) for each in new]
        else:
            proofs = self._in_threads(list(new))
        for (digest, limit), proof in zip(list(new), proofs, strict=True):
            if proof.found == "right":
                self._right.add(_key(digest))
                self._read += proof.size
            else:
                self._others[digest, limit] = proof

    def _in_threads(self, new: list[tuple[str, int]]) -> Iterator[BlobProof]:
        # Give each thread several blobs at once: the hand-over takes longer than reading a small blob.
        step = max(1, len(new) // (4 * _THREADS))
        parts = [new[start : start + step] for start in range(0, len(new), step)]
        with ThreadPoolExecutor(_THREADS, "remora-verify") as threads:
            for proofs in threads.map(lambda part: [self._blobs.prove(*each) for each in part], parts):
                yield from proofs

    def _problem_of(self, reference: Reference) -> str:
        """What is wrong with the blob; empty if nothing is, or if that is unknown."""
        if _key(reference.digest) in self._right:
            return ""
        limit = _limit(reference)
        found = self._others[reference.digest, limit].found
        name = f"{reference.digest:.80}, which"
        if found == "gone":
            return f"{name} is gone" if reference.ours else ""
        if found == "too large":
            return f"{name} unpacks to more than {limit:,} bytes" if limit < MAX_PROVEN else ""
        return f"{name} is damaged: its file holds other bytes" if found == "damaged" else ""

    def _gone(self, there: set[str]) -> Iterator[StreamReport]:
        """Streams that `heads.log` or a run notes, and that are neither present nor pruned."""
        told = dict.fromkeys(self._heads.noted, f"the stream is gone, although `{FILE}` notes its end")
        told |= {f"traces/{name}": "the stream is gone, although its run tells of its end" for name in self._ends}
        for stream_id in sorted(told.keys() - there):
            path = self._state_dir / f"{stream_id}.jsonl"
            if not path.exists() and not path.with_suffix(PRUNED).exists():
                yield unreadable(path, told[stream_id])

    def _verification(self, found: Sequence[StreamReport]) -> Verification:
        others = {key: proof for key, proof in self._others.items() if _key(key[0]) not in self._right}
        counts = Counter(proof.found for proof in others.values())
        blobs = BlobCounts(
            named=len(self._right) + len(others),
            read=0 if self._quick else len(self._right),
            bytes=self._read,
            pruned=counts["pruned"],
            gone=counts["gone"],
            damaged=counts["damaged"] + sum(_is_damage(*each) for each in others.items()),
            not_read=len(self._right) if self._quick else sum(_is_unread(*each) for each in others.items()),
        )
        heads = self._heads
        counted = HeadCounts(heads.file, heads.there, len(heads.noted), heads.damaged, heads.torn, self._problem)
        return Verification(tuple(found), blobs, counted, tuple(_not_checked(found, blobs, counted, self._quick)))


def _heads(state_dir: Path) -> tuple[Heads, str]:
    """The contents of `heads.log`, and what is wrong with it."""
    try:
        heads = read_heads(state_dir)
    except TraceError as error:
        return Heads(state_dir / FILE), error.message
    if not heads.damaged:
        return heads, ""
    lines = ", ".join(map(str, heads.damaged[:5])) + (", …" if len(heads.damaged) > 5 else "")
    return heads, f"`{heads.file}` is damaged in {len(heads.damaged)} of its lines ({lines}): they vouch for nothing"


def _not_checked(found: Sequence[StreamReport], blobs: BlobCounts, heads: HeadCounts, quick: bool) -> Iterator[str]:
    if quick:
        yield "Blobs were only looked up, not read: altered blobs are not found without reading them"
    elif blobs.not_read:
        yield f"Of {blobs.not_read} blobs only the first {MAX_PROVEN:,} bytes were unpacked: their digests are unproven"
    if heads.torn_lines:
        yield f"`{heads.file}` has {len(heads.torn_lines)} incomplete lines"
    if not heads.there and not heads.problem:
        yield (
            f"There is no `{FILE}`, as in the state of earlier versions: the last line of a run's stream is not "
            "confirmed by anything, and a deleted run is not noticed"
        )
    open_ends = sum(report.status != "damaged" and report.covered < report.events for report in found)
    if open_ends:
        streams = "1 stream" if open_ends == 1 else f"{open_ends:,} streams"
        yield (
            f"The last line of {streams} is not confirmed by anything: open now, cut off by a crash, "
            f"or closed before there was a `{FILE}`"
        )


def _stream_id(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def _limit(reference: Reference) -> int:
    """How many bytes to decompress at most: the size in the event, or the limit of a file's content."""
    return MAX_BLOB if reference.size is None else min(reference.size, MAX_PROVEN)


def _is_damage(key: tuple[str, int], proof: BlobProof) -> bool:
    return proof.found == "too large" and key[1] < MAX_PROVEN


def _is_unread(key: tuple[str, int], proof: BlobProof) -> bool:
    return proof.found == "too large" and key[1] >= MAX_PROVEN


def _key(digest: str) -> bytes:
    """A digest as bytes, to save memory: there may be millions of them."""
    try:
        return bytes.fromhex(digest.removeprefix("sha256:"))
    except ValueError:
        return digest.encode(errors="replace")
