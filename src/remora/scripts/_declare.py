"""What a script's header imports. The parser reads these declarations; they are never run inside a script.

They are typed so that a type checker takes `name: str = Input("name")` for what it is, and refuses a default that does
not fit the type.
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
    """Declare an input: `path: str = Input("path", description="…")`. Without `default` it must be given."""
    return default


def external(function: Function) -> Function:
    """Declare a host function: `@external async def read_file(path: str) -> str: ...`."""
    return function
