"""Runs third-party summarizers in a child process, with limits that always hold.

A backtracking regex holds the interpreter lock for hours, so nothing inside the process can stop it. The child is
killed from outside and replaced at the next use.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import pickle
from types import TracebackType
from typing import Any, Self

from remora.context.summary import Summarized, Summarizer
from remora.errors import ConfigError
from remora.sandbox._pipe import ChildPipe, NoAnswer

LIMIT_S = 2.0
"""Seconds for summarizing one result."""
START_S = 15.0
"""Seconds for starting the child, and for importing a summarizer."""
MAX_RESULT = 64 * 1024
"""Bytes that a summarizer may return."""


class SummaryChild:
    """A child process for third-party summarizers, started on first use. Close it: `async with SummaryChild()`."""

    def __init__(self, *, limit_s: float = LIMIT_S, start_s: float = START_S, max_result: int = MAX_RESULT) -> None:
        self._limit_s = limit_s
        self._start_s = start_s
        self._max_result = max_result
        self._pipe = ChildPipe(max_result)
        self._loaded: set[str] = set()
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop the child."""
        async with self._turn:
            await asyncio.to_thread(self._stop)

    def check(self, tool: str, summarizer: Summarizer) -> None:
        """Raises `ConfigError` if a child process could not load the summarizer."""
        kind = type(summarizer)
        try:
            pickle.dumps(summarizer)
        except Exception as error:
            raise _unreachable(tool, kind, f"it cannot be pickled ({error})") from error
        if kind.__module__ == "__main__":
            raise _unreachable(tool, kind, "it is defined in the script that was started")

    async def run(self, summarizer: Summarizer, raw_result: Any) -> Summarized:
        """Summarize the result in the child. If it fails or reaches a limit, only the problem is returned."""
        async with self._turn:
            work = asyncio.ensure_future(asyncio.to_thread(self._run, summarizer, raw_result))
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                self._pipe.kill()
                await asyncio.wait({work})
                raise

    def _run(self, summarizer: Summarizer, raw_result: Any) -> Summarized:
        try:
            pickled = pickle.dumps(summarizer)
            question = pickle.dumps((_key(pickled), None, raw_result))
        except Exception as error:  # noqa: BLE001 - third-party objects: any failure means the fallback
            return Summarized(problems=(f"could not be called: {type(error).__name__}",))
        try:
            return self._load(pickled) or self._ask(question)
        except NoAnswer as no_answer:
            self._stop()
            return Summarized(problems=(f"was stopped: {no_answer}",))

    def _load(self, pickled: bytes) -> Summarized | None:
        """Load the summarizer into the child. Returns the problem if that fails."""
        key = _key(pickled)
        if self._pipe.start():
            self._loaded.clear()
        if key in self._loaded:
            return None
        reply = self._pipe.exchange(pickle.dumps((key, pickled, None)), self._start_s)
        problem = _parse_reply(reply, self._max_result)
        if not problem.problems:
            self._loaded.add(key)
        return problem if problem.problems else None

    def _ask(self, question: bytes) -> Summarized:
        return _parse_reply(self._pipe.exchange(question, self._limit_s), self._max_result)

    def _stop(self) -> None:
        self._pipe.stop()
        self._loaded.clear()


def _key(pickled: bytes) -> str:
    return hashlib.sha256(pickled).hexdigest()


def _unreachable(tool: str, kind: type, reason: str) -> ConfigError:
    return ConfigError(
        f"Summarizer `{kind.__qualname__}` of `{tool}` cannot run in a child process: {reason}",
        hint="Define its class at the top of a module that can be imported, or pass `guard=Unguarded()`",
    )


def _parse_reply(reply: bytes, max_result: int) -> Summarized:
    """Parse the child's reply. Nothing in it is trusted."""
    try:
        answer = json.loads(reply)
    except (ValueError, RecursionError):
        return Summarized(problems=("returned an answer that is not valid",))
    if not isinstance(answer, dict):
        return Summarized(problems=("returned an answer that is not valid",))
    if "too_large" in answer:
        size = f"{answer['too_large']!s:.20}"
        return Summarized(problems=(f"returned {size} bytes: the limit is {max_result}",))
    summary, knowledge = answer.get("summary"), answer.get("knowledge")
    excerpts, problems = answer.get("excerpts"), answer.get("problems")
    return Summarized(
        summary=summary if isinstance(summary, str) else "",
        knowledge=knowledge if isinstance(knowledge, dict) else {},
        excerpts=tuple(excerpts) if isinstance(excerpts, list) else (),
        problems=tuple(map(str, problems)) if isinstance(problems, list) else (),
    )
