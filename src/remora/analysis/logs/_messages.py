"""Messages of the usual APIs as steps: OpenAI chat, OpenAI Responses, Anthropic, Inspect, OpenTelemetry, tau-bench.

They differ in where a call and its result are: in fields of the message, in parts of its content, or in items of their
own. Each is known by its shape, so logs that mix them are read too.
"""

from __future__ import annotations

from ast import literal_eval
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from remora.analysis.logs._blocks import (
    action_of,
    args_of,
    exit_code_of,
    fenced_command,
    kind_of,
    output_of,
    part_text,
    result_of,
    text_of,
    type_of,
)
from remora.analysis.logs._source import LogProblem
from remora.analysis.logs._steps import Assembler, Turn, UserMessage

_FIXED_ROLES = ("system", "developer")
_THINKING = ("thinking", "reasoning", "redacted_thinking")
_CALLS = ("tool_use", "tool_call", "server_tool_use", "mcp_tool_use")
_RESULTS = ("tool_result", "tool_call_response", "mcp_tool_result")
META_STARTS = (
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "# AGENTS.md instructions",
    "<skill>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<recommended_plugins>",
    "<permissions instructions>",
)
"""Beginnings of texts that a program writes in a person's place."""
_ITEM_CALLS = {
    "function_call": ("name", "arguments"),
    "custom_tool_call": ("name", "input"),
    "local_shell_call": ("", "action"),
    "shell_call": ("", "action"),
    "apply_patch_call": ("", "operation"),
    "computer_call": ("", "action"),
    "web_search_call": ("", "action"),
    "file_search_call": ("", "queries"),
    "code_interpreter_call": ("", "code"),
    "mcp_call": ("name", "arguments"),
    "tool_search_call": ("", "arguments"),
    "image_generation_call": ("", "prompt"),
}
SILENT_ITEMS = frozenset(
    [
        "ghost_snapshot",
        "compaction",
        "compaction_summary",
        "context_compaction",
        "item_reference",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
    ]
)
"""Items of OpenAI's Responses that hold no part of the conversation."""
_OUTPUT = "_output"
_MAX_LITERAL = 64 * 1024
"""Characters of a Python list that are read."""


