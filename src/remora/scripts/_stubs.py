"""Stubs, from the same parse as the schema: the declarations of a script for a type checker.

A `grail_dir` (`.grail`, as the specification names it) contains, for every script that was loaded with it:

    grail.pyi            defines `from grail import Input, external` for a type checker
    NAME/stubs.pyi       the inputs and host functions that the script declares
    NAME/tool.json       name, description, JSON Schema of the inputs, host functions
    NAME/code.py         the code that runs, with the script's line numbers

It can be deleted at any time; loading writes it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from remora.errors import ConfigError
from remora.scripts._parse import ExternalSpec, InputSpec

GRAIL_STUB = """from collections.abc import Callable
from typing import Any, TypeVar, overload

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Value = TypeVar("_Value")

@overload
def Input(name: str, *, description: str = ...) -> Any: ...
@overload
def Input(name: str, *, default: _Value, description: str = ...) -> _Value: ...
def external(function: _Function) -> _Function: ...
"""
_TYPING = "from typing import Any, Dict, List, Literal, Optional, Union\nimport typing\n"


def stubs(inputs: Sequence[InputSpec], externals: Sequence[ExternalSpec]) -> str:
    """The declarations as the text of a `.pyi` file."""
    lines = [f"{item.name}: {item.annotation}" for item in inputs] + [item.signature for item in externals]
    return _TYPING + "\n" + "".join(f"{line}\n" for line in lines)


def write_artefacts(folder: Path, name: str, texts: dict[str, str], tool: dict[str, Any]) -> None:
    """Write the artefacts of the script `name` to `folder`. Raises `ConfigError` if that fails."""
    files = {
        folder / "grail.pyi": GRAIL_STUB.encode(),
        folder / name / "stubs.pyi": texts["stubs"].encode(),
        folder / name / "code.py": texts["code"].encode(),
        folder / name / "tool.json": orjson.dumps(tool, option=orjson.OPT_INDENT_2) + b"\n",
    }
    try:
        for path, data in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)
    except OSError as error:
        raise ConfigError(f"`{folder}` cannot be written: {error.strerror}", hint="Name another `grail_dir`") from error
