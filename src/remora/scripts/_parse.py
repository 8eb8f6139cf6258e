"""The `.pym` format: a Python file whose header declares what it takes and what it needs.

    '''What the tool does; the model reads this.'''
    from remora.scripts import Input, external          (or: from grail import Input, external)

    path: str = Input("path", description="…")          an input; one without `default` is required
    @external
    async def read_file(path: str) -> str: ...          a host function, awaited in the code below

    from counting import words                          a module: `counting.py` in the same folder
    text = await read_file(path)
    {"summary": f"{words(text)} words"}                 the last expression is the result

The declarations are blanked out, not cut out, so every line and column of the code stays where its author sees it.
Modules (`_modules`) run before the script and follow the same rules.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remora.context.schema import problems
from remora.errors import DefinitionError
from remora.scripts._main import call_of_main
from remora.scripts._modules import Module, ScriptFiles
from remora.scripts._problems import Problem
from remora.scripts._schema import from_annotation
from remora.scripts._scopes import free_names, top_level_names
from remora.scripts._unsupported import MODULES, unsupported

HEADERS = ("grail", "remora.scripts")
NAMES = ("Input", "external")
_BUILTINS = frozenset(dir(builtins))
EXAMPLE = 'write `name: str = Input("name")`'


@dataclass(frozen=True)
class InputSpec:
    """One declared input."""

    name: str
    schema: dict[str, Any]
    required: bool
    default: Any = None
    annotation: str = "Any"
    """The type as the script writes it."""


@dataclass(frozen=True)
class ExternalSpec:
    """One declared host function."""

    name: str
    parameters: tuple[str, ...]
    line: int
    signature: str = ""
    """The declaration on one line, as a stub holds it."""


@dataclass
class Parsed:
    """Everything a script's text says."""

    description: str = ""
    inputs: list[InputSpec] = field(default_factory=list)
    externals: list[ExternalSpec] = field(default_factory=list)
    modules: list[Module] = field(default_factory=list)
    """The modules that it imports, in the order in which they run."""
    source: str = ""
    """The code that runs: the text with its declarations blanked out."""
    origins: dict[str, str] = field(default_factory=dict)
    """Its top-level names, each with where it comes from."""
    builtins: set[str] = field(default_factory=set)
    """The builtins that it uses."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def meanings(self) -> dict[str, str]:
        """What names mean in this file. Equal texts in two files mean the same thing."""
        return {**dict.fromkeys(self.builtins, "builtin"), **self.origins}


def parse(text: str, file: Path | str, files: ScriptFiles | None = None) -> Parsed:
    """What the script says. Raises `DefinitionError` with every problem at its line and column."""
    parsed = look(text, files, Path(file).name)
    if parsed.problems:
        raise DefinitionError(file, [str(problem) for problem in parsed.problems])
    return parsed


def look(text: str, files: ScriptFiles | None = None, file: str = "the script") -> Parsed:
    """What the script says, as far as it can be understood, with every problem in order of its place."""
    return _look(text, file, files or ScriptFiles(), within=())


def _look(text: str, file: str, files: ScriptFiles, within: tuple[str, ...]) -> Parsed:
    """The same for any file. `within`: names of the modules that import it, the outermost first, and its own."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        problem = Problem(error.lineno or 1, error.offset or 1, f"not Python: {error.msg}", "correct the syntax")
        return Parsed(problems=[problem])
    except (ValueError, RecursionError, MemoryError) as error:
        return Parsed(problems=[Problem(1, 1, f"not Python: {str(error) or 'nested too deeply'}", "write it simpler")])
    if not within and (call := call_of_main(tree)):
        text = f"{text.rstrip()}\n\n{call}\n"
        tree = ast.parse(text)
    reader = _Reader(tree, text, file, files, within)
    reader.read()
    reader.parsed.problems.sort()
    return reader.parsed


