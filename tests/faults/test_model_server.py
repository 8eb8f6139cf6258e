"""Row 31: whatever a model server does, the end is a decision or a typed error, within the deadline.

Every fault is real HTTP over loopback. The key goes to no other place, ever.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

import pytest

from inference.fakes import (
    DONE,
    FakeServer,
    Reply,
    Wire,
    answer,
    call_part,
    calls_natively,
    chooses,
    chunk,
    says,
    stream,
)
from remora.context.contracts import ToolSpec
from remora.errors import DecisionError
from remora.inference import Endpoint, ServerPolicy, preset_of
from remora.ports import Decision, Prompt

Mode = Literal["json", "tools"]
KEY = "sk-canary-5f0c8d1e"
DEADLINES = {"decision_late": 0.4}
PLENTY_S = 30.0
FIX = ToolSpec(
    name="apply_fix",
    parameters={"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
)
PROMPT = Prompt(messages=({"role": "user", "content": "fix it"},), tools=(FIX,), turn=1)


def endpoint(url: str, mode: Mode = "json", deadline_s: float = PLENTY_S) -> Endpoint:
    preset, _ = preset_of("llamacpp")
    return Endpoint(preset, url, model="tiny", api_key=KEY, mode=mode, deadline_s=deadline_s)


def reset(wire: Wire) -> None:
    wire.reset()


def reset_in_the_middle(wire: Wire) -> None:
    wire.head()
    wire.send(chunk('{"tool": "apply'))
    wire.reset()


def drips(wire: Wire) -> None:
    wire.head()
    while not wire.over.wait(0.05):
        wire.send(chunk("x"))


def drips_bytes(wire: Wire) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + b"X" * 10_000:
        if wire.over.wait(0.05):
            return
        wire.send(bytes([byte]))


def never_ends(wire: Wire) -> None:
    wire.head()
    while not wire.over.is_set():
        wire.send(chunk("y" * 4096))


def one_endless_line(wire: Wire) -> None:
    wire.head()
    while not wire.over.is_set():
        wire.send(b"z" * 65536)


def says_nothing(wire: Wire) -> None:
    wire.over.wait(30)


def only_headers(wire: Wire) -> None:
    wire.head()


def huge_header(wire: Wire) -> None:
    wire.send(b"HTTP/1.1 200 OK\r\nX-Huge: " + b"h" * 2_000_000 + b"\r\n\r\n")


def garbage(wire: Wire) -> None:
    wire.send(bytes(range(256)) * 40)


def compressed(wire: Wire) -> None:
    wire.head(Content_Encoding="gzip")
    wire.send(b"\x1f\x8b" + bytes(1000))


def cut_chunked(wire: Wire) -> None:
    wire.head(Transfer_Encoding="chunked")
    data = chunk('{"tool": "app')
    wire.send(b"%x\r\n%s\r\n" % (len(data), data))


GOOD = '{"code": "F401"}'
FAULTS: dict[str, tuple[Reply, str]] = {
    "500": (answer({"error": {"message": "boom"}}, 500), "server_unreachable"),
    "503 with an HTML page": (answer(b"<html>down</html>", 503, "text/html"), "server_unreachable"),
    "429 for longer than the deadline": (answer({}, 429, Retry_After="3600"), "server_unreachable"),
    "401": (answer({"error": {"message": f"bad key {KEY}"}}, 401), "server_refused"),
    "404: no such model": (answer({"error": {"message": "model not found"}}, 404), "server_refused"),
    "400: the prompt is too long": (answer({"error": {"message": "exceeds context"}}, 400), "server_refused"),
    "reset": (reset, "server_unreachable"),
    "reset in the middle": (reset_in_the_middle, "reply_broken"),
    "slow drip of chunks": (drips, "decision_late"),
    "slow drip of header bytes": (drips_bytes, "decision_late"),
    "garbage": (garbage, "server_unreachable"),
    "cut stream": (stream(chunk('{"tool": "apply_fix"')), "reply_broken"),
    "cut inside chunked framing": (cut_chunked, "reply_broken"),
    "endless stream": (never_ends, "reply_too_large"),
    "one endless line": (one_endless_line, "reply_too_large"),
    "never answers": (says_nothing, "decision_late"),
    "closes after the headers": (only_headers, "reply_broken"),
    "huge header": (huge_header, "server_unreachable"),
    "compressed without being asked": (compressed, "reply_broken"),
    "HTML page with 200": (answer(b"<html>hi</html>", 200, "text/html"), "reply_broken"),
    "malformed events": (stream(b"data: {not json\n\n", DONE), "reply_broken"),
    "events that are no chunks": (stream(b"data: 5\n\ndata: []\n\ndata: null\n\n", DONE), "reply_broken"),
    "JSON nested 100,000 deep": (stream(b"data: " + b"[" * 100_000 + b"\n\n", DONE), "reply_broken"),
    "an error as an event": (stream(chunk("{"), b'data: {"error": {"message": "oom"}}\n\n'), "reply_broken"),
    "empty reply": (stream(chunk(finish="stop"), DONE), "reply_invalid"),
    "null content": (stream(chunk(choices=[{"delta": {"content": None}, "finish_reason": "stop"}])), "reply_invalid"),
    "words instead of a call": (says("I would rather not."), "reply_invalid"),
    "cut at its limit of tokens": (says('{"tool": "apply_fix", "args": {"co', "length"), "reply_invalid"),
    "unknown tool": (chooses("rm_rf", path="/"), "reply_invalid"),
    "wrong types": (chooses("apply_fix", code=["F401"]), "reply_invalid"),
    "native: arguments that are no JSON": (calls_natively(call_part("apply_fix", '{"code": F401')), "reply_invalid"),
    "native: 10,000 calls": (
        calls_natively(*(call_part("apply_fix", GOOD, index=n, call_id=f"c{n}") for n in range(10_000))),
        "reply_too_large",
    ),
    "native: one id for all calls": (
        calls_natively(*(call_part("apply_fix", GOOD, index=n, call_id="same") for n in range(3))),
        "3 calls",
    ),
    "native: numbers that jump": (
        calls_natively(call_part("apply_fix", '{"code": ', index=7), call_part("", '"F401"}', index=7, call_id="")),
        "1 calls",
    ),
    "native: every call numbered 0": (
        calls_natively(*(call_part("apply_fix", GOOD, index=0, call_id=f"c{n}") for n in range(2))),
        "2 calls",
    ),
    "native: odd numbers and arguments as an object": (
        calls_natively(
            call_part("apply_fix", {"code": "F401"}, index=None), call_part("apply_fix", GOOD, index=-9, call_id="c2")
        ),
        "2 calls",
    ),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Loads the client before the first deadline runs: that takes a second on a busy machine."""
    import openai.resources.chat  # noqa: F401


