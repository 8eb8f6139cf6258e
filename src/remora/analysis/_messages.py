"""Messages of a chat log, or actions of a trajectory, as steps: user messages and assistant turns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from remora.events import Call

_FIXED_ROLES = ("system", "developer")
_COMMAND = re.compile(r"\s*([A-Za-z_][\w-]*)(?=\s|$)")
SHELL = "shell"
"""The tool of a text action that does not begin with a name."""


class ChatProblem(Exception):
    """What is wrong with a log, and where, in one sentence."""


@dataclass(frozen=True)
class UserMessage:
    """A message that is not the assistant's."""

    text: str
    fixed: bool = False
    """Whether every prompt begins with it: a system message or a demonstration."""


@dataclass(frozen=True)
class AssistantTurn:
    """An assistant's message: one turn, with the results of its calls."""

    text: str
    calls: tuple[Call, ...] = ()
    results: dict[int, Any] = field(default_factory=dict)
    """Results by the position of the call. The log has none for other calls."""
    by_text: bool = False
    """Whether the call is part of the text, so that its result is a user message."""

    def open_call(self, call_id: str | None) -> int | None:
        """The first call without a result: with that id, or any if the log gives none."""
        waiting = (index for index in range(len(self.calls)) if index not in self.results)
        return next((index for index in waiting if call_id in (None, self.calls[index].call_id)), None)


def read_messages(key: str, messages: Sequence[Any], observed: Sequence[Any] = ()) -> list[UserMessage | AssistantTurn]:
    """The steps of a list of messages. `observed` are the steps of the same trajectory, for a missing result."""
    steps: list[UserMessage | AssistantTurn] = []
    for index, message in enumerate(messages):
        place = f"{key}[{index}]"
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise ChatProblem(f"{place}: expected an object with `role`")
        _take(steps, message, place)
    _complete(steps, observed)
    return steps


def read_steps(trajectory: Sequence[Any]) -> list[UserMessage | AssistantTurn]:
    """The steps of a trajectory without messages: each an action and its observation."""
    steps: list[UserMessage | AssistantTurn] = []
    for index, item in enumerate(trajectory):
        if not isinstance(item, Mapping):
            raise ChatProblem(f"trajectory[{index}]: expected an object with `action` and `observation`")
        calls = _action(item.get("action"), index)
        results = {0: item["observation"]} if calls and "observation" in item else {}
        steps.append(
            AssistantTurn(text_of(item.get("response") or item.get("thought") or ""), calls, results, by_text=True)
        )
    return steps


def _take(steps: list[UserMessage | AssistantTurn], message: Mapping[str, Any], place: str) -> None:
    role, last = message["role"], steps[-1] if steps else None
    text = _text(message.get("content"), place)
    if role in _FIXED_ROLES or message.get("is_demo"):
        steps.append(UserMessage(text, fixed=True))
    elif role == "assistant":
        steps.append(_assistant(message, text, len(steps), place))
    elif role in ("tool", "function"):
        _result(steps, message, place)
    elif role != "user":
        raise ChatProblem(f"{place}: `role` is `{role:.40}`; expected system, user, assistant or tool")
    elif isinstance(last, AssistantTurn) and last.by_text and last.open_call(None) is not None:
        last.results[0] = text
    else:
        steps.append(UserMessage(text))


def _assistant(message: Mapping[str, Any], text: str, number: int, place: str) -> AssistantTurn:
    listed = message.get("tool_calls") or ()
    if not isinstance(listed, list | tuple):
        raise ChatProblem(f"{place}.tool_calls: expected a list")
    if message.get("function_call"):
        listed = [*listed, {"function": message["function_call"]}]
    if listed:
        return AssistantTurn(
            text, tuple(_call(item, f"{place}.tool_calls[{at}]", number) for at, item in enumerate(listed))
        )
    return AssistantTurn(text, _action(message.get("action"), number), by_text=True)


def _call(item: Any, place: str, number: int) -> Call:
    function = item.get("function") if isinstance(item, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ChatProblem(f"{place}: expected a `function` with its `name`")
    return Call(
        call_id=str(item.get("id") or f"call-{number}"), tool=function["name"], args=_args(function.get("arguments"))
    )


def _args(arguments: Any) -> dict[str, Any]:
    """The arguments by name. Text that is not a JSON object is kept as the model wrote it."""
    if isinstance(arguments, str):
        try:
            loaded = orjson.loads(arguments or "{}")
        except orjson.JSONDecodeError:
            loaded = None
        return loaded if isinstance(loaded, dict) else {"_arguments": arguments}
    return dict(arguments) if isinstance(arguments, Mapping) else {"_arguments": arguments} if arguments else {}


def _action(action: Any, number: int) -> tuple[Call, ...]:
    """A text action as a call. Its first word is the tool, if it is a name."""
    if not isinstance(action, str) or not action.strip():
        return ()
    named = _COMMAND.match(action)
    return (Call(call_id=f"call-{number}", tool=named[1] if named else SHELL, args={"command": action}),)


def _result(steps: list[UserMessage | AssistantTurn], message: Mapping[str, Any], place: str) -> None:
    ids = message.get("tool_call_ids") or [message.get("tool_call_id")]
    for call_id in ids if isinstance(ids, list) else [ids]:
        wanted = str(call_id) if call_id else None
        for step in reversed(steps):
            at = step.open_call(wanted) if isinstance(step, AssistantTurn) else None
            if isinstance(step, AssistantTurn) and at is not None:
                step.results[at] = _returned(message.get("content"), place)
                break
        else:
            raise ChatProblem(f"{place}: a result for call `{call_id}`, which no assistant's message before it made")


def _returned(content: Any, place: str) -> Any:
    """A tool's result: the object if the text is a JSON object, else the text, else the parts."""
    if isinstance(content, list) and not all(_is_text(part) for part in content):
        return content
    text = _text(content, place)
    if text.lstrip().startswith("{"):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
    return text


def _complete(steps: Sequence[UserMessage | AssistantTurn], observed: Sequence[Any]) -> None:
    """Add the last observation, which only the trajectory has: no message was sent after it."""
    acted = [step for step in steps if isinstance(step, AssistantTurn) and step.calls]
    final = observed[-1] if observed and len(acted) == len(observed) else None
    if isinstance(final, Mapping) and "observation" in final and acted[-1].open_call(None) is not None:
        acted[-1].results[0] = final["observation"]


def text_of(content: Any) -> str:
    """Text, or the text of a message's parts. Parts that are not text are named."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) if _is_text(part) else f"[{_kind(part)}]" for part in content)
    return content if isinstance(content, str) else ""


def _text(content: Any, place: str) -> str:
    if content is not None and not isinstance(content, str | list):
        raise ChatProblem(f"{place}.content: expected text or a list of parts")
    return text_of(content)


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and isinstance(part.get("text"), str)


def _kind(part: Any) -> str:
    return str(part.get("type", "part"))[:40] if isinstance(part, Mapping) else "part"
