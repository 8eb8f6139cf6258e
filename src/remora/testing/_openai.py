"""A fake `openai` client: it answers from a list and records the requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Protocol

from remora.config import RunnerConfig, ServerConfig


class Patcher(Protocol):
    """The part of pytest's `monkeypatch` that is used."""

    def setattr(self, target: Any, name: str, value: Any) -> None: ...


def make_server_config(**changes: Any) -> ServerConfig:
    """A server that does not exist, for `patch_openai`."""
    fields = {"server": "http://127.0.0.1:9/v1", "model": "test-model", "mode": "tools", "deadline_s": 10.0}
    return ServerConfig.model_validate(fields | changes)


def make_runner_config(**changes: Any) -> RunnerConfig:
    """The runner's default settings, with changes."""
    return RunnerConfig.model_validate(changes)


def patch_openai(monkeypatch: Patcher, responses: Iterable[Mapping[str, Any] | str]) -> list[dict[str, Any]]:
    """Answer requests of `openai` clients from this list, one message each. Returns the list of recorded requests.

    The server is not probed: it is assumed to have the model that the settings name.
    """
    import openai

    from remora import inference

    left, requests = list(responses), []

    class Client:
        def __init__(self, **_: Any) -> None:
            self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

        async def _create(self, **request: Any) -> Any:
            requests.append(request)
            if not left:
                raise AssertionError(f"request {len(requests)} came, but there are only {len(requests) - 1} responses")
            message = left.pop(0)
            reply = {"role": "assistant", "content": message} if isinstance(message, str) else dict(message)
            return _Stream(reply)

        async def close(self) -> None:
            return None

    async def probe(endpoint: inference.Endpoint) -> inference.Probed:
        return inference.Probed(endpoint, inference.EstimatedCounter(), None)

    monkeypatch.setattr(openai, "AsyncOpenAI", Client)
    monkeypatch.setattr(inference, "probe", probe)
    return requests


class _Stream:
    """A whole message in one chunk, then its end."""

    def __init__(self, message: dict[str, Any]) -> None:
        self._message = message
        self.response = SimpleNamespace(headers={"content-type": "text/event-stream"})

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        calls = [{"index": place, **call} for place, call in enumerate(self._message.get("tool_calls") or [])]
        delta = {"content": self._message.get("content"), "tool_calls": calls}
        yield {"model": "test-model", "choices": [{"index": 0, "delta": delta}]}
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]}

    async def close(self) -> None:
        return None
