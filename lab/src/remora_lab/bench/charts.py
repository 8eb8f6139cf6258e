"""Dot charts as plain SVG, readable in light and dark themes and without colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LABEL, RIGHT, LINE, TOP = 820, 360, 74, 26, 44
APART = 12
"""Between two marks of one line: they are up to ten high, and must not cover each other."""
MARKS = ("circle", "square", "diamond", "triangle", "cross")
_STYLE = """
svg { color-scheme: light dark; font: 13px system-ui, sans-serif; }
.back { fill: #ffffff; stroke: #c8c8c8; } .text { fill: #1f2328; } .soft { fill: #57606a; }
.grid { stroke: #d8dee4; } .mark { fill: #0b6e6e; stroke: #0b6e6e; } .range { stroke: #0b6e6e; }
@media (prefers-color-scheme: dark) {
.back { fill: #1c2128; stroke: #444c56; } .text { fill: #e6edf3; } .soft { fill: #adbac7; }
.grid { stroke: #373e47; } .mark { fill: #58c4c4; stroke: #58c4c4; } .range { stroke: #58c4c4; }
}
""".replace("\n", " ")


@dataclass(frozen=True)
class Point:
    """A figure with its interval, and how it is marked."""

    value: float
    low: float
    high: float
    mark: str = "circle"


@dataclass(frozen=True)
class Bar:
    """A label, the figures beside it, and what stands at the right."""

    label: str
    points: Sequence[Point]
    told: str = ""


def dots(title: str, bars: Sequence[Bar], *, top: float, unit: str = "", legend: Sequence[str] = ()) -> str:
    """Marks with their intervals on one scale from 0 to `top`, a line a bar."""
    line = max([LINE, *(APART * (len(bar.points) + 1) for bar in bars)])
    foot = TOP + line * len(bars)
    height = foot + 34 + (22 if legend else 0)
    plot = WIDTH - LABEL - RIGHT
    parts = [_head(title, height)]
    for step in range(5):
        x = LABEL + plot * step / 4
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{foot}"/>')
        told = f"{top * step / 4:,.0f}{unit}"
        parts.append(_text(x, foot + 16, told, "soft", "middle"))
    for number, bar in enumerate(bars):
        y = TOP + line * number + line / 2
        parts.append(_text(LABEL - 10, y + 4, bar.label, "text", "end"))
        parts.append(_text(WIDTH - 10, y + 4, bar.told, "text", "end"))
        first = y - APART * (len(bar.points) - 1) / 2
        parts += [_point(point, first + APART * place, top, plot) for place, point in enumerate(bar.points)]
    if legend:
        parts.append(_legend(legend, height - 12))
    return "".join([*parts, "</svg>\n"])


def _point(point: Point, y: float, top: float, plot: float) -> str:
    low, middle, high = (
        LABEL + plot * min(1.0, each / top if top else 0) for each in (point.low, point.value, point.high)
    )
    line = f'<line class="range" stroke-width="1.5" x1="{low:.1f}" y1="{y:.1f}" x2="{high:.1f}" y2="{y:.1f}"/>'
    return line + _mark(point.mark, middle, y)


def _mark(kind: str, x: float, y: float) -> str:
    shapes = {
        "circle": f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4"/>',
        "square": f'<rect class="mark" x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7"/>',
        "diamond": f'<path class="mark" d="M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5-5z"/>',
        "triangle": f'<path class="mark" d="M{x:.1f} {y - 5:.1f}l5 9h-10z"/>',
        "cross": f'<path class="mark" stroke-width="2.5" d="M{x - 4:.1f} {y - 4:.1f}l8 8m0-8l-8 8"/>',
    }
    return shapes[kind]


def _legend(names: Sequence[str], y: float) -> str:
    step = (WIDTH - 20) / len(names)
    parts = []
    for place, name in enumerate(names):
        x = 20 + step * place
        parts.append(_mark(MARKS[place], x, y - 4) + _text(x + 10, y, name, "soft", "start"))
    return "".join(parts)


def _head(title: str, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title, quote=True)}"><style>{_STYLE}</style>'
        f'<rect class="back" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>'
        + _text(14, 24, title, "text", "start")
    )


def _text(x: float, y: float, text: str, kind: str, anchor: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
