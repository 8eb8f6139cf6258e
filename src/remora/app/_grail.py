"""The specification's executor: a script's raw output, and what the packet gets of it."""

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
    """Runs `.pym` scripts and gives `(raw_output, delta)`: `remora.runner.GrailExecutor`.

    The tool's own summary comes first, then a summarizer, then a generic line. A script that fails gives an error as
    its raw output, never an exception. Open it to share one pool over many calls: `async with GrailExecutor() as run`.
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
        """What the script returned, whole, and its delta. Raises `DefinitionError` only for what is no script."""
        from remora.scripts import DEFAULT, Script, load

        loaded = script if isinstance(script, Script) else load(script, grail_dir=self._grail_dir)
        try:
            raw = await loaded.run(inputs, externals, limits or DEFAULT, self._pool)
        except ToolError as error:
            raw = make_error_result(error.message) | {"code": error.code}
        made = await summarize_guarded(loaded.name, raw, self._summarizers, self._guard, FALLBACK)
        return raw, distill(loaded.name, raw, made).delta
