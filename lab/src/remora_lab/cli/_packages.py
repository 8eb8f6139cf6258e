"""`remora bench packages`: agents on pinned packages of other people, rated by written-down rules."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from remora.cli._console import JsonFlag, err, errors_as_sentences, out, print_json, say
from remora.context.text import number, visible
from remora.errors import ConfigError

if TYPE_CHECKING:
    from remora_lab.real_packages.pinned import Package
    from remora_lab.real_packages.place import SuiteEnd
    from remora_lab.real_packages.results import Offered, RowEnd
    from remora_lab.real_packages.trial import Row

WORK = Path(".agentfs/packages")
OPERATIONS = "lint,docstring,test,sample_data,dead_code,annotations,documents"
Names = Annotated[list[str] | None, typer.Option("--package", "-p", help="Only this package; can be repeated")]


def packages(
    package: Names = None,
    operations: Annotated[str, typer.Option("--operations", "-o", help="Agents to run, comma-separated")] = OPERATIONS,
    row: Annotated[
        list[str] | None, typer.Option(help="rule, ruff, ruff-unsafe, or a model's name; `rule` by default")
    ] = None,
    server: Annotated[str, typer.Option(help="The server of models")] = "embedded",
    pinned: Annotated[Path | None, typer.Option(help="A YAML file with other pinned packages")] = None,
    index: Annotated[str, typer.Option(help="The package registry")] = "https://pypi.org/simple",
    work: Annotated[Path, typer.Option(help="The folder for downloads, projects and streams")] = WORK,
    out_file: Annotated[Path | None, typer.Option("--out", help="The file of results; one in the work folder")] = None,
    show: Annotated[int, typer.Option(min=0, help="Print this many changes for a person to judge")] = 0,
    json: JsonFlag = False,
) -> None:
    """Run agents on real packages, accept what they offer, run the packages' own tests, and rate every change.

    \b
    Examples:
      remora bench packages -o lint --row rule --row ruff --row ruff-unsafe
      remora bench packages -p xmltodict -o lint,docstring --row qwen2.5-coder-1.5b
      remora bench packages -o lint --show 25
      remora bench packages-report results.jsonl --page docs/benchmarks/packages.md
    """
    from remora.cli._analyze import operation_names
    from remora_lab.real_packages.pinned import read_pinned, select
    from remora_lab.real_packages.results import read_lines, write_lines

    with errors_as_sentences():
        names = operation_names([operations])
        chosen = select(read_pinned(pinned), package or [])
        rows = [_row(name, server) for name in row or ["rule"]]
        path = out_file or work / "results.jsonl"
        for each in chosen:
            root, before = _prepare(each, work, index)
            for one in rows:
                offered, end = _run(each, root, one, names, work, before)
                write_lines(path, [*offered, end])
                _tell_row(end, offered)
        changes, ends = read_lines([path])
        _print(changes, ends, show, json=json)


def packages_report(
    files: Annotated[list[Path], typer.Argument(help="Files of results; several are combined")],
    page: Annotated[Path | None, typer.Option(help="The docs page to put figures in")] = None,
    row: Annotated[str | None, typer.Option(help="Only examples of this row")] = None,
    show: Annotated[int, typer.Option(min=0, help="Print this many changes for a person to judge")] = 0,
    json: JsonFlag = False,
) -> None:
    """Summarize results on packages, print examples for a person to judge, and update the docs page.

    \b
    Examples:
      remora bench packages-report results.jsonl --show 25
      remora bench packages-report results.jsonl --page docs/benchmarks/packages.md
    """
    from remora_lab.real_packages.page import write_page
    from remora_lab.real_packages.results import read_lines

    with errors_as_sentences():
        changes, ends = read_lines(files)
        if not ends:
            raise ConfigError(f"`{files[0]}` holds no results")
        if page is not None:
            write_page(page, changes, ends)
            err.print(Text(visible(f"wrote {page}")))
        _print([each for each in changes if row in (None, each.row)], ends, show, json=json)


def _row(name: str, server: str) -> Row:
    from remora_lab.real_packages.trial import RUFF, RUFF_UNSAFE, RULE, Row

    if name in (RUFF, RUFF_UNSAFE):
        return Row(name, {})
    if name == RULE:
        return Row(name, {"server.server": "first-candidate"})
    return Row(name, {"server.server": server, "server.model": name})


def _prepare(package: Package, work: Path, index: str) -> tuple[Path, SuiteEnd]:
    """The package's folder, and how its own tests end before anything is changed."""
    from remora_lab.real_packages.pinned import fetch
    from remora_lab.real_packages.place import prepare, run_suite

    _say(f"{package.name}: fetch and install")
    archive = fetch(package, work / "sdist", index)
    root = prepare(package, archive, (work / "projects" / package.name).absolute())
    _say(f"{package.name}: its own tests")
    return root, asyncio.run(run_suite(root))


def _run(
    package: Package, root: Path, row: Row, operations: list[str], work: Path, before: SuiteEnd
) -> tuple[list[Offered], RowEnd]:
    from remora_lab.real_packages.trial import run_row

    state = (work / "state" / f"{package.name}-{row.name.replace('/', '-')}").absolute()
    return run_row(package, root, row, operations, state, before, lambda what: _say(f"{package.name}: {what}"))


def _say(text: str) -> None:
    err.print(Text(visible(text)))


def _tell_row(end: RowEnd, offered: list[Offered]) -> None:
    broken = f", {number(len(end.broken), 'test')} broken" if end.broken else ""
    _say(f"{end.package}: {end.row}: {number(len(offered), 'change')} offered in {end.seconds:.0f} s{broken}")


def _print(changes: list[Offered], ends: list[RowEnd], show: int, *, json: bool) -> None:
    from remora_lab.real_packages.page import BY_PACKAGE, RATED, examples, package_rows, rating_rows

    if json:
        print_json({"changes": changes, "rows": ends})
        return
    for head, rows in ((RATED, rating_rows(changes)), (BY_PACKAGE, package_rows(changes, ends))):
        table = Table(*head, box=None, pad_edge=False)
        for row in rows:
            table.add_row(*(Text(visible(cell)) for cell in row))
        out.print(table)
        say("")
    for place, each in enumerate(examples(changes, show), start=1):
        unsafe = ", marked unsafe" if each.unsafe else ""
        say(f"## {place}. {each.package} · {each.operation} · {each.node} · {each.row}{unsafe}", "bold")
        say(f"rules say {each.rating}: {each.why}")
        say(each.diff.rstrip("\n"))
        say("")
