"""A policy for OpenAI-compatible servers: streaming, with a deadline, and retries until the first output."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from remora.context.call_text import calls_in_text, is_only_calls, marked_calls
from remora.context.calls import drop_extra_arguments, sort_calls
from remora.context.cut import CUT, describe_cut
from remora.context.text import one_line
from remora.errors import (
    DecisionError,
    DecisionLate,
    MissingExtra,
    ReplyBroken,
    ReplyInvalid,
    ReplyTooLarge,
    ServerRefused,
    ServerUnreachable,
)
from remora.events import NoticeEvent
from remora.inference._constrain import response_format
from remora.inference._drafts import decide_drafts, draft_request
from remora.inference._fit import FIT_GRAMMAR, FIT_TOKENS, FIT_TOP, begun_call, call_to_check, fit_messages, judge_fit
from remora.inference._grammar import call_grammar
from remora.inference._servers import Endpoint
from remora.inference._stream import Overfull, Reply
from remora.ports import Decision, Drafting, Prompt

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from tenacity import RetryCallState

MAX_WAIT_S = 20.0
_TRY_LATER = (429, 500, 502, 503, 504)
_FIELD_REFUSED = (400, 422)
_OPTIONAL = (
    "grammar", "chat_template_kwargs", "reasoning_effort", "cache_prompt", "stream_options", "tool_choice",
    "temperature", "max_tokens", "seed",
)  # fmt: skip
"""Request fields that a server may refuse: it is asked again without the one that it names."""
_CLOSING_S = 1.0
"""Seconds for closing a stream."""


class ServerPolicy:
    """Decides by asking a server. Close it: `async with ServerPolicy(endpoint)`."""

    def __init__(self, endpoint: Endpoint, *, label: str = "") -> None:
        self.endpoint = endpoint
        self.name = f"{label or endpoint.preset.name}:{endpoint.model}"
        self._client = _client(endpoint)
        self._left_out: list[str] = []
        """Optional request fields that the server refused."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def decide(self, prompt: Prompt) -> Decision:
        """The model's calls, each valid for its tool. Raises a `DecisionError` that says what happened.

        A cancelled call closes the connection, which stops the server's work too.
        """
        if prompt.drafting is not None:
            return await self._draft(prompt, prompt.drafting)
        refused = len(self._left_out)
        reply = await self._reply(prompt)
        try:
            decision = self._read(prompt, reply, self._left_out[refused:])
        except ReplyInvalid:
            # Without arguments in the request, a model may write on until it is cut: ask about the tool that it named.
            begun = begun_call(prompt, reply.text)
            checked = await self._checked(prompt, Decision((begun,), **reply.fields())) if begun else None
            if checked is None or checked.fit.get("fits") is not False:
                raise
            return checked
        return await self._checked(prompt, decision)

    async def _draft(self, prompt: Prompt, drafting: Drafting) -> Decision:
        """The model's texts as calls, the best first: the likeliest text, and others that are drawn with seeds."""
        replies = [await self._reply(prompt, draft_request(drafting, place)) for place in range(drafting.count)]
        return decide_drafts(prompt, drafting, replies)

    async def _reply(self, prompt: Prompt, draft: Mapping[str, Any] | None = None) -> Reply:
        """The reply, within the deadline. `draft` are the request fields of a text that is no call."""
        reply, failed = Reply(), list[ServerUnreachable]()
        try:
            async with asyncio.timeout(self.endpoint.deadline_s):
                while True:
                    try:
                        await self._ask(prompt, reply, failed, draft)
                        return reply
                    except ServerRefused as error:
                        if not self._leave_out(error, prompt):
                            raise
        except TimeoutError as error:
            if failed and not reply.began:
                # The deadline cut a retry short. What the server answered says more than "late".
                raise failed[-1] from error
            late = f"`{self.name}` gave no decision within {self.endpoint.deadline_s:g} s"
            raise DecisionLate(late, hint="Raise `server.deadline_s`", **reply.fields()) from error

    async def _checked(self, prompt: Prompt, decision: Decision) -> Decision:
        """The decision, or `no_tool_fits` if the model says that its call does not do what was asked."""
        call = call_to_check(prompt, decision) if self.endpoint.checks_fit else None
        if call is None:
            return decision
        messages, reply = fit_messages(prompt, call), Reply()
        try:
            async with asyncio.timeout(self.endpoint.deadline_s):
                await self._ask_fit(messages, reply)
        except (DecisionError, TimeoutError) as error:
            unknown = f"Whether `{call.tool}` does what was asked is unknown: {str(error) or 'no answer in time'}"
            notice = NoticeEvent(code="fit_unknown", message=one_line(unknown, 300))
            return replace(decision, notices=(*decision.notices, notice))
        return judge_fit(prompt, decision, call, messages, reply)

    async def _ask_fit(self, messages: Sequence[Mapping[str, Any]], reply: Reply) -> None:
        """Ask for one word and its probability, or for the word alone if the server refuses to tell probabilities."""
        asked = self._request(Prompt(tuple(messages), ()), constrained=False) | {"max_tokens": FIT_TOKENS}
        if self.endpoint.preset.grammar and "grammar" not in self._left_out:
            asked["extra_body"] = {**asked["extra_body"], "grammar": FIT_GRAMMAR}
        try:
            await self._stream(asked | {"logprobs": True, "top_logprobs": FIT_TOP}, reply)
        except ServerRefused as error:
            if error.status not in _FIELD_REFUSED:
                raise
            await self._stream(asked, reply)

    def _leave_out(self, error: ServerRefused, prompt: Prompt) -> bool:
        """Leave out an optional field that the server names in its refusal. False if it names none."""
        if error.status not in _FIELD_REFUSED:
            return False
        asked = self._request(prompt)
        sent = {*asked, *asked["extra_body"]}
        for name in _OPTIONAL:
            if name in sent and name in error.message:
                self._left_out.append(name)
                return True
        return False

    async def _ask(
        self, prompt: Prompt, reply: Reply, failed: list[ServerUnreachable], draft: Mapping[str, Any] | None = None
    ) -> None:
        """Send the request, and retry until there is output. Waits in between, as long as the server asks for.

        Every failed attempt is added to `failed`.
        """
        from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, stop_before_delay

        again = AsyncRetrying(
            retry=retry_if_exception_type(ServerUnreachable),
            stop=stop_after_attempt(self.endpoint.attempts) | stop_before_delay(self.endpoint.deadline_s),
            wait=_pause,
            reraise=True,
        )
        async for attempt in again:
            with attempt:
                try:
                    await self._stream(self._request(prompt, draft), reply)
                except ServerUnreachable as error:
                    failed.append(error)
                    raise

    async def _stream(self, request: Mapping[str, Any], reply: Reply) -> None:
        async with self._translate_errors(reply):
            stream = await self._client.chat.completions.create(**request)
            try:
                kind = stream.response.headers.get("content-type", "")
                if not kind.startswith("text/event-stream"):
                    raise self._broken(reply, f"it is `{kind:.60}`, where `text/event-stream` was asked for")
                async for chunk in stream:
                    reply.add(chunk)
            finally:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CLOSING_S):
                        await stream.close()
        if not reply.finish:
            raise self._broken(reply, "it ended in the middle")

    def _request(
        self, prompt: Prompt, draft: Mapping[str, Any] | None = None, *, constrained: bool = True
    ) -> dict[str, Any]:
        endpoint = self.endpoint
        asked: dict[str, Any] = {
            "model": endpoint.model,
            "messages": [self._message(message) for message in prompt.messages],
            "temperature": endpoint.temperature,
            "max_tokens": endpoint.reply_limit(after_cut=prompt.after_cut),
            "seed": endpoint.seed,
            "stream": True,
            "stream_options": {"include_usage": True},
            "extra_body": {**endpoint.preset.extra, **endpoint.extra},
        }
        if draft is not None:
            asked |= draft
        elif not constrained:
            pass
        elif endpoint.asks_for == "tools":
            asked |= {"tools": prompt.openai_tools(), "tool_choice": "auto"}
        elif endpoint.constrained:
            asked |= self._constraint(prompt, asked["extra_body"])
        if "max_tokens" in self._left_out:
            asked["max_completion_tokens"] = asked["max_tokens"]
        asked["extra_body"] = {key: item for key, item in asked["extra_body"].items() if key not in self._left_out}
        return {key: item for key, item in asked.items() if key not in self._left_out}

    def _message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return {**message, "role": self.endpoint.system_role} if message.get("role") == "system" else dict(message)

    def _constraint(self, prompt: Prompt, extra: dict[str, Any]) -> dict[str, Any]:
        """What holds the reply to one of the offered calls: a grammar where the server has them, else a schema."""
        can = self.endpoint.preset.grammar and "grammar" not in self._left_out
        reasoned = self.endpoint.reasoned
        grammar = call_grammar(prompt.tools, reasoned=reasoned) if can else None
        if grammar is None:
            return {"response_format": response_format(prompt.tools, reasoned=reasoned)}
        return {"extra_body": {**extra, "grammar": grammar}}

    def _read(self, prompt: Prompt, reply: Reply, left_out: list[str]) -> Decision:
        """The decision in the reply. Raises `ReplyInvalid` if a valid call is required and missing."""
        text, json_only = reply.text, self.endpoint.asks_for == "json"
        written = reply.calls or (calls_in_text(text) if json_only else _offered_calls(text, prompt))
        calls, dropped = drop_extra_arguments(written, prompt.tools)
        good, bad = sort_calls(calls, prompt.tools, prompt.turn, strict=True)
        if not good and (bad or json_only or reply.finish == CUT or not text.strip()):
            reason = self._why_cut(prompt, reply) if reply.finish == CUT else ""
            raise ReplyInvalid(reason or (bad[0].error.message if bad else _no_call(reply)), **reply.fields())
        notices = [NoticeEvent(code="extra_arguments", message=sentence) for sentence in dropped]
        for name in left_out:
            told = f"The server refuses the request field `{name}`: it is asked without it"
            notices.append(NoticeEvent(code="server_cannot", message=told))
        return Decision(calls=good, bad=bad, notices=tuple(notices), **reply.fields())

    def _why_cut(self, prompt: Prompt, reply: Reply) -> str:
        limit = self.endpoint.reply_limit(after_cut=prompt.after_cut)
        written = reply.text or "".join(call["arguments"] for call in reply.calls[-1:])
        return describe_cut(written, limit, self.endpoint.reply_limit(after_cut=True))

    @asynccontextmanager
    async def _translate_errors(self, reply: Reply) -> AsyncIterator[None]:
        """Translate the client's errors. After the first output they are never `ServerUnreachable`."""
        import httpx2
        import openai

        from remora.inference._door import TooMuch

        try:
            yield
        except Overfull as error:
            raise ReplyTooLarge(f"`{self.name}` said more than {error}", **reply.fields()) from error
        except openai.APIStatusError as error:
            raise self._status(error.status_code, error, reply) from error
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            cause = error.__cause__ or error
            if isinstance(cause, TooMuch):
                raise ReplyTooLarge(f"The reply of `{self.name}` is too large", **reply.fields()) from error
            if isinstance(cause, httpx2.ReadTimeout):
                silent = f"`{self.name}` was silent for {self.endpoint.timeout_s:g} s"
                raise DecisionLate(silent, hint="Raise `server.timeout_s`", **reply.fields()) from error
            reason = f"{type(cause).__name__}: {self._error_text(cause)}"
            if reply.began or not isinstance(cause, httpx2.TransportError):
                raise self._broken(reply, reason) from error
            raise self._unreachable(reason) from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            # Raised by the client for chunks that are not JSON, or violate the protocol.
            raise self._broken(reply, f"{type(error).__name__}: {self._error_text(error)}") from error

    def _status(self, status: int, error: Any, reply: Reply) -> DecisionError:
        text = self._error_text(error)
        if status in _TRY_LATER:
            return self._unreachable(f"HTTP {status}: {text}", error.response.headers.get("retry-after"))
        if 300 <= status < 400:
            place = one_line(error.response.headers.get("location", ""), 100)
            text = f"it answers with a redirect to `{place}`, which is not followed"
        hint = (
            f"Is `{self.endpoint.model}` a model of this server, and the key right?" if status in (401, 404) else None
        )
        if status == 400 and "context" in text:
            hint = "Set `server.context` to the model's context window: prompts then stay within it"
        refused = ServerRefused(f"`{self.name}` refused with HTTP {status}: {text}", hint=hint, **reply.fields())
        refused.status = status
        return refused

    def _unreachable(self, reason: str, retry_after: str | None = None) -> ServerUnreachable:
        error = ServerUnreachable(
            f"`{self.name}` at {self.endpoint.url} gave no answer: {reason}", hint="Is the server running?"
        )
        error.retry_after_s = _seconds(retry_after)
        return error

    def _broken(self, reply: Reply, reason: str) -> ReplyBroken:
        return ReplyBroken(f"The reply of `{self.name}` cannot be used: {reason}", **reply.fields())

    def _error_text(self, error: BaseException) -> str:
        key = self.endpoint.api_key
        text = str(error).replace(key, "[key]") if key else str(error)
        return one_line(text, 200)


