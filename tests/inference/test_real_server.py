"""llama.cpp's own server on loopback, used as a user would: by nothing but its URL."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from inference.real import smollm2
from inference.test_embedded import TOOLS, lint_prompt
from remora.app import served_weights
from remora.config import ServerConfig
from remora.context.schema import problems
from remora.errors import ReplyInvalid
from remora.inference import Endpoint, GgufCounter, Probed, ServerPolicy, preset_of, probe
from remora.ports import Prompt

WINDOW, SLOTS = 3072, 2
SERVER = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.hostnames = sys.argv[1], 0, ["127.0.0.1"]
params.n_parallel, params.n_ctx = int(sys.argv[2]), int(sys.argv[2]) * int(sys.argv[3])
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.endpoint_slots, params.fit_params, params.verbosity = True, False, 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
import os
os._exit(0)
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A running server, as `llama-server -m FILE -np 2` starts it."""
    smollm2()
    command = [sys.executable, "-c", SERVER, str(served_weights(ServerConfig())), str(SLOTS), str(WINDOW)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        lines = (line.strip() for line in process.stdout)
        yield next(line for line in lines if line.startswith("http"))
        process.kill()


async def probed(url: str, **more: Any) -> Probed:
    preset, full = preset_of(url)
    return await probe(Endpoint(preset, full, deadline_s=300.0, timeout_s=300.0, **more))


def is_busy(url: str) -> bool:
    """Whether a slot of the server is working."""
    with urllib.request.urlopen(f"{url}/slots", timeout=30) as reply:  # noqa: S310 - our own server
        return any(slot["is_processing"] for slot in json.load(reply))


async def test_the_server_is_recognized_with_its_model_its_window_and_its_tokenizer(url: str) -> None:
    found = await probed(url)
    assert found.endpoint.preset.name == "llamacpp"
    assert (found.window, found.counter.exact, found.cannot) == (WINDOW, True, ())
    assert found.counter.count("def total(prices):") == GgufCounter(smollm2()).count("def total(prices):")
    served = served_weights(ServerConfig())
    for typed in (served.name, served.stem):
        assert (await probed(url, model=typed)).endpoint.model == found.endpoint.model


@pytest.mark.parametrize("mode", ["json", "tools"])
async def test_a_decision_in_either_mode_is_a_valid_call_or_an_answer(url: str, mode: Literal["json", "tools"]) -> None:
    found = await probed(url, mode=mode, max_tokens=48)
    prompt, counted = lint_prompt(GgufCounter(smollm2()))
    async with ServerPolicy(found.endpoint) as policy:
        try:
            decision = await policy.decide(prompt)
        except ReplyInvalid as error:
            assert mode == "tools" or "was cut at" in error.message
            return
    for call in decision.calls:
        spec = next(tool for tool in TOOLS if tool.name == call.tool)
        assert problems(spec.parameters, call.args) == []
    assert decision.calls or mode == "tools"
    if mode == "json":
        assert decision.usage["prompt_tokens"] <= counted


@pytest.mark.faults
async def test_agents_share_the_slots_and_each_finds_its_own_prompt_in_the_cache(url: str) -> None:
    found = await probed(url, max_tokens=48)
    prompts = [lint_prompt(GgufCounter(smollm2()), errors)[0] for errors in (3, 700)]
    async with ServerPolicy(found.endpoint) as policy:
        await asyncio.gather(*(usage_of(policy, prompt) for prompt in prompts))
        again = await asyncio.gather(*(usage_of(policy, prompt) for prompt in prompts))
    for usage in again:
        assert usage["prompt_tokens_details"]["cached_tokens"] >= usage["prompt_tokens"] // 2


async def usage_of(policy: ServerPolicy, prompt: Prompt) -> Mapping[str, Any]:
    """What the server counted. Without its adapter the small model may write until its limit, which is no call."""
    try:
        return (await policy.decide(prompt)).usage
    except ReplyInvalid as error:
        return error.usage


async def test_a_cancelled_decision_frees_its_slot(url: str) -> None:
    found = await probed(url, mode="tools", max_tokens=4000)
    prompt, _ = lint_prompt(GgufCounter(smollm2()), 9)
    async with ServerPolicy(found.endpoint) as policy:
        task = asyncio.create_task(policy.decide(prompt))
        while not await asyncio.to_thread(is_busy, url) and not task.done():
            pass
        task.cancel()
        with pytest.raises((asyncio.CancelledError, ReplyInvalid)):
            await task
    until = time.monotonic() + 60
    while await asyncio.to_thread(is_busy, url):
        assert time.monotonic() < until


@pytest.mark.faults
def test_all_bundled_agents_start_and_finish_with_nothing_but_the_url(url: str, tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text("import os\n\n\ndef total(prices: list[int]) -> int:\n    return sum(prices)\n")
    (tmp_path / ".git").mkdir()
    words = ["analyze", "cart.py", "-o", "lint,docstring,test,sample_data", "--server", url, "--max-turns", "1"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REMORA_SERVER")}
    done = subprocess.run(
        [sys.executable, "-m", "remora", *words, "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env=environment | {"REMORA_SERVER__DEADLINE_S": "600", "REMORA_SERVER__TIMEOUT_S": "300",
                           "REMORA_SERVER__MAX_TOKENS": "64"},
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    agents = json.loads(done.stdout)["agents"]
    assert {agent["operation"] for agent in agents} == {"lint", "docstring", "test", "sample_data"}
    assert {agent["outcome"] for agent in agents} <= {"partial", "success"}, agents
