"""A script as a value: loaded once, checked, run as often as needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remora.context.schema import problems
from remora.errors import DefinitionError, ToolArgumentsInvalid
from remora.scripts._calls import HostFunction
from remora.scripts._check import CheckResult, check_files
from remora.scripts._modules import Module, ScriptFiles, join_sources
from remora.scripts._parse import ExternalSpec, InputSpec, parse
from remora.scripts._pool import DEFAULT, Limits, ScriptPool
from remora.scripts._problems import Problem
from remora.scripts._read import MAX_SOURCE, read_script, script_text
from remora.scripts._stubs import stubs, write_artefacts
from remora.scripts._values import MAX_IN, NotPlain, plain


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
    modules: tuple[Module, ...] = ()
    """The modules that it imports, which run before it."""
    files: ScriptFiles = field(default_factory=ScriptFiles, compare=False, repr=False)
    """The files that it may read."""

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of all inputs."""
        return {
            "type": "object",
            "properties": {item.name: dict(item.schema) for item in self.inputs},
            "required": [item.name for item in self.inputs if item.required],
        }

    @property
    def stubs(self) -> str:
        """The declared inputs and host functions as the text of a `.pyi` file."""
        return stubs(self.inputs, self.externals)

    def check(self) -> CheckResult:
        """Every problem of what the file says now, its types included: it may have changed since it was loaded."""
        return check_files([self.path])[0]

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
        done = await pool.run(
            self.path.name, self.source, inputs=bound, externals=given, limits=limits, modules=self.modules
        )
        return done.value


def load(path: Path | str, grail_dir: Path | str | None = None, files: ScriptFiles | None = None) -> Script:
    """The script at `path`. Raises `DefinitionError` with every problem. With `grail_dir`, writes its stubs there.

    `files` holds what scripts of one folder share, so that a module is parsed once. With a snapshot, the script itself
    comes from there.
    """
    path = Path(path)
    files = files or ScriptFiles(path.parent)
    text = read_script(path) if files.snapshot is None else script_text(files.read(path.name, MAX_SOURCE))
    if isinstance(text, Problem):
        raise DefinitionError(path, [str(text)])
    parsed = parse(text, path, files)
    script = Script(
        name=path.stem,
        path=path,
        description=parsed.description,
        inputs=tuple(parsed.inputs),
        externals=tuple(parsed.externals),
        source=parsed.source,
        modules=tuple(parsed.modules),
        files=files,
    )
    if grail_dir is not None:
        _keep(script, Path(grail_dir))
    return script


def _keep(script: Script, folder: Path) -> None:
    tool = {
        "name": script.name,
        "description": script.description,
        "parameters": script.parameters,
        "externals": {spec.name: spec.signature for spec in script.externals},
    }
    code = join_sources(script.modules, script.source)
    write_artefacts(folder, script.name, {"stubs": script.stubs, "code": code}, tool)


def check_arguments(tool: str, schema: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Returns if `values` fit `schema` exactly. Raises `ToolArgumentsInvalid` listing every misfit."""
    try:
        plain(dict(values), MAX_IN)
    except NotPlain as error:
        raise ToolArgumentsInvalid(tool, [str(error)]) from error
    if found := problems(schema, values):
        raise ToolArgumentsInvalid(tool, found)
