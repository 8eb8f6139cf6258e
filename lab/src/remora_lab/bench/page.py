"""Result tables in Markdown, and the documentation page with its charts. Made from stored results alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from remora.errors import ConfigError
from remora_lab.bench.charts import MARKS, Bar, Point, dots
from remora_lab.bench.controls import CONTROLS
from remora_lab.bench.results import Header, RungShare, Stored
from remora_lab.bench.rows import ROWS
from remora_lab.bench.stats import Interval
from remora_lab.bench.summary import Comparison, Line, Summary, summarize
from remora_lab.marks import between_marks

PAGE = "tasks.md"
BEGIN = "<!-- figures: `remora bench report` -->"
_HEADINGS = ("row", "tasks × seeds", "solved", "right tool", "turns", "prompt tokens a run", "largest prompt", "wall s")
_SHORT = _HEADINGS[:5]
"""What is told of agents that were never trained on."""


def page_files(stored: Stored, page: str) -> dict[str, str]:
    """By name: the page with its figures put in, and the charts that it shows. Raises `ConfigError`."""
    summary = summarize(stored.results)
    told = between_marks(page, BEGIN, figures(stored, summary), name=f"`{PAGE}`")
    return {PAGE: told, **charts(summary)}


def write_page(stored: Stored, folder: Path) -> list[Path]:
    """The page in `folder` and its charts hold these results."""
    page = folder / PAGE
    if not page.is_file():
        raise ConfigError(f"`{page}` does not exist", hint="Name the folder of the page with `--page`")
    made = page_files(stored, page.read_text(encoding="utf-8"))
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in made]


def figures(stored: Stored, summary: Summary) -> str:
    """All that stands between the marks."""
    parts = [_made_by(stored.headers), "### All operations", table(summary.of())]
    parts += ["![Tasks solved, by row](tasks-solved.svg)", "![Prompt tokens a run, by row](tasks-tokens.svg)"]
    if summary.comparisons:
        parts += ["### Against no model", "\n".join(map(_compared, summary.comparisons))]
    if summary.own:
        parts += _never_trained_on(summary.own)
    if ladders := _ladders(summary):
        parts += ["### The ladder", ladders]
    for operation in summary.operations:
        parts += [f"### {operation}", table(summary.of(operation=operation))]
    if len(summary.controls) > 1:
        parts += ["### Controls", _controls(summary), "![Tasks solved under each control](tasks-controls.svg)"]
    return "\n\n".join(parts)


def _never_trained_on(summary: Summary) -> list[str]:
    """How the rows do on agents that came with their suite."""
    agents = ", ".join(f"`{name}`" for name in summary.operations)
    told = f"{agents}: agents that came with their suite. The bundled adapter was not trained on them."
    rows = [_cells(line)[: len(_SHORT)] for line in summary.of()]
    parts = [
        "### Agents never trained on",
        told,
        "\n".join(_row(cells) for cells in (_SHORT, ["---"] * len(_SHORT), *rows)),
    ]
    return [*parts, "\n".join(map(_compared, summary.comparisons))] if summary.comparisons else parts


def _ladders(summary: Summary) -> str:
    """Who decided how often, for every ladder: on bundled agents, and on those of a suite's own."""
    head = ("ladder", "agents", "solved", "model", "share of decisions", "prompt tokens a decision", "s a decision")
    rows = [
        [line.title, agents, percent(line.success), f"`{name}`", *_shares(line, one)]
        for agents, lines in (("bundled", summary.of()), ("never trained on", summary.own.of() if summary.own else []))
        for line in lines
        for name, one in line.rungs.items()
    ]
    return "\n".join(_row(cells) for cells in (head, ["---"] * len(head), *rows)) if rows else ""


def _shares(line: Line, one: RungShare) -> list[str]:
    every = sum(each.decisions for each in line.rungs.values())
    return [
        f"{one.decisions / every:.0%}",
        *(f"{each / one.decisions:,.1f}" for each in (one.prompt_tokens, one.seconds)),
    ]


def table(lines: Sequence[Line]) -> str:
    """The figures of these lines as a Markdown table."""
    rows = [_cells(line) for line in lines]
    return "\n".join(_row(cells) for cells in (_HEADINGS, ["---"] * len(_HEADINGS), *rows))


def _cells(line: Line) -> list[str]:
    agent = line.right_tool is not None or line.prompt_tokens.value > 0
    mark = "" if line.exact or not agent else " (est.)"
    return [
        line.title,
        f"{line.tasks} × {line.seeds}",
        percent(line.success),
        percent(line.right_tool) if line.right_tool else "–",
        f"{line.turns.value:.1f}" if agent else "–",
        f"{line.prompt_tokens.value:,.0f} ({line.prompt_tokens.low:,.0f}–{line.prompt_tokens.high:,.0f}){mark}"
        if agent
        else "–",
        f"{line.largest_prompt:,}" if agent else "–",
        f"{line.wall_s.value:.1f}",
    ]


