"""What a script's header imports. The parser reads these declarations; they are never run inside a script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def Input(name: str, *, default: Any = None, description: str = "") -> Any:  # noqa: N802 - the specification's name
    """Declare an input: `path: str = Input("path", description="…")`. Without `default` it must be given."""
    return default


def external(function: Function) -> Function:
    """Declare a host function: `@external async def read_file(path: str) -> str: ...`."""
    return function
