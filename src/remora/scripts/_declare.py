"""The names that a script's header imports. The parser reads these declarations; they never run inside a script.

Their types let a type checker accept `name: str = Input("name")`, and refuse a default that does not fit the type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

Function = TypeVar("Function", bound=Callable[..., Any])
Value = TypeVar("Value")


@overload
def Input(name: str, *, description: str = "") -> Any: ...
@overload
def Input(name: str, *, default: Value, description: str = "") -> Value: ...
def Input(name: str, *, default: Any = None, description: str = "") -> Any:  # noqa: N802 - the specification's name
    """Declare an input: `path: str = Input("path", description="…")`. Without `default` it is required."""
    return default


def external(function: Function) -> Function:
    """Declare a host function: `@external async def read_file(path: str) -> str: ...`."""
    return function
