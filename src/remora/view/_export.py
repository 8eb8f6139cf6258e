"""One agent's page as one file: no server, no network, and what looks like a secret is redacted."""

from __future__ import annotations

import base64
import hashlib
import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from remora.analysis import PromptItem
from remora.app import Project
from remora.errors import ConfigError
from remora.events import Change, Event, PacketDelta, PlainDelta
from remora.trace import Outline
from remora.view._head import head
from remora.view._pages import Pages

_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types remora"
)
AROUND = 20_000
"""Bytes of the page beside its turns, style and script, at most."""


@dataclass(frozen=True)
class Exported:
    """What was written."""

    path: Path
    turns: int
    size: int
    left_out: tuple[str, ...]
    """What is not in it, in sentences."""


def export_agent(project: Project, fragment: str, path: Path, *, max_bytes: int) -> Exported:
    """Write the page of one agent to `path`. Turns that do not fit are left out, from the middle of the run."""
    pages = Pages(project)
    outline = pages.viewing.open(fragment)
    if outline.path.parent.name == "runs":
        raise ConfigError(
            f"`{fragment}` is a run: expected an agent", hint="`remora trace ls --run …` lists its agents"
        )
    sources = Sources(project.library.changes(outline.path.stem))
    style, script = (_asset(name) for name in ("view.css", "view.js"))
    room = max_bytes - len(style) - len(script) - AROUND - 250 * min(len(outline), 400)
    turns = _turns(pages, outline, sources, room)
    missing = len(outline) - len(turns)
    left_out = (f"{missing:,} turns in the middle do not fit into {max_bytes:,} bytes",) if missing else ()
    text = _page(pages, outline, turns, style, script, left_out)
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return Exported(path, len(turns), path.stat().st_size, left_out)


def _turns(pages: Pages, outline: Outline, sources: Sources, room: int) -> list[Markup]:
    """The turns that fit, taken from both ends."""
    found, facts = dict[int, Markup](), head(pages.viewing, outline)
    for index in _from_both_ends(len(outline)):
        values = pages.turn_values(outline, index, facts, sources.of)
        turn = Markup(pages.render("turn.html", **values, is_export=True))  # noqa: S704 (our template escaped it)
        room -= len(turn.encode())
        if room < 0:
            break
        found[index] = turn
    return [found[index] for index in sorted(found)]


def _from_both_ends(count: int) -> Iterator[int]:
    for number in range((count + 1) // 2):
        yield number
        if count - 1 - number != number:
            yield count - 1 - number


def _page(pages: Pages, outline: Outline, turns: list[Markup], style: str, script: str, left_out: Iterable[str]) -> str:
    values = pages.facts(outline, lambda turn: f"#{turn}") | pages.turn_values(outline, max(len(outline) - 1, 0), None)
    policy = _POLICY.format(script=_hash(script), style=_hash(style))
    return pages.render(
        "export.html",
        **values,
        turns=turns,
        policy=policy,
        style=Markup(style),  # noqa: S704 (our own file)
        script=Markup(script),  # noqa: S704 (our own file)
        left_out=list(left_out),
        is_export=True,
    )


def _asset(name: str) -> str:
    return files("remora.view").joinpath("static", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The hash by which a content policy allows exactly this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


class Sources:
    """The events that set each value of the packet: a few numbers for each."""

    def __init__(self, changes: Iterable[Change | Event]) -> None:
        self._seqs: dict[str, list[int]] = defaultdict(list)
        for change in changes:
            if isinstance(change.delta, PacketDelta | PlainDelta):
                for key in _keys(change.delta):
                    self._seqs[key].append(change.seq)

    def of(self, item: PromptItem, before: int) -> int | None:
        """The last event before seq `before` that set this item; None if none did."""
        if item.seq is not None or not item.key:
            return item.seq
        found = self._seqs.get(item.text.removesuffix(" (partial)").removesuffix(" (error)") or item.key)
        seqs = found or self._seqs.get(item.key, [])
        at = bisect_left(seqs, before)
        return seqs[at - 1] if at else None


def _keys(delta: PacketDelta | PlainDelta) -> Iterator[str]:
    yield from delta.knowledge
    yield from delta.extensions
    if delta.action:
        yield from ("recent_actions", delta.action.summary)
    fields = {
        "last_error": delta.error,
        "state_summary": delta.state_summary,
        "diagnostics": delta.diagnostics,
        "candidate_actions": delta.candidate_actions,
        "excerpts": delta.excerpts,
        "hub_context": delta.hub,
    }
    yield from (name for name, value in fields.items() if value)