async def outcome(url: str, mode: Mode = "json", deadline_s: float = PLENTY_S) -> str:
    """The code of the error, or the number of calls in the decision."""
    async with ServerPolicy(endpoint(url, mode, deadline_s)) as policy:
        try:
            decision = await policy.decide(PROMPT)
        except DecisionError as error:
            assert KEY not in f"{error.message}{error.hint}{error.text}"
            return error.code
    assert isinstance(decision, Decision)
    return f"{len(decision.calls)} calls"


@pytest.mark.parametrize("name", FAULTS)
async def test_every_fault_ends_in_a_typed_error_or_a_decision_within_the_deadline(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    reply, expected = FAULTS[name]
    with FakeServer(reply) as server:
        # A deadline that did not hold would be a test that never ends.
        answered = outcome(
            server.url, "tools" if name.startswith("native") else "json", DEADLINES.get(expected, PLENTY_S)
        )
        assert await asyncio.wait_for(answered, PLENTY_S + 10) == expected
    if name == list(FAULTS)[-1]:
        record_property("row 31", f"{len(FAULTS)} server faults: a typed error or a decision, each within its deadline")


async def test_a_deadline_in_the_middle_of_the_retries_names_what_the_server_answered_last() -> None:
    asked: list[int] = []

    def fails_then_hangs(wire: Wire) -> None:
        asked.append(1)
        (answer({"error": {"message": "boom"}}, 500) if len(asked) == 1 else says_nothing)(wire)

    with FakeServer(fails_then_hangs) as server:
        assert await outcome(server.url, deadline_s=10.0) == "server_unreachable"
    assert len(asked) == 2


@pytest.fixture
def elsewhere() -> Iterator[FakeServer]:
    with FakeServer(chooses("apply_fix", code="F401")) as server:
        yield server


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed_and_the_key_goes_nowhere_else(elsewhere: FakeServer, status: int) -> None:
    there = f"http://localhost:{elsewhere.port}/v1/chat/completions"
    with FakeServer(answer({}, status, Location=there)) as server:
        assert await outcome(server.url) == "server_refused"
        assert [request.headers["authorization"] for request in server.asked] == [f"Bearer {KEY}"]
    assert elsewhere.asked == []


async def test_no_proxy_and_no_key_of_the_environment_is_used(
    elsewhere: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, elsewhere.root)
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "canary-env")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Own: canary-env")
    with FakeServer(chooses("apply_fix", code="F401")) as server:
        async with ServerPolicy(replace(endpoint(server.url), api_key="")) as policy:
            await policy.decide(PROMPT)
        assert "canary-env" not in json.dumps(server.asked[0].headers)
        assert "authorization" not in server.asked[0].headers
    assert elsewhere.asked == []


@pytest.mark.parametrize("first", [answer({}, 503), answer({}, 429, Retry_After="0"), reset, answer({}, 500)])
async def test_a_server_that_is_only_busy_is_asked_again(first: Reply) -> None:
    with FakeServer(first, chooses("apply_fix", code="F401")) as server:
        assert await outcome(server.url) == "1 calls"
        assert len(server.asked) == 2


async def test_once_something_was_said_it_is_not_asked_again_and_what_was_said_is_kept() -> None:
    with FakeServer(reset_in_the_middle, chooses("apply_fix", code="F401")) as server:
        async with ServerPolicy(endpoint(server.url)) as policy:
            with pytest.raises(DecisionError) as broken:
                await policy.decide(PROMPT)
        assert (broken.value.text, broken.value.ask_again) == ('{"tool": "apply', True)
        assert len(server.asked) == 1


async def test_a_server_that_is_not_there_is_told() -> None:
    with FakeServer(reset) as server:
        pass
    assert await outcome(server.url) == "server_unreachable"


async def test_a_cancelled_decision_hangs_up() -> None:
    talking, gone = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def talks(wire: Wire) -> None:
        wire.head()
        loop.call_soon_threadsafe(talking.set)
        try:
            while not wire.over.wait(0.01):
                wire.send(chunk("x"))
        except OSError:
            loop.call_soon_threadsafe(gone.set)

    with FakeServer(talks) as server:
        async with ServerPolicy(replace(endpoint(server.url), deadline_s=60)) as policy:
            task = asyncio.create_task(policy.decide(PROMPT))
            await asyncio.wait_for(talking.wait(), 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(gone.wait(), 10)
