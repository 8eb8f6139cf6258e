"""A script as a value: loaded once, checked, run as often as needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remora.context.schema import problems
from remora.errors import DefinitionError, ToolArgumentsInvalid
from remora.scripts._calls import HostFunction
from remora.scripts._parse import ExternalSpec, InputSpec, parse
from remora.scripts._pool import DEFAULT, Limits, ScriptPool
from remora.scripts._values import NotPlain, plain

MAX_SOURCE = 256 * 1024


@dataclass(frozen=True)
class CheckResult:
    """What a static check found. `problems` are `line:col: what; hint`."""

    ok: bool
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Script:
    """A `.pym` file that parsed."""

    name: str
    path: Path
    description: str
    inputs: tuple[InputSpec, ...]
    externals: tuple[ExternalSpec, ...]
    source: str
    """The code that runs: every line where it stands in the file."""

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of all inputs."""
        return {
            "type": "object",
            "properties": {item.name: dict(item.schema) for item in self.inputs},
            "required": [item.name for item in self.inputs if item.required],
        }

    def check(self) -> CheckResult:
        """What the file says now, read again: it may have changed since it was loaded."""
        try:
            load(self.path)
        except DefinitionError as error:
            return CheckResult(False, error.problems)
        return CheckResult(True)

    def bind(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """All inputs, defaults filled in. Raises `ToolArgumentsInvalid` listing everything that does not fit."""
        check_arguments(self.name, self.parameters, values)
        return {item.name: values.get(item.name, item.default) for item in self.inputs}

    async def run(
        self,
        inputs: Mapping[str, Any] | None = None,
        externals: Mapping[str, HostFunction] | None = None,
        limits: Limits = DEFAULT,
        pool: ScriptPool | None = None,
    ) -> Any:
        """The script's result. Raises `ToolError`; without a `pool` one is opened for this run alone."""
        if pool is None:
            async with ScriptPool(max_processes=1) as own:
                return await self.run(inputs, externals, limits, own)
        wanted = {item.name for item in self.externals}
        given = {name: function for name, function in (externals or {}).items() if name in wanted}
        missing = sorted(wanted - given.keys())
        if missing:
            raise ToolArgumentsInvalid(self.name, [f"host function `{name}` is missing" for name in missing])
        bound = self.bind(inputs or {})
        return (await pool.run(self.path.name, self.source, inputs=bound, externals=given, limits=limits)).value


def load(path: Path | str, grail_dir: Path | str | None = None) -> Script:
    """The script at `path`. Raises `DefinitionError` with every problem. `grail_dir` is the specification's: unused."""
    path = Path(path)
    parsed = parse(_text(path), path)
    return Script(
        name=path.stem,
        path=path,
        description=parsed.description,
        inputs=tuple(parsed.inputs),
        externals=tuple(parsed.externals),
        source=parsed.source,
    )


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_SOURCE:
            raise DefinitionError(path, [f"1:1: larger than {MAX_SOURCE // 1024} KiB; split it into several tools"])
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DefinitionError(path, [f"1:1: cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise DefinitionError(path, ["1:1: not UTF-8; save it as UTF-8"]) from error


def check_arguments(tool: str, schema: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Returns if `values` fit `schema` exactly. Raises `ToolArgumentsInvalid` listing every misfit."""
    try:
        plain(dict(values))
    except NotPlain as error:
        raise ToolArgumentsInvalid(tool, [str(error)]) from error
    if found := problems(schema, values):
        raise ToolArgumentsInvalid(tool, found)
