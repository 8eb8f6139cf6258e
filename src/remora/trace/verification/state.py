"""`Library.verify`: all streams of a state directory, the blobs that they name, and the ledger of their heads.

Runs come first, as they note the heads of their agents. Each stream is read once, and each blob once, however many
streams name it. Hashing and unpacking leave the interpreter to others, so blobs are read by several threads.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from remora.errors import TraceError
from remora.events import MAX_BLOB, Reference
from remora.trace.files.blobs import MAX_PROVEN, BlobProof, FileBlobs
from remora.trace.files.heads import FILE, Heads, read_heads
from remora.trace.retention.prune import PRUNED
from remora.trace.verification.stream import NamedReferences, StreamReport, unreadable, verify

Progress = Callable[[int, int], None]
"""Is given how many streams are done, and of how many."""

_AT_ONCE = 256
"""Streams whose blobs are read together: enough for all threads, few enough to be held."""
_THREADS = min(8, os.cpu_count() or 1)


@dataclass(frozen=True)
class BlobCounts:
    """What became of the blobs that the streams name, each counted once."""

    named: int = 0
    read: int = 0
    """Whose bytes were read and have the right digest."""
    bytes: int = 0
    """How many bytes these unpack to."""
    pruned: int = 0
    gone: int = 0
    damaged: int = 0
    not_read: int = 0
    """Only looked for; or too large to be read to the end."""


@dataclass(frozen=True)
class HeadCounts:
    """The state of the ledger."""

    file: Path
    there: bool
    streams: int = 0
    """How many it knows."""
    damaged_lines: tuple[int, ...] = ()
    torn_lines: tuple[int, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Verification:
    """What the bytes prove. Goes over the streams' reports."""

    streams: tuple[StreamReport, ...]
    blobs: BlobCounts
    heads: HeadCounts
    not_checked: tuple[str, ...] = ()
    """What could not be checked, or was not asked for, a sentence each."""

    def __iter__(self) -> Iterator[StreamReport]:
        return iter(self.streams)

    def __len__(self) -> int:
        return len(self.streams)

    @property
    def damaged(self) -> bool:
        """Whether anything is not as it was written."""
        return bool(self.heads.problem) or any(report.status == "damaged" for report in self.streams)


class Verifier:
    """Goes over the streams of one state directory."""

    def __init__(self, state_dir: Path, *, quick: bool = False, progress: Progress | None = None) -> None:
        self._state_dir = state_dir
        self._quick = quick
        self._progress = progress
        self._blobs = FileBlobs(state_dir)
        self._right: set[bytes] = set()
        self._others: dict[tuple[str, int], BlobProof] = {}
        self._read = 0
        self._heads, self._problem = _heads(state_dir)
        self._ends: dict[str, str] = {}
        """The heads of agents, by the word of their runs."""

    def verify_all(self, runs: Sequence[Path], traces: Sequence[Path]) -> Verification:
        """What holds of all streams, and which of them are gone."""
        found: list[StreamReport] = []
        paths = [*runs, *traces]
        for start in range(0, len(paths), _AT_ONCE):
            found += self._reports(paths[start : start + _AT_ONCE])
            if self._progress is not None:
                self._progress(len(found), len(paths))
        there = set(map(_stream_id, paths))
        return self._verification([*found, *self._gone(there)])

    def verify_one(self, path: Path, runs: Iterable[Path]) -> Verification:
        """What holds of one stream. Runs are read for the head that one of them may have noted."""
        for run in runs:
            if run != path:
                self._report(run)
        return self._verification(self._reports([path]))

    def _reports(self, paths: Sequence[Path]) -> list[StreamReport]:
        found = [self._report(path) for path in paths]
        self._prove({reference for _, named in found for reference in named.references})
        return [self._with_blobs(report, named) for report, named in found]

    def _report(self, path: Path) -> tuple[StreamReport, NamedReferences]:
        """What the stream's bytes prove, with the blobs that it names."""
        named, stream_id = NamedReferences(), _stream_id(path)
        try:
            head = self._ends.get(stream_id.removeprefix("traces/"))
            report = verify(path, head=head, noted=self._heads.noted.get(stream_id, ()), visitor=named)
        except TraceError as error:
            return unreadable(path, error.message), named
        self._ends |= named.ends
        return report, named

    def _with_blobs(self, report: StreamReport, named: NamedReferences) -> StreamReport:
        """The report, with the first blob that is not as the stream says."""
        for reference, seq in named.references.items():
            problem = self._problem_of(reference)
            if problem and (report.seq is None or seq < report.seq):
                return replace(
                    report, status="damaged", sealed=False, problem=f"names blob {problem}", line=seq + 1, seq=seq
                )
        return report

    def _prove(self, references: Iterable[Reference]) -> None:
        """Every blob that was not met before is looked at."""
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
        # A thread takes several at once: handing over a small blob costs more than reading it.
        step = max(1, len(new) // (4 * _THREADS))
        parts = [new[start : start + step] for start in range(0, len(new), step)]
        with ThreadPoolExecutor(_THREADS, "remora-verify") as threads:
            for proofs in threads.map(lambda part: [self._blobs.prove(*each) for each in part], parts):
                yield from proofs

    def _problem_of(self, reference: Reference) -> str:
        """What is wrong with the blob; empty where nothing is, or where nobody can tell."""
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
        """Streams of whose end something tells, and which are neither there nor pruned."""
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
    """The ledger, and what is wrong with it."""
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
        yield "Blobs were only looked for, not read: one that was altered is not found without reading it"
    elif blobs.not_read:
        yield f"Of {blobs.not_read} blobs only the first {MAX_PROVEN:,} bytes were unpacked: their digests are unproven"
    if heads.torn_lines:
        yield f"`{heads.file}` has {len(heads.torn_lines)} lines that were never written to their end"
    if not heads.there and not heads.problem:
        yield (
            f"There is no `{FILE}`, as in the state of earlier versions: the last line of a run's stream is vouched "
            "for by nothing, and a run that was deleted as a whole is not missed"
        )
    open_ends = sum(report.status != "damaged" and report.covered < report.events for report in found)
    if open_ends:
        streams = "1 stream" if open_ends == 1 else f"{open_ends:,} streams"
        yield (
            f"The last line of {streams} is vouched for by nothing: open now, cut off by a crash, "
            f"or closed before there was a `{FILE}`"
        )


def _stream_id(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def _limit(reference: Reference) -> int:
    """How far the blob is unpacked: as far as its event says, a file's content as far as a file may be large."""
    return MAX_BLOB if reference.size is None else min(reference.size, MAX_PROVEN)


def _is_damage(key: tuple[str, int], proof: BlobProof) -> bool:
    return proof.found == "too large" and key[1] < MAX_PROVEN


def _is_unread(key: tuple[str, int], proof: BlobProof) -> bool:
    return proof.found == "too large" and key[1] >= MAX_PROVEN


def _key(digest: str) -> bytes:
    """A digest in few bytes: there may be millions of them."""
    try:
        return bytes.fromhex(digest.removeprefix("sha256:"))
    except ValueError:
        return digest.encode(errors="replace")