class MessageReader:
    """Reads messages and items one by one into an `Assembler`."""

    def __init__(self, steps: Assembler, unknown: Counter[str], *, strict: bool, fenced: bool = False) -> None:
        """With `strict`, a result without its call is a problem; else it is counted as unknown.

        With `fenced`, the log is of mini-swe-agent: the one shell command in a fenced block of a reply is its call, and
        results begin with the command's exit code.
        """
        self._steps, self._unknown, self._strict, self._fenced = steps, unknown, strict, fenced
        self._reply: Turn | None = None
        """The turn that all items of one reply belong to."""

    def take(self, message: Any, place: str) -> None:
        """Read one message or item. Raises `LogProblem` if it is none."""
        if not isinstance(message, Mapping):
            raise LogProblem(f"{place}: expected an object with `role`")
        kind = type_of(message)
        if message.get("object") == "response" and isinstance(message.get("output"), list):
            self.take_reply(message["output"], place)
        elif kind in _ITEM_CALLS or kind.endswith(_OUTPUT):
            self._item(message, place)
        elif kind == "reasoning" and "role" not in message:
            self._current().thoughts.append(text_of(message.get("summary") or message.get("content") or []))
        elif isinstance(message.get("role"), str):
            self._message(message, place)
        elif kind in SILENT_ITEMS:
            return
        elif "type" in message:
            self._unknown[kind_of(message)] += 1
        else:
            raise LogProblem(f"{place}: expected an object with `role`")

    def take_reply(self, items: Sequence[Any], place: str) -> None:
        """Read all items of one reply into one turn, also those after the result of a call that the server made."""
        self._reply = self._steps.turn()
        try:
            for item in items:
                self.take(item, place)
        finally:
            self._reply = None

    def _message(self, message: Mapping[str, Any], place: str) -> None:
        role, content = message["role"], message.get("content", message.get("parts"))
        if content is not None and not isinstance(content, str | list):
            raise LogProblem(f"{place}.content: expected text or a list of parts")
        if role in _FIXED_ROLES or message.get("is_demo"):
            self._steps.user(text_of(content), fixed=True)
        elif role == "assistant":
            self._assistant(message, content, place)
        elif role in ("tool", "function"):
            self._tool(message, content, place)
        elif role == "tool-call":
            self._called(text_of(content))
        elif role == "tool-response":
            if not self._steps.result(None, text_of(content)):
                self._steps.user(text_of(content), meta=True)
        elif role == "exit":
            self._exit(message, text_of(content))
        elif role == "user":
            self._user(content, place)
        else:
            raise LogProblem(f"{place}: `role` is `{role:.40}`; expected system, user, assistant or tool")

    def _user(self, content: Any, place: str) -> None:
        """A person's message, or results in its parts, or the result of a text action."""
        words = []
        for part in content if isinstance(content, list) else []:
            if kind_of(part) in _RESULTS:
                self._result(*_part_result(part), place=place)
            else:
                words.append(part_text(part) if isinstance(part, Mapping) else str(part))
        if isinstance(content, list) and not words:
            return
        text = "\n".join(words) if isinstance(content, list) else content or ""
        last = self._steps.last
        if (
            last is not None
            and not isinstance(last, UserMessage)
            and last.by_text
            and len(last.results) < len(last.calls)
        ):
            last.results[0] = text
            if self._fenced and exit_code_of(text):
                last.failed.add(0)
        else:
            self._steps.user(text, meta=text.startswith(META_STARTS))

    def _assistant(self, message: Mapping[str, Any], content: Any, place: str) -> None:
        listed = message.get("tool_calls") or ()
        if not isinstance(listed, list | tuple):
            raise LogProblem(f"{place}.tool_calls: expected a list")
        # The items of one reply in OpenAI's Responses: messages, reasoning and calls, one after another.
        one = self._reply is not None or message.get("type") == "message"
        turn = self._current() if one else self._thought() or self._steps.turn()
        turn.model = str(message.get("model") or turn.model)
        _note_response(turn, message)
        if not content and isinstance(message.get("refusal"), str):
            content = message["refusal"]
        if isinstance(message.get("reasoning_content"), str):
            turn.thoughts.append(message["reasoning_content"])
        for part in content if isinstance(content, list) else [content] if content else []:
            if kind_of(part) in _THINKING and isinstance(part, Mapping):
                turn.thoughts.append(part_text(part))
            elif kind_of(part) in _CALLS and isinstance(part, Mapping):
                name = part.get("name")
                args = args_of(part.get("input", part.get("arguments")))
                self._steps.call(turn, str(part.get("id") or ""), str(name or "tool"), args)
            elif kind_of(part) in _RESULTS or kind_of(part).endswith("_tool_result"):
                self._result(*_part_result(part), place=place)
            else:
                turn.texts.append(part if isinstance(part, str) else part_text(part))
        if message.get("function_call"):
            listed = [*listed, {"function": message["function_call"]}]
        for at, item in enumerate(listed):
            self._steps.call(turn, *_listed_call(item, f"{place}.tool_calls[{at}]"))
        if not turn.calls:
            turn.by_text = True
            for tool, args in _text_actions(message, text_of(content) if self._fenced else ""):
                self._steps.call(turn, "", tool, args)

    def _thought(self) -> Turn | None:
        """The last turn if it holds only thoughts: logs of one block a message write them before the reply."""
        last = self._steps.last
        only = isinstance(last, Turn) and last.thoughts and not last.texts and not last.calls
        return last if only and isinstance(last, Turn) else None

    def _current(self) -> Any:
        """The turn that items belong to: the last one, until a result or a person's message closes it."""
        if self._reply is not None:
            return self._reply
        last = self._steps.last
        if last is None or isinstance(last, UserMessage) or last.results or last.key != "items":
            made = self._steps.turn()
            made.key = "items"
            return made
        return last

    def _item(self, item: Mapping[str, Any], place: str) -> None:
        kind, call_id = str(item["type"]), str(item.get("call_id") or item.get("id") or "")
        if kind.endswith(_OUTPUT):
            output = item.get("output")
            if isinstance(output, Mapping) and "content" in output:
                self._result(call_id, result_of(output["content"]), output.get("success") is False, place=place)
            else:
                found = result_of(output)
                failed = item.get("status") == "failed" or bool(exit_code_of(found))
                self._result(call_id, output_of(found), failed, place=place)
            return
        name, arguments = _ITEM_CALLS[kind]
        given = item.get(arguments)
        args = args_of(given) if kind in ("function_call", "mcp_call") else _item_args(arguments, given)
        self._steps.call(self._current(), call_id, str(item.get(name) or kind.removesuffix("_call")), args)
        for done in ("output", "results", "outputs", "error"):
            if item.get(done) is not None:
                self._result(call_id, result_of(item[done]), done == "error", place=place)
                return

    def _tool(self, message: Mapping[str, Any], content: Any, place: str) -> None:
        parts = [part for part in content if kind_of(part) in _RESULTS] if isinstance(content, list) else []
        for part in parts:
            self._result(*_part_result(part), place=place)
        if parts:
            return
        error = message.get("error")
        ids = message.get("tool_call_ids") or [message.get("tool_call_id") or message.get("id")]
        for call_id in ids if isinstance(ids, list) else [ids]:
            value = result_of(content)
            if isinstance(error, Mapping) and not value:
                value = text_of(error.get("message"))
            failed = bool(error) or (self._fenced and bool(exit_code_of(value)))
            self._result(str(call_id) if call_id else None, value, failed, place=place)

    def _called(self, text: str) -> None:
        """The calls of the message before, as smolagents writes them: a Python list in the text."""
        last = self._steps.last
        try:
            listed = literal_eval(text[text.find("[") :]) if len(text) < _MAX_LITERAL else None
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            listed = None
        if not isinstance(listed, list) or last is None or isinstance(last, UserMessage):
            self._unknown["calls in a text"] += 1
            return
        last.by_text = False
        for at, item in enumerate(listed):
            call_id, tool, args = _listed_call(item, f"tool-call[{at}]")
            self._steps.call(last, call_id, tool, args)

    def _exit(self, message: Mapping[str, Any], text: str) -> None:
        """The end of a mini-swe-agent run: the result of the command that ended it."""
        extra = message.get("extra")
        submitted = text or text_of(extra.get("submission") if isinstance(extra, Mapping) else "")
        if not self._steps.result(None, submitted) and submitted:
            self._steps.user(submitted, meta=True)

    def _result(self, call_id: str | None, value: Any, failed: bool = False, *, place: str) -> None:
        if self._steps.result(call_id, value, failed=failed):
            return
        if self._strict:
            raise LogProblem(f"{place}: a result for call `{call_id}`, which no assistant's message before it made")
        self._unknown["result without its call"] += 1


