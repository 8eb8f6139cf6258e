"""Spans are sent over real HTTP to the endpoint that the user names, and nowhere else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from remora.errors import ConfigError, ExportRefused
from remora.otlp import send_spans, traces_url
from remora.otlp_protobuf import encode


class Receiver(ThreadingHTTPServer):
    """Takes spans as a collector does, and answers as it is told to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.taken: list[tuple[str, dict[str, str], Any]] = []
        self.status, self.reply, self.kind, self.location = 200, b"", "application/x-protobuf", ""
        self.coding = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.taken.append((self.path, headers, body))
        self.send_response(self.server.status)
        self.send_header("Content-Type", self.server.kind)
        if self.server.coding:
            self.send_header("Transfer-Encoding", self.server.coding)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()
        self.wfile.write(self.server.reply)

    def log_message(self, *_: object) -> None:
        return None


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


SPAN = {"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "2", "name": "chat", "kind": 3, "startTimeUnixNano": "1"}
SPANS = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [SPAN]}]}]}


def test_spans_arrive_at_the_traces_path_with_the_users_headers(receiver: Receiver) -> None:
    assert send_spans(receiver.url, SPANS, {"x-api-key": "k"}) == f"{receiver.url}/v1/traces"
    ((path, headers, body),) = receiver.taken
    assert (path, body) == ("/v1/traces", encode(SPANS))
    assert headers["content-type"] == "application/x-protobuf"
    assert headers["x-api-key"] == "k"


def test_spans_are_sent_as_json_if_that_is_wanted(receiver: Receiver) -> None:
    send_spans(receiver.url, SPANS, encoding="json")
    ((_, headers, body),) = receiver.taken
    assert (json.loads(body), headers["content-type"]) == (SPANS, "application/json")


def test_an_endpoint_with_a_path_is_taken_as_it_is(receiver: Receiver) -> None:
    send_spans(f"{receiver.url}/own/traces?key=1", SPANS)
    assert receiver.taken[0][0] == "/own/traces?key=1"


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    other = Receiver()
    try:
        receiver.status, receiver.location = 307, f"{other.url}/v1/traces"
        with pytest.raises(ExportRefused, match="307"):
            send_spans(receiver.url, SPANS)
        assert other.taken == []
    finally:
        other.server_close()


def test_a_refusal_is_told_in_the_endpoints_own_words(receiver: Receiver) -> None:
    receiver.status, receiver.reply = 401, b"no key"
    with pytest.raises(ExportRefused, match="answered 401 Unauthorized: no key"):
        send_spans(receiver.url, SPANS)


def test_spans_that_were_taken_only_in_part_are_an_error(receiver: Receiver) -> None:
    receiver.reply = b"\x0a\x0b\x08\x03\x12\x07too old"
    with pytest.raises(ExportRefused, match="refused 3 spans: too old"):
        send_spans(receiver.url, SPANS)
    receiver.reply = b"\x0a\x00"
    send_spans(receiver.url, SPANS)
    receiver.kind = "application/json"
    receiver.reply = b'{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}'
    with pytest.raises(ExportRefused, match="refused 3 spans: too old"):
        send_spans(receiver.url, SPANS)
    receiver.reply = b'{"partialSuccess":{}}'
    send_spans(receiver.url, SPANS)


@pytest.mark.parametrize("kind", ["application/x-protobuf", "application/json"])
def test_a_long_reason_hides_no_refusal(receiver: Receiver, kind: str) -> None:
    receiver.kind, why = kind, "too old " * 1000
    receiver.reply = json.dumps({"partialSuccess": {"rejectedSpans": 3, "errorMessage": why}}).encode()
    if "proto" in kind:
        receiver.reply = b"\x0a\xc5\x3e\x08\x03\x12\xc0\x3e" + why.encode()
    with pytest.raises(ExportRefused, match="refused 3 spans: too old") as caught:
        send_spans(receiver.url, SPANS)
    assert len(caught.value.message) < 2200


@pytest.mark.parametrize("count", ["[1]", '{"a": 1}', "null", '"some"', "1e400"])
def test_a_reply_in_another_form_is_no_refusal(receiver: Receiver, count: str) -> None:
    receiver.kind, receiver.reply = "application/json", b'{"partialSuccess":{"rejectedSpans":%s}}' % count.encode()
    send_spans(receiver.url, SPANS)


def test_an_error_whose_words_are_cut_is_a_sentence(receiver: Receiver) -> None:
    receiver.status, receiver.coding, receiver.reply = 503, "chunked", b"zz\r\nno chunk"
    with pytest.raises(ExportRefused, match=r"answered 503 Service Unavailable$"):
        send_spans(receiver.url, SPANS)


@pytest.mark.parametrize("headers", [{"x-key": "s3cret\nx"}, {"x-key": "s3cret€"}, {"x key": "s3cret"}, {"": "s3cret"}])
def test_a_header_that_cannot_be_sent_is_named_without_its_value(headers: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="cannot be sent") as caught:
        send_spans("http://127.0.0.1:9", SPANS, headers)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("reply", [b"thanks", b"\x0a", b"\x0a\xff\xff", b"\xff" * 20, b"\x0b\x0c"])
def test_a_reply_that_is_no_protobuf_is_no_refusal(receiver: Receiver, reply: bytes) -> None:
    receiver.reply = reply
    send_spans(receiver.url, SPANS)


def test_nobody_listening_is_a_sentence_with_a_hint() -> None:
    with pytest.raises(ExportRefused, match="cannot be reached") as caught:
        send_spans("http://127.0.0.1:9", SPANS)
    assert "4318" in (caught.value.hint or "")


def test_a_host_that_cannot_be_looked_up_is_a_sentence() -> None:
    with pytest.raises(ExportRefused, match="cannot be reached"):
        send_spans("http://a..b/", SPANS)


@pytest.mark.parametrize(
    "endpoint",
    ["file:///etc/passwd", "ftp://x", "http://", "://x", "gopher://x:1", "http://[::1", "http://x/ü", "http://ü/"],
)
def test_only_http_is_an_endpoint(endpoint: str) -> None:
    with pytest.raises(ConfigError):
        traces_url(endpoint)


def test_a_host_and_a_port_are_enough() -> None:
    assert traces_url("localhost:4318") == "http://localhost:4318/v1/traces"
