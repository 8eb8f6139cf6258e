"""Print both tracks of one turn: the prompt in parts with its budget, and what really happened."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.text import Text

from remora.analysis import Shown
from remora.cli._console import out
from remora.context.text import number, one_line, visible
from remora.errors import ConfigError
from remora.events import short_id

if TYPE_CHECKING:
    from remora.analysis import PromptItem, PromptPart
    from remora.app import Prompt, Viewing
    from remora.cli._showing import Clean
    from remora.trace import Outline
    from remora.view import Card, Cards, Output
    from remora.view import Line as OutputLine

WIDE = 120
"""Columns of a terminal from which on both tracks are side by side."""
GAP = " │ "
FEW = 6
"""Lines of one item, and of an argument, that are shown without `--full`."""
SOME = 16
"""Lines of an output that are shown without `--full`."""
BAR = 30
_BLANKS = re.compile(r"\n{3,}")
WINDOW = 64 * 1024
"""Bytes of an output that are read at once."""


@dataclass(frozen=True)
class Line:
    """A line of one track."""

    text: str = ""
    style: str = ""


def find_turn(outline: Outline, turn: int) -> int:
    """The place of a turn in its stream. Raises `ConfigError` if the stream has no such turn."""
    agent = f"Agent `{short_id(outline.path.stem)}`"
    if turn == 0:
        hint = "The first event of its stream holds what it was given: `--events` shows it"
        raise ConfigError(f"{agent} has no turn 0: a run begins with turn 1", hint=hint)
    index = outline.find(turn) if len(outline) else 0
    if len(outline) and outline[index].turn == turn:
        return index
    last = outline[len(outline) - 1].turn if len(outline) else 0
    known = "expected 1" if last == 1 else f"expected 1 to {last}"
    raise ConfigError(f"{agent} has no turn {turn}: {known}" if last else f"{agent} has no turns")


def one_turn(viewing: Viewing, outline: Outline, index: int, clean: Clean, *, full: bool) -> None:
    """Print both tracks of one turn, side by side where the terminal is wide enough. `clean` redacts what is shown."""
    from remora.view import Cards

    following = viewing.next_prompt(outline, index)
    cards = Cards(viewing, Shown(clean(following.parts)) if following else None, clean)
    is_wide = out.width >= WIDE
    width = (out.width - len(GAP)) // 2 if is_wide else out.width
    view = _TurnView(viewing, outline, cards, clean, width, full)
    prompt = clean(viewing.prompt(outline, index))
    saw = "all that the model saw" if prompt is None or prompt.is_recorded else "what a packet would have shown"
    short = [Line(f"SHORT TRACK  {saw}", "bold"), *view.short_track(prompt)]
    long = [Line("LONG TRACK  what really happened", "bold"), *view.long_track(index)]
    if following is not None:
        long += [Line(), Line(f"┃ marks a line that the prompt of turn {following.request.turn} contains", "dim")]
    name, turn = short_id(outline.path.stem), outline[index].turn
    _print([Line(f"agent {name} · turn {turn} of {outline[len(outline) - 1].turn}", "bold"), Line()])
    _beside(short, long, width) if is_wide else _print([*short, Line(), *long])
    more = [f"Next turn: remora trace show {name} --turn {turn + 1}"] if index + 1 < len(outline) else []
    more += [] if full else [f"In full: remora trace show {name} --turn {turn} --full"]
    _print([Line(), *map(Line, more)])


@dataclass(frozen=True)
class _TurnView:
    """Makes the lines of both tracks."""

    viewing: Viewing
    outline: Outline
    cards: Cards
    clean: Clean
    width: int
    full: bool

    def short_track(self, prompt: Prompt | None) -> Iterator[Line]:
        if prompt is None:
            yield Line("No prompt was sent in this turn")
            return
        request = prompt.request
        total, limit = request.tokens.get("total", 0), request.limit
        how = "" if request.counter.get("exact") else ", estimated"
        asked = f" · asked: {request.rung}" if request.rung else ""
        of_limit = f" of {limit:,}" if limit else ""
        place = f"seq {request.seq}" if prompt.is_recorded else "built now, not recorded"
        yield Line(one_line(f"{total:,}{of_limit} tokens{how} · {place}{asked}", self.width))
        if limit:
            filled = min(round(BAR * total / limit), BAR)
            yield Line(f"{'█' * filled}{'░' * (BAR - filled)}", "green" if total <= limit else "red")
        if request.left_out:
            words = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in request.left_out.items())
            yield from (Line(text, "yellow") for text in self._folded(f"left out: {words}", self.width))
        for part in prompt.parts:
            if part.name != "left_out":
                yield Line()
                yield from self._part(part, first=request.turn <= 1)

    def _part(self, part: PromptPart, *, first: bool) -> Iterator[Line]:
        marks = not first and part.name not in ("system", "turn")
        facts = [f"{part.tokens:,} tok"] if part.tokens is not None else []
        facts += [f"{part.new} new"] if marks and part.new else []
        hides = part.name == "system" and not self.full
        facts += [number(sum(len(item.text.splitlines()) for item in part.items), "line")] if hides else []
        yield Line(one_line(" · ".join([part.name.replace("_", " "), *facts]), self.width), "bold cyan")
        for item in () if hides else part.items:
            yield from self._item(item, is_new=marks and item.is_new)

    def _item(self, item: PromptItem, *, is_new: bool) -> Iterator[Line]:
        has_lines = "\n" in item.text
        text = f"{item.label}: {item.text}" if item.label and not has_lines else item.text
        lines = [one_line(item.label, self.width - 2)] if item.label and has_lines else []
        lines += self._folded(text, self.width - 2, whole=item.is_code)
        for place, line in enumerate(lines):
            yield Line(f"{'+' if is_new and not place else ' '} {line}", "green" if is_new else "")

    def long_track(self, index: int) -> Iterator[Line]:
        found = self.viewing.turn(self.outline, index)
        for card in map(self.clean, self.cards.make(found.events)):
            yield Line()
            yield from self._card(card)
        if found.more:
            yield Line(f"… {found.more:,} more bytes in this turn: `--events` prints them", "yellow")

    def _card(self, card: Card) -> Iterator[Line]:
        words = [text for text, _ in card.badges] + [f"{name} {value}" for name, value in card.facts.items()]
        tone = _STYLES.get(card.badges[0][1] if card.badges else "", "")
        yield Line(one_line(" · ".join([card.title, *words, f"seq {card.seq}"]), self.width), f"bold {tone}".strip())
        texts = [card.text] * bool(card.text) + [f"{name}: {value}" if value else name for name, value in card.args]
        for text in texts:
            yield from (Line(f"  {line}") for line in self._folded(text, self.width - 2, whole="\n" in text))
        for output in card.outputs:
            yield from self._output(output, is_prose=card.kind in ("reply", "user"))
        if card.files:
            yield Line("  " + one_line(f"changed: {', '.join(card.files)}", self.width - 2), "green")
        more = f" (+ {len(card.effect) - 1} more)" if not self.full and len(card.effect) > 1 else ""
        for name, value in card.effect if self.full else card.effect[:1]:
            yield Line("  " + one_line(f"→ packet, {name}: {value}{more}", self.width - 2), "cyan")

    def _output(self, output: Output, *, is_prose: bool) -> Iterator[Line]:
        if output.window.problem:
            yield Line("  " + one_line(f"cannot be shown: {output.window.problem}", self.width - 2), "yellow")
            return
        if output.part:
            yield Line("  " + one_line(f"{output.window.name}, {output.window.size:,} bytes:", self.width - 2), "dim")
        for line in self._lines(output) if self.full else output.lines[:SOME]:
            for piece in _wrapped(line.text, self.width - 2) if is_prose else self._fit(line.text, self.width - 2):
                yield Line(f"{'┃' if line.seen else ' '} {piece}", "" if line.seen else "dim")
        hidden = 0 if self.full else max(len(output.lines) - SOME, 0)
        rest = f"{output.more:,} of {output.window.size:,} bytes" if output.more > 0 and not self.full else ""
        if words := " and ".join(filter(None, (number(hidden, "line") if hidden else "", rest))):
            yield Line(f"  … {words} more", "yellow")

    def _lines(self, output: Output) -> Iterator[OutputLine]:
        """All lines of an output, window by window."""
        yield from output.lines
        while output.more > 0:
            event = self.viewing.event(self.outline, output.seq)
            output = self.cards.output(event, output.part, output.window.end, WINDOW)
            yield from output.lines

    def _folded(self, text: str, width: int, *, whole: bool = False) -> list[str]:
        """Text as lines that fit: `whole` lines stay lines, other text is broken between words."""
        lines = visible(_BLANKS.sub("\n\n", text)).rstrip("\n").split("\n")
        if whole:
            lines = [piece for line in lines for piece in self._fit(line, width)]
        else:
            lines = [piece for line in lines for piece in _wrapped(line, width)]
        shown = lines if self.full else lines[:FEW]
        hidden = len(lines) - len(shown)
        return [*shown, *([f"… {number(hidden, 'more line')}"] if hidden else [])]

    def _fit(self, text: str, width: int) -> list[str]:
        """A line that fits: cut, or with `full` as several."""
        text = visible(text).expandtabs(4)
        if cell_len(text) <= width:
            return [text]
        return chop_cells(text, width) if self.full else [set_cell_size(text, max(width - 1, 1)).rstrip() + "…"]


def _wrapped(line: str, width: int) -> list[str]:
    """A line broken between words. An empty one stays."""
    return textwrap.wrap(visible(line), max(width, 8), break_on_hyphens=False) or [""]


_STYLES = {"good": "green", "bad": "red", "warn": "yellow"}


def _beside(left: Sequence[Line], right: Sequence[Line], width: int) -> None:
    for one, other in zip_longest(left, right, fillvalue=Line()):
        row = Text(set_cell_size(one.text, width), style=one.style)
        out.print(Text.assemble(row, (GAP, "dim"), (other.text, other.style)))


def _print(lines: Iterable[Line]) -> None:
    for line in lines:
        out.print(Text(line.text, style=line.style))
