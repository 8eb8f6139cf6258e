"""What commands show of streams: what looks like a secret is redacted, unless it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Protocol, TypeVar

import typer

from remora.cli._console import tell
from remora.context.patterns import Redactor

Value = TypeVar("Value")

ShowSecrets = Annotated[
    bool, typer.Option("--show-secrets", help="Show what looks like a secret as it is recorded, not redacted")
]


class Clean(Protocol):
    """Returns a value as it is shown."""

    def __call__(self, value: Value, /) -> Value: ...


@contextmanager
def showing(show_secrets: bool = False, *, flag: bool = True) -> Iterator[Clean]:
    """Redact results before they are rendered, whole, because a cut or folded secret is not recognized any more.

    At the end, a notice says how many different secrets were redacted. Pass `flag=False` for a command without
    `--show-secrets`.
    """
    redactor = Redactor()
    try:
        yield _as_recorded if show_secrets else redactor.values
    finally:
        if redactor.count:
            how = ": `--show-secrets` shows them" if flag else ""
            what = "text that looks like a secret is" if redactor.count == 1 else "texts that look like secrets are"
            tell([f"{redactor.count:,} {what} redacted{how}"])


def _as_recorded(value: Value, /) -> Value:
    return value