def _client(endpoint: Endpoint) -> AsyncOpenAI:
    try:
        from openai import AsyncOpenAI
    except ImportError as error:
        raise MissingExtra("The `openai` client, which speaks to model servers,", extra="agents") from error
    from remora.inference._door import http_client

    return AsyncOpenAI(
        base_url=endpoint.url,
        api_key="set by the transport",
        max_retries=0,
        http_client=http_client(endpoint.url, endpoint.api_key, endpoint.timeout_s),
    )


def _pause(state: RetryCallState) -> float:
    """Seconds until the next attempt: as the server asked, else exponential backoff."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after_s if isinstance(error, ServerUnreachable) else None
    return asked if asked is not None else min(MAX_WAIT_S, 0.125 * 2**state.attempt_number)


def _seconds(retry_after: str | None) -> float | None:
    try:
        return max(0.0, float(retry_after)) if retry_after else None
    except ValueError:
        return None


def _offered_calls(text: str, prompt: Prompt) -> tuple[dict[str, Any], ...]:
    """Calls in a text that may also be an answer: marked ones, nothing but JSON calls, or offered tools in JSON."""
    names = {tool.name for tool in prompt.tools}
    found = calls_in_text(text)
    are_calls = marked_calls(text) or is_only_calls(text) or all(call["tool"] in names for call in found)
    return found if are_calls else ()


def _no_call(reply: Reply) -> str:
    if not reply.text.strip():
        return "The reply is empty: expected a call"
    return f'The reply is not a call: expected {{"tool": NAME, "args": {{…}}}}, got {one_line(reply.text, 80)}'
