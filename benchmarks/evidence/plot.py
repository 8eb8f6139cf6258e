"""Draws recall and grounded turns against the tokens that were sent, as plain SVG for light and dark themes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import log
from typing import Any

PANELS = {"tau": "Help desk", "mixed, joined": "One long run"}
MEASURES = {"recall": "recall", "grounded": "grounded turns"}
LEFT, TOP, PANEL_WIDTH, PANEL_HEIGHT, GAP_X, GAP_Y = 54, 62, 380, 240, 52, 54
TICKS = (250, 500, 1000, 2000, 4000)
FIRST, LAST = 240, 5000
"""Tokens at the left and right edge. Points beyond them are not drawn."""
OURS = "remora"
HIDDEN = ("task only",)
_COLORS = (
    ("#8a5a00", "#e0a84a"),
    ("#6b4fbb", "#b8a2f2"),
    ("#b3261e", "#ff8a80"),
    ("#1d6fb8", "#7cc0ff"),
    ("#2e7d32", "#86d08a"),
    ("#a03c8c", "#f29ad9"),
    ("#5a6570", "#b6c2cf"),
    ("#946c00", "#f0d060"),
    ("#00707f", "#6fd3e0"),
    ("#7a4a3a", "#d9a590"),
)
_DASHES = ("", "5 3", "2 3", "8 3 2 3")


@dataclass(frozen=True)
class Frame:
    """Where one chart stands, and the share at its foot."""

    x: float
    y: float
    low: float

    def place(self, tokens: float, share: float) -> tuple[float, float]:
        across = log(tokens / FIRST) / log(LAST / FIRST)
        return self.x + PANEL_WIDTH * across, self.y + PANEL_HEIGHT * (1 - (share - self.low) / (1 - self.low))


def draw(results: Mapping[str, Any]) -> str:
    """One chart for each suite and measure, with a common legend."""
    rows = [row for row in results["rows"] if row["suite"] in PANELS and row["memory"] not in HIDDEN]
    names = sorted(dict.fromkeys(row["memory"] for row in rows), key=lambda name: name != OURS)
    foot = TOP + 2 * (PANEL_HEIGHT + GAP_Y)
    width, height = LEFT + 2 * PANEL_WIDTH + GAP_X + 24, foot + 26 * -(-len(names) // 3) + 20
    title = "How much of what the next call needs is shown, by tokens sent"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">',
        f"<style>{_style(names)}</style>",
        f'<rect class="back" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>',
        _text(14, 26, title, "text", "start"),
    ]
    for row, (measure, told) in enumerate(MEASURES.items()):
        low = 0.5 if measure == "recall" else 0.3
        for column, (suite, panel) in enumerate(PANELS.items()):
            frame = Frame(LEFT + column * (PANEL_WIDTH + GAP_X), TOP + row * (PANEL_HEIGHT + GAP_Y), low)
            parts += _axes(frame, f"{panel}: {told}")
            for number, name in reversed(list(enumerate(names))):
                points = [each for each in rows if (each["suite"], each["memory"]) == (suite, name)]
                parts += _line(frame, number, points, measure)
    parts += _legend(names, foot)
    return "".join([*parts, "</svg>\n"])


def off_chart(results: Mapping[str, Any]) -> list[str]:
    """Memories with a point beyond the right edge, because they sent more."""
    rows = [row for row in results["rows"] if row["suite"] in PANELS and row["tokens"] > LAST]
    return list(dict.fromkeys(f"{row['memory']} ({PANELS[row['suite']].lower()})" for row in rows))


def _axes(frame: Frame, title: str) -> Iterator[str]:
    yield _text(frame.x, frame.y - 12, title, "text", "start")
    steps = round((1 - frame.low) * 10)
    for step in range(steps + 1):
        share = frame.low + step / 10
        _, y = frame.place(FIRST, share)
        yield f'<line class="grid" x1="{frame.x}" y1="{y:.1f}" x2="{frame.x + PANEL_WIDTH}" y2="{y:.1f}"/>'
        yield _text(frame.x - 6, y + 4, f"{share:.0%}", "soft", "end")
    for tokens in TICKS:
        if FIRST <= tokens <= LAST:
            x, _ = frame.place(tokens, 1)
            foot = frame.y + PANEL_HEIGHT
            yield f'<line class="grid" x1="{x:.1f}" y1="{frame.y}" x2="{x:.1f}" y2="{foot}"/>'
            yield _text(x, foot + 16, f"{tokens:,}", "soft", "middle")


def _line(frame: Frame, number: int, points: Sequence[Mapping[str, Any]], measure: str) -> Iterator[str]:
    shown = [(point["tokens"], point[measure]) for point in points]
    shown = [(tokens, share) for tokens, share in shown if FIRST <= tokens <= LAST and share >= frame.low]
    places = [frame.place(tokens, share) for tokens, share in sorted(shown)]
    if len(places) > 1:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<polyline class="line r{number}" points="{path}"/>'
    yield from (_mark(x, y, number) for x, y in places)


def _mark(x: float, y: float, number: int) -> str:
    size = 4.5 if number == 0 else 3.5
    if number % 3 == 1:
        corner = f'x="{x - size:.1f}" y="{y - size:.1f}" width="{2 * size}" height="{2 * size}"'
        return f'<rect class="mark r{number}" {corner}/>'
    if number % 3 == 2:
        points = f"{x:.1f},{y - size - 1:.1f} {x + size + 1:.1f},{y + size:.1f} {x - size - 1:.1f},{y + size:.1f}"
        return f'<polygon class="mark r{number}" points="{points}"/>'
    return f'<circle class="mark r{number}" cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>'


def _legend(names: Sequence[str], top: float) -> Iterator[str]:
    for number, name in enumerate(names):
        x, y = LEFT + (number % 3) * 275, top + 26 * (number // 3)
        yield f'<line class="line r{number}" x1="{x - 14}" y1="{y}" x2="{x + 14}" y2="{y}"/>'
        yield _mark(x, y, number)
        yield _text(x + 22, y + 4, name, "text", "start")


def _style(names: Sequence[str]) -> str:
    light = [".back{fill:#fff;stroke:#c8c8c8}.text{fill:#1f2328}.soft{fill:#57606a}.grid{stroke:#e4e8ec}"]
    dark = [".back{fill:#1c2128;stroke:#444c56}.text{fill:#e6edf3}.soft{fill:#adbac7}.grid{stroke:#31383f}"]
    common = ["svg{color-scheme:light dark;font:13px system-ui,sans-serif}.line{fill:none;stroke-width:1.5}"]
    for number, name in enumerate(names):
        day, night = ("#0b6e6e", "#58c4c4") if name == OURS else _COLORS[(number - 1) % len(_COLORS)]
        light.append(f".line.r{number}{{stroke:{day}}}.mark.r{number}{{fill:{day}}}")
        dark.append(f".line.r{number}{{stroke:{night}}}.mark.r{number}{{fill:{night}}}")
        dash = _DASHES[number % len(_DASHES)]
        common.append(f".line.r{number}{{stroke-width:{3 if name == OURS else 1.5}")
        common.append(f";stroke-dasharray:{dash or 'none'}}}")
    return "".join([*common, *light, "@media (prefers-color-scheme: dark){", *dark, "}"])


def _text(x: float, y: float, text: str, kind: str, anchor: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
