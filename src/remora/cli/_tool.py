"""`remora tool`: check a tool script, run it by hand, write its type stubs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from remora.app import ToolRun, open_project
from remora.cli._console import (
    BAD_CONFIG,
    HERE,
    SOME_FAILED,
    JsonFlag,
    ProjectDir,
    err,
    errors_as_sentences,
    print_json,
    say,
)
from remora.cli._render_review import patch
from remora.context.schema import describe
from remora.context.text import number, visible
from remora.errors import ConfigError

tool = typer.Typer(
    help="Check and run tool scripts (`.pym`), and list the tools of MCP servers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Scripts = Annotated[list[Path], typer.Argument(help="Scripts, or folders with scripts")]


@tool.command()
def check(paths: Scripts, json: JsonFlag = False, project: ProjectDir = HERE) -> None:
    """List every problem of every script: declarations, unsupported Python, types. Exit code 3 if there is one.

    \b
    Examples:
      remora tool check agents/
      remora tool check agents/lint/tools/run_linter.pym --json
    """
    with errors_as_sentences():
        found = open_project(project).tools.check(paths)
        if json:
            print_json([{"file": each.file, "ok": each.ok, "problems": each.problems} for each in found])
        else:
            for each in found:
                for problem in each.problems:
                    say(f"{each.file}:{problem}")
            wrong = sum(not each.ok for each in found)
            err.print(f"{number(len(found), 'script')}, {f'{wrong} with problems' if wrong else 'no problems'}")
    raise typer.Exit(0 if all(each.ok for each in found) else BAD_CONFIG)


@tool.command()
def run(
    path: Annotated[Path, typer.Argument(help="The script")],
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", help="`name=value`; parsed as JSON if possible, else text")
    ] = None,
    node: Annotated[str | None, typer.Option(help="Code to work on, as `path:qualified.name`")] = None,
    file: Annotated[str | None, typer.Option(help="File to work on, as its path in the project")] = None,
    limits: Annotated[
        str | None, typer.Option(help="strict, default or permissive; default: the agent's own setting")
    ] = None,
    command: Annotated[list[str] | None, typer.Option(help="A further program that the script may run")] = None,
    write: Annotated[bool, typer.Option("--write", help="Write its changes into the project")] = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
) -> None:
    """Run a script as an agent would, on a temporary copy-on-write workspace. Changes are discarded without `--write`.

    \b
    Examples:
      remora tool run agents/lint/tools/run_linter.pym --file src/cart.py
      remora tool run agents/lint/tools/apply_fix.pym --node src/cart.py:total --input code=F401
    """
    with errors_as_sentences():
        given = _inputs(inputs or ())
        running = open_project(project).tools.run(
            path, given, node=node, file=file, limits=limits, commands=command or (), write=write
        )
        done = asyncio.run(running)
        print_json(_as_json(done)) if json else _show(done)
    raise typer.Exit(SOME_FAILED if done.distilled.outcome == "error" else 0)


@tool.command()
def mcp(
    server: Annotated[
        list[str], typer.Argument(help="A server of your settings, a URL, or a command after `--`", metavar="SERVER")
    ],
    json: JsonFlag = False,
    project: ProjectDir = HERE,
) -> None:
    """List the tools of an MCP server as a model would see them, and how an agent's definition names them.

    \b
    Examples:
      remora tool mcp -- mcp-server-time --local-timezone=UTC
      remora tool mcp http://localhost:8000/mcp
    """
    with errors_as_sentences():
        found = asyncio.run(open_project(project).tools.mcp(server))
        if json:
            print_json(found)
            return
        for name, spec in found.items():
            if isinstance(spec, str):
                say(f"{name}: cannot be offered: {spec}\n", "red")
                continue
            say(name, "bold")
            say(f"  {spec.description}")
            for parameter, schema in spec.parameters["properties"].items():
                needed = "" if parameter in spec.parameters["required"] else ", optional"
                say(f"  {parameter}: {describe(schema)}{needed}  {schema.get('description', '')}".rstrip())
            say("")
        err.print(f"{number(len(found), 'tool')}. In an agent's definition:  tools: [{{name: …, mcp: SERVER}}]")


@tool.command()
def stubs(
    paths: Scripts,
    out: Annotated[Path, typer.Option("--out", help="Output folder")] = Path(".grail"),
    json: JsonFlag = False,
    project: ProjectDir = HERE,
) -> None:
    """Write type stubs (`.pyi`) for the inputs and host functions of scripts.

    \b
    Examples:
      remora tool stubs agents/
      MYPYPATH=.grail mypy --disable-error-code=top-level-await --disable-error-code=empty-body tools/my_tool.pym
    """
    with errors_as_sentences():
        folders = open_project(project).tools.write_stubs(paths, out)
        if json:
            print_json(folders)
            return
        for folder in folders:
            say(str(folder / "stubs.pyi"))


def _inputs(words: Sequence[str]) -> dict[str, Any]:
    """Parse `name=value` options. Raises `ConfigError` for one without a name."""
    pairs = [word.partition("=") for word in words]
    wrong = [word for word, (name, sign, _) in zip(words, pairs, strict=True) if not sign or not name]
    if wrong:
        raise ConfigError(f"`{wrong[0]:.80}` is not an input: expected `name=value`")
    return {name: _value(text) for name, _, text in pairs}


def _value(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _as_json(done: ToolRun) -> dict[str, Any]:
    action, delta = done.distilled.delta.action, done.distilled.delta
    return {
        "tool": done.tool,
        "outcome": done.distilled.outcome,
        "code": done.code,
        "summary": action.summary if action else "",
        "value": done.value,
        "delta": delta.model_dump(mode="json", exclude_defaults=True),
        "prints": done.prints,
        "outputs": done.outputs,
        "files": [change.path for change in done.changes],
        "diff": done.diff,
        "written": done.written,
    }


def _show(done: ToolRun) -> None:
    """Print the result. What the script printed goes to stderr."""
    delta = done.distilled.delta
    if done.prints:
        err.print(visible(done.prints.rstrip("\n")), markup=False)
    say(f"{done.distilled.outcome}: {delta.action.summary if delta.action else ''}", "bold")
    if delta.error and delta.error.set:
        say(f"error: {delta.error.set}", "red")
    for key, known in delta.knowledge.items():
        say(f"known: {key} = {orjson.dumps(known.value).decode()}")
    for action in delta.candidate_actions or ():
        say(f"next: {action.tool} {orjson.dumps(action.args).decode()}  {action.reason}")
    for line in delta.diagnostics:
        say(f"note: {line}")
    sys.stdout.flush()
    print_json(done.value)
    patch(done.diff.splitlines())
    if done.changes:
        fate = "written" if done.written else "discarded (use `--write` to keep them)"
        say(f"{number(len(done.changes), 'file')} changed, {fate}")
