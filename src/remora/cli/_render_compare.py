"""Print comparisons, within the width of the terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from remora.cli._console import out, say
from remora.context.text import counts_text, number, one_line
from remora.events import short_id

if TYPE_CHECKING:
    from remora.analysis import AgentComparison, AgentPair, AgentReport, RunComparison, TurnPair, TurnView

WIDEST = 160
ONLY = 5
"""Agents that are listed of those that only one of two runs has."""
_STYLES = {"+": "green", "-": "red", "@": "cyan"}

_FROM_START = "they differ from the first turn on"


def width() -> int:
    """Columns to print: those of the terminal, at most `WIDEST`."""
    return min(out.width, WIDEST)


def agents(found: AgentComparison) -> None:
    """Print two agents side by side: facts, where they diverged, then each turn."""
    columns = Columns(found.left, found.right)
    columns.head()
    for name, left, right in _facts(found):
        columns.row(name, left, right)
    say("")
    if found.parted is None:
        say("They saw, chose and got the same in every turn", "bold")
        return
    before = found.parted - 1
    shared = f"turns 1 to {before} are the same" if before > 1 else "turn 1 is the same" if before else _FROM_START
    say(f"Diverged at turn {found.parted}, by what each {found.first}; {shared}", "bold")
    for line in found.seen:
        say(f"  {one_line(line, width() - 3)}" if line.strip() else "", _STYLES.get(line[:1], ""))
    say("")
    columns.head()
    for pair in found.turns:
        if pair.turn >= found.parted:
            _turn(columns, pair)


def runs(found: RunComparison) -> None:
    """Print two runs: each agent that ended otherwise, how many did not, and what only one of the runs has."""
    shared = [pair for pair in found.pairs if pair.left and pair.right]
    different = [pair for pair in shared if pair.differs]
    say(f"run {short_id(found.left)} and run {short_id(found.right)}", "bold")
    for pair in different:
        say(f"{pair.operation} {one_line(pair.node_id, width() - 20)}", "bold")
        say(f"  {short_id(found.left)}  {_agent_line(pair.left)}")
        say(f"  {short_id(found.right)}  {_agent_line(pair.right)}")
    same = len(shared) - len(different)
    say(f"{len(different)} differ, {same} ended the same" if found.pairs else "Neither run has an agent")
    _only_in(found.left, [pair for pair in found.pairs if not pair.right])
    _only_in(found.right, [pair for pair in found.pairs if not pair.left])
    both = [(pair.left.agent_id, pair.right.agent_id) for pair in different if pair.left and pair.right]
    for left, right in both[:1]:
        say(f"Turn by turn: remora trace diff {short_id(left)} {short_id(right)}")


def _only_in(run_id: str, pairs: Sequence[AgentPair]) -> None:
    """Print how many agents of one run have no counterpart, by operation, and the first of them."""
    if not pairs:
        return
    counts = Counter(pair.operation for pair in pairs)
    say(f"Only in {short_id(run_id)}: {', '.join(f'{count} × {name}' for name, count in counts.items())}", hang=2)
    for pair in pairs[:ONLY]:
        say(f"  {_agent_line(pair.left or pair.right)}  {pair.operation} {pair.node_id}", hang=4)
    if len(pairs) > ONLY:
        say(f"  … {len(pairs) - ONLY} more: `remora trace show {short_id(run_id)}`")


class Columns:
    """Rows with a name and two cells, each wrapped to its share of the width."""

    def __init__(self, left: AgentReport, right: AgentReport) -> None:
        self._left, self._right = (f"{short_id(agent.agent_id)} {agent.operation}" for agent in (left, right))
        self._name = 9
        self._cell = max(20, (width() - self._name - 4) // 2)

    def head(self) -> None:
        """Print the ids of both."""
        self.row("", self._left, self._right, style="bold")

    def row(self, name: str, left: str, right: str, style: str = "", *, differs: bool = False) -> None:
        """Print one row. With `differs`, a mark stands between the cells."""
        mark, cells = "≠" if differs else " ", [self._wrapped(left), self._wrapped(right)]
        for place in range(max(len(cells[0]), len(cells[1]), 1)):
            one, other = (cell[place] if place < len(cell) else "" for cell in cells)
            lead = name if place == 0 else ""
            say(f"{lead:<{self._name}}{one:<{self._cell}} {mark if place == 0 else ' '} {other}".rstrip(), style)

    def _wrapped(self, text: str) -> list[str]:
        lines = textwrap.wrap(one_line(text, self._cell * 6), self._cell, break_on_hyphens=False)
        return lines[:6]


def _facts(found: AgentComparison) -> Iterator[tuple[str, str, str]]:
    left, right = found.left, found.right
    rows = [
        ("on", left.node_id, right.node_id),
        ("asked", left.goal, right.goal),
        ("model", left.decided_by, right.decided_by),
        ("verdict", _verdict(left), _verdict(right)),
        ("turns", _turns(left), _turns(right)),
        ("tokens", f"{left.prompt_tokens:,}", f"{right.prompt_tokens:,}"),
        ("time", _time(left), _time(right)),
        ("files", _files(left), "the same" if found.same_files and right.files else _files(right)),
    ]
    yield from (
        (name, one, other if other != one or name not in ("on", "asked") else "the same")
        for name, one, other in rows
        if one or other
    )


def _saw(tokens: int) -> str:
    return f"{tokens:,} tokens" if tokens else "no prompt"


def _verdict(agent: AgentReport) -> str:
    check = agent.check
    return f"{agent.word} {counts_text(check)}" if check else agent.word


def _turns(agent: AgentReport) -> str:
    return f"{agent.turns} ({agent.inherited} inherited)" if agent.inherited else str(agent.turns)


def _time(agent: AgentReport) -> str:
    """Seconds; none for a log of another program, which took place at another time."""
    return "" if agent.status == "imported" else f"{agent.duration_s:.1f} s"


def _files(agent: AgentReport) -> str:
    return ", ".join(file.path for file in agent.files) or "none changed"


def _turn(columns: Columns, pair: TurnPair) -> None:
    left, right = pair.left, pair.right
    tokens = [_saw(view.tokens) if view else "ended" for view in (left, right)]
    columns.row(f"{pair.turn:>4} saw", *tokens, differs="saw" in pair.differs)
    if (left and left.said) or (right and right.said):
        columns.row("    told", left.said if left else "", right.said if right else "", differs=True)
    columns.row("   chose", _joined(left, "chose"), _joined(right, "chose"), differs="chose" in pair.differs)
    columns.row("     got", _joined(left, "got"), _joined(right, "got"), differs="got" in pair.differs)


def _joined(view: TurnView | None, part: str) -> str:
    if view is None:
        return "–"
    found: Sequence[str] = view.chose if part == "chose" else view.got
    error = f"refused: {view.error} " if part == "chose" and view.error else ""
    return error + "; ".join(found) or "nothing"


def _agent_line(agent: AgentReport | None) -> str:
    if agent is None:
        return "no agent"
    turns = number(agent.turns, "turn")
    return f"{short_id(agent.agent_id)}  {_verdict(agent):<18} {turns:>9}  {agent.prompt_tokens:>7,} tokens"


def forks(found: Sequence[AgentComparison], options: str) -> None:
    """Print one line for the agent and for each of its forks, and what to do next."""
    source = found[0].left
    say("")
    say(f"{'':<9}{'model':<16} {'verdict':<16} {'turns':>5} {'tokens':>7} {'time':>7}  diverged", "bold")
    say(_fork_line(source, "itself"))
    for item in found:
        parted = "nowhere" if item.parted is None else f"turn {item.parted}: {item.first}"
        say(_fork_line(item.right, parted))
    newest = short_id(found[-1].right.agent_id)
    say(f"Turn by turn: remora trace diff {short_id(source.agent_id)} {newest} {options}".rstrip())
    if any(item.right.files for item in found):
        say(f"Its changes: remora diff {newest} {options}".rstrip())


def _fork_line(agent: AgentReport, parted: str) -> str:
    return (
        f"{short_id(agent.agent_id):<9}{one_line(agent.decided_by, 16):<16} {one_line(_verdict(agent), 16):<16} "
        f"{agent.turns:>5} {agent.prompt_tokens:>7,} {agent.duration_s:>5.1f} s  {parted}"
    )
