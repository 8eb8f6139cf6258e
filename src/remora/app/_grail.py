"""The specification's executor: runs a script and returns its raw output and its packet delta."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from remora.context.contracts import make_error_result
from remora.context.summarizers import (
    FALLBACK,
    Summarizer,
    Unguarded,
    distill,
    get_default_summarizers,
    summarize_guarded,
)
from remora.errors import ToolError
from remora.events import PacketDelta
from remora.ports import SummaryGuard

if TYPE_CHECKING:
    from remora.scripts import Limits, Script, ScriptPool


class GrailExecutor:
    """Runs `.pym` scripts and returns `(raw_output, delta)`: `remora.runner.GrailExecutor`.

    The delta uses the tool's own summary, else a summarizer, else a generic line. If a script fails, the raw output is
    the error; no exception is raised. To share one pool over many calls, use `async with GrailExecutor() as run`.
    """

    def __init__(
        self,
        summarizers: Mapping[str, Summarizer] | None = None,
        *,
        grail_dir: Path | str | None = None,
        guard: SummaryGuard | None = None,
    ) -> None:
        self._summarizers = dict(get_default_summarizers() if summarizers is None else summarizers)
        self._grail_dir = grail_dir
        self._guard = guard or Unguarded()
        self._open = AsyncExitStack()
        self._pool: ScriptPool | None = None

    async def __aenter__(self) -> Self:
        from remora.scripts import ScriptPool

        self._pool = await self._open.enter_async_context(ScriptPool())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._pool = None
        await self._open.aclose()

    async def execute(
        self,
        script: Script | Path | str,
        inputs: Mapping[str, Any] | None = None,
        externals: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
    ) -> tuple[Any, PacketDelta]:
        """Run a script. Returns its whole result and its delta. Raises `DefinitionError` for an invalid script."""
        from remora.scripts import DEFAULT, Script, load

        loaded = script if isinstance(script, Script) else load(script, grail_dir=self._grail_dir)
        try:
            raw = await loaded.run(inputs, externals, limits or DEFAULT, self._pool)
        except ToolError as error:
            raw = make_error_result(error.message) | {"code": error.code}
        summary = await summarize_guarded(loaded.name, raw, self._summarizers, self._guard, FALLBACK)
        return raw, distill(loaded.name, raw, summary).delta