class _Reader:
    """Goes once over the top level, collecting declarations and every problem."""

    def __init__(self, tree: ast.Module, text: str, file: str, files: ScriptFiles, within: tuple[str, ...]) -> None:
        self.tree = tree
        self.text = text
        self.file = file
        self.files = files
        self.within = within
        self.lines = text.split("\n")
        self.parsed = Parsed(description=(ast.get_docstring(tree) or "").strip())
        self.nodes = list(ast.walk(tree))
        self.top_level = top_level_names(tree, self.nodes)
        self.from_modules: dict[str, str] = {}
        self.modules = set(within)
        self.imported: set[str] = set()
        self.names: set[str] = set()
        self.declarations: list[ast.stmt] = []

    def read(self) -> None:
        for statement in self.tree.body:
            self.statement(statement)
        self.misplaced()
        for node, what, hint in unsupported(self.nodes, self.modules):
            self.problem(node, what, hint)
        self.awaited()
        self.defined()
        self.parsed.origins = {name: self.origin(name, nodes) for name, nodes in self.top_level.items()}
        self.unambiguous()
        if not self.within and (not self.tree.body or not isinstance(self.tree.body[-1], ast.Expr)):
            self.problem(
                self.tree.body[-1] if self.tree.body else None,
                "no result",
                "end the file with an expression, or define `main()`",
            )
        self.parsed.source = _blank(self.text, self.declarations)

    def problem(self, node: ast.AST | None, what: str, hint: str) -> None:
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        before = self.lines[line - 1].encode()[:offset] if line <= len(self.lines) else b""
        self.parsed.problems.append(Problem(line, len(before.decode(errors="replace")) + 1, what, hint))

    def statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.ImportFrom(module=module) if module in HEADERS:
                self.header(statement)
            case ast.ImportFrom(module=str(module), level=0) if module not in MODULES:
                self.import_module(statement, module)
            case ast.Import(names=names) if any(alias.name in HEADERS for alias in names):
                self.problem(statement, f"`{ast.unparse(statement)}`", "write `from grail import Input, external`")
            case ast.AnnAssign(value=ast.Call(func=ast.Name(id="Input")) as call):
                self.input(statement, call)
            case ast.Assign(value=ast.Call(func=ast.Name(id="Input"))):
                self.declare(statement, "Input")
                self.problem(statement, "an input without a type", EXAMPLE)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_external(statement):
                self.external(statement)

    def header(self, statement: ast.ImportFrom) -> None:
        self.own_lines(statement)
        for alias in statement.names:
            if alias.name not in NAMES or alias.asname:
                self.problem(alias, f"`{ast.unparse(alias)}` cannot be imported", "import `Input` and `external`")
            self.imported.add(alias.name)

    def import_module(self, statement: ast.ImportFrom, name: str) -> None:
        """Add a module, the modules that it imports, and the host functions that they declare."""
        found = self.module(statement, name)
        if found is None:
            return
        file, module = found
        self.parsed.problems += [
            Problem(statement.lineno, 1, f"{file}:{each.line}:{each.column}: {each.what}", each.hint)
            for each in module.problems
        ]
        for alias in statement.names:
            if alias.asname or not (alias.name in module.origins or module.problems):
                self.problem(alias, f"`{ast.unparse(alias)}` cannot be imported", f"name what `{file}` defines")
            self.from_modules[alias.name] = module.origins.get(alias.name, file)
        for each in (*module.modules, Module(file, module.source, module.meanings)):
            if each.source and all(each.file != had.file for had in self.parsed.modules):
                self.parsed.modules.append(each)
        had = {one.name for one in self.parsed.externals}
        self.parsed.externals += [one for one in module.externals if one.name not in had]

    def module(self, statement: ast.ImportFrom, name: str) -> tuple[str, Parsed] | None:
        """The file name of a module and what it says; None if there is none, or if it imports itself."""
        found = self.files.module(name, importer=self.within[-1] if self.within else "")
        if found is None:
            return None
        file, text = found
        self.own_lines(statement)
        self.modules.add(name)
        if name in self.within:
            hint = "put what both need into a third file"
            self.problem(statement, f"`{file}` imports itself, through other modules", hint)
            return None
        if name not in self.files.parsed:
            self.files.parsed[name] = _look(text, file, self.files, (*self.within, name))
        return file, self.files.parsed[name]

    def defined(self) -> None:
        """Each file can be read alone: it defines or imports every name that it uses, other than builtins."""
        for node in free_names(self.tree, self.top_level, self.declarations):
            if node.id in _BUILTINS:
                self.parsed.builtins.add(node.id)
            else:
                hint = "define or import it here, or pass it as a parameter"
                self.problem(node, f"`{node.id}` is not defined in this file", hint)

    def origin(self, name: str, nodes: list[ast.AST]) -> str:
        """Where a top-level name comes from: a module, a host function, an import, or this file."""
        origins = {self.origin_of(name, node) for node in nodes}
        return origins.pop() if len(origins) == 1 else self.file

    def origin_of(self, name: str, node: ast.AST) -> str:
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                if module in self.modules:
                    return self.from_modules.get(name, module)
                return next(f"from {module} import {alias.name}" for alias in names if name == _bound(alias))
            case ast.Import(names=names):
                return next(f"import {ast.unparse(alias)}" for alias in names if name == _bound(alias))
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_external(node):
                return "host function"
        return self.file

    def unambiguous(self) -> None:
        """The files run as one text, so a name must mean the same in all of them."""
        seen: dict[str, tuple[str, str]] = {}
        hint = "rename one: a script and the modules that it imports run as one text"
        for module in self.parsed.modules:
            for name, meaning in module.meanings.items():
                had, file = seen.setdefault(name, (meaning, module.file))
                if had != meaning:
                    self.problem(None, f"`{name}` of `{file}` is another one in `{module.file}`", hint)
        for name, meaning in self.parsed.meanings.items():
            if name in seen and seen[name][0] != meaning:
                node = self.top_level[name][-1] if name in self.top_level else None
                self.problem(node, f"`{name}` is another one in `{seen[name][1]}`", hint)

    def input(self, statement: ast.AnnAssign, call: ast.Call) -> None:
        if self.within:
            self.problem(statement, "an input in a module", "declare it in the script, and pass it as a parameter")
        self.declare(statement, "Input")
        name = statement.target.id if isinstance(statement.target, ast.Name) else ""
        if not name or len(call.args) != 1 or not _is_text(call.args[0]) or ast.literal_eval(call.args[0]) != name:
            self.problem(call, f"`{ast.unparse(call):.80}` does not name its input", EXAMPLE)
        self.unique(statement, name)
        options = self.options(call)
        try:
            schema = from_annotation(statement.annotation)
        except ValueError as error:
            self.problem(statement.annotation, str(error), "declare the input with a JSON type")
            return
        default = options.get("default")
        if "default" in options and (misfit := problems(schema, default, f"default of `{name}`")):
            self.problem(call, misfit[0], "correct the default or the type")
        if options.get("description"):
            schema = schema | {"description": str(options["description"])}
        required = "default" not in options
        schema = schema if required else schema | {"default": default}
        self.parsed.inputs.append(InputSpec(name, schema, required, default, ast.unparse(statement.annotation)))

    def options(self, call: ast.Call) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for keyword in call.keywords:
            if keyword.arg not in ("default", "description"):
                what = f"`Input` has no option `{keyword.arg or '**'}`"
                self.problem(keyword.value, what, "use `default` and `description`")
                continue
            try:
                found[keyword.arg] = ast.literal_eval(keyword.value)
            except ValueError:
                self.problem(keyword.value, f"`{keyword.arg}` is not a constant", "write the value itself")
        return found

    def external(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.declare(function, "external")
        self.unique(function, function.name)
        if isinstance(function, ast.FunctionDef):
            self.problem(function, f"external `{function.name}` is not async", "write `async def`")
        if not _is_stub(function):
            self.problem(function, f"external `{function.name}` has a body", "write `...`: the host has the body")
        arguments = function.args
        if arguments.vararg or arguments.kwarg or arguments.posonlyargs or arguments.kwonlyargs:
            self.problem(
                function, f"external `{function.name}` takes more than plain parameters", "name each parameter"
            )
        names = tuple(argument.arg for argument in arguments.args)
        found = ExternalSpec(function.name, names, function.lineno, _signature(function))
        had = [one for one in self.parsed.externals if one.name == found.name]
        if not had:
            self.parsed.externals.append(found)
        elif had[0].signature != found.signature:
            self.problem(function, f"`{found.name}` is declared otherwise elsewhere", "declare it the same everywhere")

    def declare(self, statement: ast.stmt, word: str) -> None:
        self.own_lines(statement)
        if word not in self.imported:
            self.problem(statement, f"`{word}` is not imported", f"write `from grail import {word}` above")

    def own_lines(self, statement: ast.stmt) -> None:
        """Whole lines are blanked, so a declaration must not share one with code."""
        self.declarations.append(statement)
        sharing = [other for other in self.tree.body if other is not statement and _touch(other, statement)]
        if sharing:
            self.problem(statement, "a declaration shares its line", "give it a line of its own")

    def misplaced(self) -> None:
        """Declarations that are not at the top level would be taken for code."""
        mine = {id(node) for declaration in self.declarations for node in ast.walk(declaration)}
        for node in self.nodes:
            if isinstance(node, ast.Name) and node.id in NAMES and id(node) not in mine and node.id in self.imported:
                self.problem(node, f"`{node.id}` is used inside the code", "declare at the top level of the file")

    def awaited(self) -> None:
        """A host function that nobody awaits does nothing, and says so nowhere."""
        names = {spec.name for spec in self.parsed.externals}
        for node in self.nodes:
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Call)
                and isinstance(node.value.func, ast.Name)
            ):
                name = node.value.func.id
                if name in names:
                    self.problem(node, f"`{name}` is called but not awaited", f"write `await {name}(…)`")

    def unique(self, statement: ast.stmt, name: str) -> None:
        """A name means one thing."""
        if name in self.names:
            self.problem(statement, f"`{name}` is declared twice", "keep one declaration")
        self.names.add(name)


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _is_external(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(mark, ast.Name) and mark.id == "external" for mark in function.decorator_list)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_stub(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    rest = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return all(isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) for part in rest)


def _signature(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"async def {function.name}({ast.unparse(function.args)}){returns}: ..."


def _touch(other: ast.stmt, statement: ast.stmt) -> bool:
    first, last = _span(statement)
    other_first, other_last = _span(other)
    return other_first <= last and first <= other_last


def _span(statement: ast.stmt) -> tuple[int, int]:
    marks = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(mark.lineno for mark in marks)])
    return first, statement.end_lineno or statement.lineno


def _blank(text: str, declarations: list[ast.stmt]) -> str:
    lines = text.split("\n")
    for number in _numbers(declarations):
        lines[number - 1] = ""
    return "\n".join(lines)


def _numbers(declarations: list[ast.stmt]) -> Iterator[int]:
    for declaration in declarations:
        first, last = _span(declaration)
        yield from range(first, last + 1)
