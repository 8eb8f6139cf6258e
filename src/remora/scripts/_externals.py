"""Checks that the host functions that a script declares exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from remora.scripts._host import SIGNATURES
from remora.scripts._parse import ExternalSpec
from remora.scripts._problems import Problem


def external_problems(externals: Sequence[ExternalSpec]) -> Iterator[Problem]:
    """One problem for each that does not exist or has other parameters."""
    for spec in externals:
        if spec.name not in SIGNATURES:
            known = ", ".join(f"`{name}`" for name in SIGNATURES)
            yield Problem(spec.line, 1, f"host function `{spec.name}` does not exist", f"use one of {known}")
            continue
        names, required = SIGNATURES[spec.name]
        if len(spec.parameters) < required or spec.parameters != names[: len(spec.parameters)]:
            hint = f"declare `{spec.name}({', '.join(names)})`"
            yield Problem(spec.line, 1, f"parameters of `{spec.name}` differ", hint)
