"""The embedded model, the real one: it starts when asked, is held to a valid call, and ends with us."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from inference.real import smollm2
from inference.tiny import lora
from remora.app._models import model_deciders
from remora.config import ServerConfig
from remora.context.contracts import ToolSpec
from remora.context.models import DecisionPacket
from remora.context.render import render
from remora.context.schema import problems
from remora.errors import ConfigError, DecisionError, ServerUnreachable
from remora.events import CandidateAction
from remora.inference import PRESETS, Adapter, EmbeddedPolicy, EmbeddedServer, Endpoint, GgufCounter
from remora.inference._door import http_client
from remora.inference._threads import MAX_THREADS, cores, threads_for, threads_to_use
from remora.ports import Prompt
from remora.subagent import SUBMIT_RESULT

CODE = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
TOOLS = (
    ToolSpec(name="run_linter", description="List the lint errors of this code."),
    ToolSpec(name="apply_fix", description="Apply the safe fixes of one rule, such as F401.", parameters=CODE),
    SUBMIT_RESULT,
)
SYSTEM = "You fix lint errors in Python code by calling one tool at a time."


def lint_prompt(counter: GgufCounter, errors: int = 3) -> tuple[Prompt, int]:
    """A packet as the lint agent's second turn has it, and its tokens by our count."""
    packet = DecisionPacket(
        agent_id="a", goal="Fix lint errors in src/shop/cart.py", operation="lint", node_id="src/shop/cart.py", turn=2,
        candidate_actions=[CandidateAction(tool="apply_fix", args={"code": "F401"}, reason="1 fixable error")],
    )  # fmt: skip
    packet.add_action("run_linter", f"{errors} errors: F401 at line 1, E711 at line 9, F841 at line 12", "success")
    packet.update_knowledge("lint_errors_remaining", errors)
    rendered = render(packet, system_prompt=SYSTEM, tools=TOOLS, limit=1000, counter=counter)
    return Prompt(rendered.messages, TOOLS, tuple(packet.candidate_actions), 2), rendered.tokens["total"]


@pytest.fixture(scope="module")
def gguf() -> Path:
    return smollm2()


@pytest.fixture
async def policy(gguf: Path) -> AsyncIterator[EmbeddedPolicy]:
    async with EmbeddedPolicy(EmbeddedServer(gguf, context=2048)) as made:
        yield made


async def test_a_decision_on_a_lint_packet_is_a_valid_call_and_our_count_is_no_lower_than_the_servers(
    gguf: Path, policy: EmbeddedPolicy
) -> None:
    prompt, counted = lint_prompt(GgufCounter(gguf))
    decision = await policy.decide(prompt)
    (call,) = decision.calls
    spec = next(tool for tool in TOOLS if tool.name == call.tool)
    assert problems(spec.parameters, call.args) == []
    assert decision.usage["prompt_tokens"] <= counted <= decision.usage["prompt_tokens"] + 16
    again = await policy.decide(prompt)
    assert again.usage["prompt_tokens_details"]["cached_tokens"] >= decision.usage["prompt_tokens"] - 8


async def test_what_stands_in_the_prompt_is_guessed_instead_of_written_token_by_token(policy: EmbeddedPolicy) -> None:
    sentence = "Fixed three errors in the cart, and left one of them to people who know what it is for"
    child = await policy._server.ready()
    asked = {
        "messages": [{"role": "user", "content": f'Say it again: {{"summary":"{sentence}"}}'}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"schema": {"type": "object", "properties": {"summary": {"const": sentence}}}},
        },
        "temperature": 0,
        "max_tokens": 64,
    }
    async with http_client(child.url, child.key, 60) as client:
        told = (await client.post(f"{child.url}/v1/chat/completions", json=asked)).json()
    assert json.loads(told["choices"][0]["message"]["content"]) == {"summary": sentence}
    assert told["timings"]["draft_n_accepted"] >= 8


async def test_a_crash_is_a_typed_error_or_unseen_and_the_next_decision_has_a_new_child(
    gguf: Path, policy: EmbeddedPolicy
) -> None:
    prompt, _ = lint_prompt(GgufCounter(gguf))
    first = await policy._server.ready()
    os.kill(first.process.pid, signal.SIGSEGV)
    assert (await policy.decide(prompt)).calls
    second = await policy._server.ready()
    assert second.process.pid != first.process.pid
    assert first.process.poll() is not None


async def test_a_cancelled_decision_leaves_the_server_free_for_the_next(gguf: Path, policy: EmbeddedPolicy) -> None:
    prompt, _ = lint_prompt(GgufCounter(gguf))
    child = await policy._server.ready()
    task = asyncio.create_task(policy.decide(prompt))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await policy.decide(prompt)).calls
    assert await policy._server.ready() is child


