"""A server's own count, or a typed error: never a guess."""

from __future__ import annotations

import pytest

from inference.tiny import server
from remora.errors import ConfigError, CountingFailed
from remora.inference import ServerCounter


def test_the_count_is_the_servers_and_a_text_is_asked_for_once() -> None:
    with server() as (url, asked):
        counter = ServerCounter(url + "/")
        assert [counter.count(text) for text in ("abc", "abc", "12345", "")] == [3, 3, 5, 0]
    assert asked == ["abc", "12345", ""]
    assert counter.count("abc") == 3
    assert (counter.name, counter.exact) == (f"server:{url.removeprefix('http://')}", True)


@pytest.mark.parametrize("reply", [b"", b"not json", b"[]", b'{"tokens": 3}', b'{"count": 3}'])
def test_an_answer_that_is_no_count_is_an_error(reply: bytes) -> None:
    with server(reply) as (url, _), pytest.raises(CountingFailed, match="did not count tokens"):
        ServerCounter(url).count("abc")


def test_a_refusal_is_told_with_its_status_and_not_remembered() -> None:
    with server(status=503) as (url, asked):
        counter = ServerCounter(url)
        for _ in range(2):
            with pytest.raises(CountingFailed, match="HTTP status 503"):
                counter.count("abc")
    assert asked == ["abc", "abc"]


def test_a_server_that_is_not_there_is_told() -> None:
    with server() as (url, _):
        pass
    with pytest.raises(CountingFailed, match="did not count tokens"):
        ServerCounter(url).count("abc")


def test_a_server_that_drips_is_cut_off_by_the_deadline() -> None:
    with server(b'{"tokens": []}' + b" " * 300, drip_s=0.05) as (url, _), pytest.raises(CountingFailed):
        ServerCounter(url, deadline_s=0.2).count("abc")


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080", "file:///etc/passwd", "http://", "http://host:port"])
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of a server"):
        ServerCounter(url)


def test_a_name_in_receipts_holds_no_password() -> None:
    assert ServerCounter("http://me:hunter22@host:8080").name == "server:host:8080"