def percent(found: Interval) -> str:
    """A share with its interval, such as `62% (54–70)`."""
    return f"{100 * found.value:.0f}% ({100 * found.low:.0f}–{100 * found.high:.0f})"


def _compared(one: Comparison) -> str:
    points = [f"{100 * each:+.0f}" for each in one.points]
    if one.points.low <= 0 <= one.points.high:
        word = "no difference that these tasks show"
    else:
        word = "better" if one.points.value > 0 else "worse"
    return f"- {one.title} beside {one.against}: {points[0]} points ({points[1]} to {points[2]}): {word}."


def _controls(summary: Summary) -> str:
    """Success of every row under every control."""
    names = summary.controls
    table_rows = [_row(["row", *(CONTROLS[name].title for name in names)]), _row(["---"] * (len(names) + 1))]
    for line in summary.of():
        found = {each.control: each for each in summary.lines if _same_row(each, line) and not each.operation}
        if len(found) > 1:
            shown = [percent(found[name].success) if name in found else "–" for name in names]
            table_rows.append(_row([line.title, *shown]))
    return "\n".join(table_rows)


def _same_row(one: Line, other: Line) -> bool:
    return (one.row, one.model) == (other.row, other.model)


def charts(summary: Summary) -> dict[str, str]:
    """The page's charts by file name."""
    lines = summary.of()
    solved = [Bar(line.title, [_point(line.success, 100)], f"{100 * line.success.value:.0f}%") for line in lines]
    asked = [line for line in lines if line.prompt_tokens.value > 0]
    tokens = [Bar(line.title, [_point(line.prompt_tokens, 1)], f"{line.prompt_tokens.value:,.0f}") for line in asked]
    top = max((line.prompt_tokens.high for line in asked), default=1.0)
    made = {
        "tasks-solved.svg": dots("Tasks solved, with 95% intervals", solved, top=100, unit="%"),
        "tasks-tokens.svg": dots("Prompt tokens a run, mean with 95% intervals", tokens, top=_round_up(top)),
    }
    return made | ({"tasks-controls.svg": _controls_chart(summary)} if len(summary.controls) > 1 else {})


def _controls_chart(summary: Summary) -> str:
    names, bars = summary.controls, []
    for line in summary.of():
        found = {each.control: each for each in summary.lines if _same_row(each, line) and not each.operation}
        if len(found) > 1:
            points = [_point(found[name].success, 100, MARKS[names.index(name)]) for name in names if name in found]
            bars.append(Bar(line.title, points))
    return dots("Tasks solved under each control", bars, top=100, unit="%", legend=names)


def _point(found: Interval, scale: float, mark: str = "circle") -> Point:
    return Point(found.value * scale, found.low * scale, found.high * scale, mark)


def _round_up(value: float) -> float:
    step = 10.0 ** (len(str(int(value))) - 1)
    return (value // step + 1) * step


def _made_by(headers: Sequence[Header]) -> str:
    """Where, when and by which commands the figures were made."""
    if not headers:
        return "Nothing was measured yet."
    made: dict[str, list[Header]] = {}
    for header in headers:
        machine = header.machine
        where = f"{machine.get('cores', '?')} × {machine.get('cpu', '?')}, {machine.get('system', '?')}"
        versions = ", ".join(f"{name} {version}" for name, version in sorted(header.versions.items()))
        made.setdefault(f"{where} ({versions})", []).append(header)
    return "\n\n".join(_made_there(where, there) for where, there in made.items())


def _made_there(where: str, headers: Sequence[Header]) -> str:
    dates = sorted(header.date for header in headers)
    when = " to ".join(dict.fromkeys([dates[0], dates[-1]]))
    commands = dict.fromkeys(f"$ {header.command}" for header in headers)
    return "\n".join([f"Measured {when} on {where}:", "", "```console", *commands, "```"])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def describe_rows() -> str:
    """Every row and control by name, for the reference."""
    rows = [_row([f"`{row.name}`", row.title.format(model="a server's model")]) for row in ROWS.values()]
    controls = [_row([f"`{control.name}`", control.title]) for control in CONTROLS.values()]
    head = ["| row | what decides |", "|---|---|"]
    return "\n".join([*head, *rows, "", "| control | what is changed |", "|---|---|", *controls, ""])