async def test_the_child_sees_nothing_of_our_environment_and_its_key_is_in_no_list_of_processes(
    gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-in-the-environment")
    async with EmbeddedServer(gguf, context=512) as server:
        child = await server.ready()
        place = Path("/proc") / str(child.process.pid)
        if not place.exists():
            pytest.skip("no /proc here")
        assert b"canary" not in (place / "environ").read_bytes()
        assert child.key.encode() not in (place / "cmdline").read_bytes()
    assert child.process.poll() is not None


async def test_the_model_is_wired_with_its_exact_counter_its_window_and_its_digest(gguf: Path) -> None:
    async with model_deciders(ServerConfig(server="embedded", gguf=gguf, context=1024, max_tokens=64)) as found:
        assert (found.counter.exact, found.window, found.reserve, found.calling) == (True, 1024, 128, "text")
        assert found.limit(1000) == 896
        assert len(found.record["sha256"]) == 64


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF" + bytes(100)])
async def test_a_file_that_is_no_model_is_a_sentence_and_leaves_no_child(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("xllamacpp")
    (tmp_path / "broken.gguf").write_bytes(content)
    async with EmbeddedServer(tmp_path / "broken.gguf") as server:
        with pytest.raises(ServerUnreachable, match=r"`broken.gguf` cannot be used"):
            await server.ready()


async def test_a_path_that_is_no_gguf_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"PK\x03\x04")
    with pytest.raises(ConfigError, match="is not a GGUF file"):
        async with model_deciders(ServerConfig(server="embedded", gguf=tmp_path / "weights.bin")):
            pass


async def test_a_model_that_always_fails_is_not_started_for_ever(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    async with EmbeddedServer(tmp_path / "broken.gguf") as server:
        for _ in range(5):
            with pytest.raises(ServerUnreachable):
                await server.ready()
        with pytest.raises(ServerUnreachable, match="failed 5 times in a row"):
            await server.ready()


PARENT = """
import asyncio, sys
from pathlib import Path
from remora.inference import EmbeddedServer

async def main():
    child = await EmbeddedServer(Path(sys.argv[1]), context=512).ready()
    print(child.process.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.parametrize("stopped", [False, True])
def test_the_child_ends_with_us_also_when_we_are_killed_and_it_hangs(gguf: Path, stopped: bool) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(gguf)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    if stopped and sys.platform == "linux":
        os.kill(pid, signal.SIGSTOP)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 30
    while _lives(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _lives(pid)


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


def test_a_busy_machine_keeps_a_core_and_an_idle_one_gives_them_all() -> None:
    assert [threads_for(2, idle) for idle in (1.0, 0.95, 0.6, 0.0)] == [2, 2, 1, 1]
    assert [threads_for(8, idle) for idle in (1.0, 0.5, 0.89, 0.1)] == [8, 4, 7, 1]
    assert threads_for(64, 1.0) == MAX_THREADS
    assert 1 <= threads_to_use() <= cores()


async def words_of(policy: EmbeddedPolicy, prompt: Prompt) -> str:
    """What the model wrote, also where it was cut before a call was complete."""
    try:
        return (await policy.decide(prompt)).text
    except DecisionError as error:
        return error.text


@pytest.mark.faults
async def test_an_adapter_works_only_in_requests_that_name_it(gguf: Path, tmp_path: Path) -> None:
    (tmp_path / "loud.gguf").write_bytes(lora(fill=3.0))
    prompt, _ = lint_prompt(GgufCounter(gguf))
    free = replace(Endpoint(PRESETS["llamacpp"], "", mode="tools"), max_tokens=12)
    said = {}
    server = EmbeddedServer(gguf, context=1024, adapters=[tmp_path / "loud.gguf"])
    async with EmbeddedPolicy(server, free) as policy:
        for name, adapter in (("with", Adapter(0)), ("without", None), ("again", Adapter(0))):
            said[name] = await words_of(policy.using(adapter), prompt)
    async with EmbeddedPolicy(EmbeddedServer(gguf, context=1024), free) as plain:
        said["plain"] = await words_of(plain, prompt)
    assert said["with"] == said["again"] != said["without"] == said["plain"]


async def test_a_machine_without_room_for_a_process_is_a_typed_error(
    gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", full)
    async with EmbeddedPolicy(EmbeddedServer(gguf)) as policy:
        with pytest.raises(ServerUnreachable, match="did not start"):
            await policy.decide(lint_prompt(GgufCounter(gguf))[0])
