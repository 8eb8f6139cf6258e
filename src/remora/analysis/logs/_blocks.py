"""Text, arguments and results as the various logs write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from remora.context.contracts import ToolSpec

SHELL = "shell"
"""The tool of a text action that does not begin with a name."""
_COMMAND = re.compile(r"\s*([A-Za-z_][\w-]*)(?=\s|$)")
_FENCE = re.compile(r"```(?:mswea_bash_command|bash|sh)\n(.*?)\n```", re.DOTALL)
_EXIT_CODE = re.compile(
    r"\A\s*(?:<exception>.*?</exception>\s*)?<returncode>(-?\d{1,10})</returncode>"
    r"|^(?:Process exited with code|Exit code:) (-?\d{1,10})$",
    re.MULTILINE,
)
_TEXT_KEYS = ("text", "content", "thinking", "reasoning", "summary", "refusal")


def text_of(content: Any) -> str:
    """Text, or the text of a message's parts. Parts that are not text are named."""
    if isinstance(content, list):
        return "\n".join(part if isinstance(part, str) else part_text(part) for part in content)
    return content if isinstance(content, str) else ""


def part_text(part: Any) -> str:
    """The text of one part of a message, or its kind in brackets."""
    found = part_words(part)
    return f"[{kind_of(part)}]" if found is None else found


def part_words(part: Any) -> str | None:
    """The text of one part of a message; None if it has none."""
    if not isinstance(part, Mapping):
        return None
    for key in _TEXT_KEYS:
        if isinstance(part.get(key), str):
            return str(part[key])
        if isinstance(part.get(key), list):
            return text_of(part[key])
    return None


def kind_of(part: Any) -> str:
    """What a part calls itself, short."""
    return str(part.get("type", "part"))[:40] if isinstance(part, Mapping) else "part"


def type_of(record: Mapping[str, Any]) -> str:
    """The `type` of a record or message; empty if it has none that is a text."""
    kind = record.get("type")
    return kind if isinstance(kind, str) else ""


def args_of(arguments: Any) -> dict[str, Any]:
    """The arguments by name. Text that is not a JSON object is kept as the model wrote it."""
    if isinstance(arguments, str):
        loaded = as_object(arguments or "{}")
        return loaded if loaded is not None else {"_arguments": arguments}
    return dict(arguments) if isinstance(arguments, Mapping) else {"_arguments": arguments} if arguments else {}


def as_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is; None if it is none."""
    try:
        loaded = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return loaded if isinstance(loaded, dict) else None


def result_of(content: Any) -> Any:
    """A tool's result: the object if the text is a JSON object, else the text, else the parts."""
    if isinstance(content, list) and not all(isinstance(part_words(part), str) for part in content):
        return content
    if content is not None and not isinstance(content, str | list):
        return content
    text = text_of(content)
    found = as_object(text) if text.lstrip().startswith("{") else None
    return text if found is None else found


def exit_code_of(result: Any) -> int | None:
    """The exit code of a command, as Codex and mini-swe-agent write it around the output; None if there is none."""
    if isinstance(result, Mapping):
        around = result.get("metadata")
        code = around.get("exit_code") if isinstance(around, Mapping) else None
        return code if isinstance(code, int) else None
    found = _EXIT_CODE.search(result[:400]) if isinstance(result, str) else None
    return int(found[1] or found[2]) if found else None


def output_of(result: Any) -> Any:
    """What a command printed, without the envelope that Codex puts around it."""
    wrapped = isinstance(result, Mapping) and result.keys() == {"output", "metadata"}
    return result["output"] if wrapped and isinstance(result["output"], str) else result


def action_of(action: Any) -> tuple[str, dict[str, Any]] | None:
    """A text action as tool and arguments. Its first word is the tool, if it is a name."""
    if not isinstance(action, str) or not action.strip():
        return None
    named = _COMMAND.match(action)
    return (named[1] if named else SHELL), {"command": action}


def fenced_command(text: str) -> str | None:
    """The one shell command in a fenced block; None if there is none, or more than one."""
    found = _FENCE.findall(text)
    return found[0] if len(found) == 1 else None


def tools_of(offered: Any) -> tuple[ToolSpec, ...]:
    """The tools that the log says were offered. Many logs do not say."""
    specs = map(_spec, offered) if isinstance(offered, list) else ()
    return tuple({spec.name: spec for spec in specs if spec is not None}.values())


def _spec(item: Any) -> ToolSpec | None:
    inner = item.get("function", item) if isinstance(item, Mapping) else None
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        return None
    schema = inner.get("parameters") or inner.get("input_schema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    fits = isinstance(properties, Mapping) and all(isinstance(each, Mapping) for each in properties.values())
    description = text_of(inner.get("description") or "")
    if not fits or not isinstance(schema, Mapping):
        return ToolSpec(name=inner["name"], description=description)
    return ToolSpec(name=inner["name"], description=description, parameters=dict(schema))
