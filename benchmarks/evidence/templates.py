"""Prompts as text, by the chat template of a model: for models that answer a file of prompts at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2.sandbox import ImmutableSandboxedEnvironment

from remora_lab.trainer.tensors import Gguf


def template_of(model: Path) -> Callable[[Mapping[str, Any]], str]:
    """Writes a prompt as the model's own chat template does, up to where the answer begins."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    template = environment.from_string(Gguf(model).meta["tokenizer.chat_template"])

    def write(row: Mapping[str, Any]) -> str:
        messages = [_with_objects(message) for message in row["messages"]]
        return template.render(messages=messages, tools=row["tools"], add_generation_prompt=True)

    return write


def _with_objects(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with the arguments of its calls as objects, as templates want them."""
    calls = [_with_object(call) for call in message.get("tool_calls") or ()]
    return {**message, "tool_calls": calls} if calls else dict(message)


def _with_object(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    given = function["arguments"]
    return {**call, "function": {**function, "arguments": json.loads(given) if isinstance(given, str) else given}}