def _part_result(part: Mapping[str, Any]) -> tuple[str | None, Any, bool]:
    call_id = part.get("tool_use_id") or part.get("id")
    keys: tuple[str, ...] = ("content", "response", "result", "output")
    value = next((part[key] for key in keys if key in part), None)
    return str(call_id) if call_id else None, result_of(value), bool(part.get("is_error"))


def _listed_call(item: Any, place: str) -> tuple[str, str, dict[str, Any]]:
    """An element of `tool_calls`: in OpenAI's shape, or flat, with the function's name or itself as `name`."""
    function = item.get("function") if isinstance(item, Mapping) else None
    if isinstance(function, str):
        function = {"name": function, "arguments": item.get("arguments", item.get("args"))}
    elif function is None and isinstance(item, Mapping) and isinstance(item.get("name"), str):
        function = item
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise LogProblem(f"{place}: expected a `function` with its `name`")
    return str(item.get("id") or ""), function["name"], args_of(function.get("arguments", function.get("args")))


def _note_response(turn: Turn, message: Mapping[str, Any]) -> None:
    """Model and usage of the API's reply, which mini-swe-agent keeps beside the message."""
    extra = message.get("extra")
    response = extra.get("response") if isinstance(extra, Mapping) else None
    if not isinstance(response, Mapping):
        return
    turn.model = str(response.get("model") or turn.model)[:200]
    usage = response.get("usage")
    if isinstance(usage, Mapping):
        turn.usage = {str(key): value for key, value in usage.items() if isinstance(value, int)}


def _text_actions(message: Mapping[str, Any], text: str) -> list[tuple[str, dict[str, Any]]]:
    """The actions of an assistant that writes them into its text: SWE-agent, mini-swe-agent."""
    extra = message.get("extra")
    actions = extra.get("actions") if isinstance(extra, Mapping) else None
    if isinstance(actions, list):
        commands = [action.get("command") for action in actions if isinstance(action, Mapping)]
        return [("bash", {"command": command}) for command in commands if isinstance(command, str)][:1]
    named = action_of(message.get("action"))
    if named is None and "action" not in message and (command := fenced_command(text)) is not None:
        return [("bash", {"command": command})]
    return [named] if named else []


def _item_args(key: str, given: Any) -> dict[str, Any]:
    return dict(given) if isinstance(given, Mapping) else {key: given} if given is not None else {}
