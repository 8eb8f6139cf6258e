"""`remora trace what-if`: recompute the prompts of recorded runs by other rules."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from remora import analysis, app
from remora.cli._console import (
    HERE,
    SOME_FAILED,
    JsonFlag,
    ProjectDir,
    StateDir,
    err,
    errors_as_sentences,
    print_json,
    slow_progress,
    tell,
)
from remora.cli._filters import Node, Operation, Outcome, Since, Tokenizer, Tool, Until
from remora.cli._opening import open_to_read
from remora.cli._showing import Clean, ShowSecrets, showing
from remora.errors import ConfigError
from remora.trace import Filter

if TYPE_CHECKING:
    from remora.context.render import Style

Summarizers = Annotated[
    list[str] | None,
    typer.Option(metavar="TOOL=NAME", help="Summarize this tool with NAME, package.module:Name or file.py:Name"),
]
OnlyRender = Annotated[
    bool, typer.Option("--only-render", help="Keep the recorded summaries; only render the prompts again")
]
MaxChanged = Annotated[
    float | None,
    typer.Option(min=0, max=1, metavar="SHARE", help="Fail if more of the prompts change, such as 0.1"),
]
MaxEvidenceLoss = Annotated[
    float | None,
    typer.Option(min=0, max=1, metavar="SHARE", help="Fail if recall or grounded turns fall by more, such as 0.01"),
]
MaxTokenGrowth = Annotated[
    float | None, typer.Option(min=0, metavar="SHARE", help="Fail if packets grow by more, such as 0.05")
]


def what_if(
    streams: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN|AGENT|FILE]...", help="Runs, agents or files; default: all")
    ] = None,
    summarizer: Summarizers = None,
    style: Annotated[str | None, typer.Option(help="json, markdown, account or chat; default: as recorded")] = None,
    budget: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of the packet, beside system text and tools; default: the recorded limit"),
    ] = None,
    only_render: OnlyRender = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show how each changed prompt differs")] = False,
    max_changed: MaxChanged = None,
    max_evidence_loss: MaxEvidenceLoss = None,
    max_token_growth: MaxTokenGrowth = None,
    node: Node = None,
    operation: Operation = None,
    tool: Tool = None,
    outcome: Outcome = None,
    since: Since = None,
    until: Until = None,
    tokenizer: Tokenizer = None,
    show_secrets: ShowSecrets = False,
    json: JsonFlag = False,
    project: ProjectDir = HERE,
    state_dir: StateDir = None,
) -> None:
    """Apply today's rules, or others, to recorded runs, and compare every prompt with the recorded one.

    Summarizes every recorded result again and rebuilds packets and prompts. No tool runs, no model is asked, and
    nothing is written. Prints, before and after: tokens of the packets, recall (the share of identifiers and numbers
    from the past, used by calls, that the prompt contained) and grounded turns (those with a recall of 100%).

    Exit code 1 if a limit that you set is exceeded, or if a run could not be compared.

    \b
    Examples:
      remora trace what-if
      remora trace what-if 7GX2KQF --budget 500 --diff
      remora trace what-if --since 2026-10-15 --summarizer search=tools.py:Search --max-evidence-loss 0.01
    """
    from remora.twotrack import Rules  # loads the fold, which no other command here needs

    with errors_as_sentences(), showing(show_secrets) as clean:
        other = app.OtherRules(
            rules=Rules(style=_style(style), budget=budget, only_render=only_render),
            summarizers=_summarizers(summarizer or ()),
            tokenizer=tokenizer,
            diffs=diff,
        )
        wanted = Filter(None, node, operation, tool, outcome, since, until)
        total, failed = asyncio.run(
            _compare(open_to_read(project, state_dir), other, streams or [], wanted, clean, json=json)
        )
        breaches = analysis.Tolerance(max_changed, max_evidence_loss, max_token_growth).breaches(total)
        for breach in breaches:
            err.print(Text.assemble(("failed: ", "bold red"), breach))
    raise typer.Exit(SOME_FAILED if breaches or failed else 0)


async def _compare(
    project: app.Project, other: app.OtherRules, names: list[str], wanted: Filter, clean: Clean, *, json: bool
) -> tuple[analysis.WhatIf, int]:
    """Compare and print. Returns the totals, and how many runs could not be compared."""
    from remora.cli import _render_what_if as render

    total, rows, problems = analysis.WhatIf(), [], []
    runs = project.streams.what_if(other)
    with slow_progress("runs", quiet=json) as progress:
        async with aclosing(runs.compare(names, wanted, progress)) as found:
            async for row in found:
                total = total.plus(row)
                problems += [f"{row.agent_id} was not compared: {row.problem}"] if row.problem else []
                rows += [clean(row)] if json or row.changed else []
    tell((*runs.notices, *problems))
    if json:
        print_json({"total": render.figures(total), "agents": [render.figures(row) for row in rows]})
    else:
        render.what_if(rows, total)
    return total, len(problems)


def _style(name: str | None) -> Style | None:
    from remora.context.render import STYLES

    if name is None:
        return None
    found = next((style for style in STYLES if style == name), None)
    if found is None:
        raise ConfigError(f"`--style {name}` is not known: expected {', '.join(STYLES)}")
    return found


def _summarizers(pairs: list[str] | tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        tool, _, name = pair.partition("=")
        if not tool or not name:
            raise ConfigError(f"`--summarizer {pair}`: expected TOOL=NAME, such as search=tools.py:Search")
        found[tool] = name
    return found
