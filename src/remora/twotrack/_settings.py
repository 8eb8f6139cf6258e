"""The settings of a `TwoTrack`, for functions that pass them on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from remora.context.checks import Extension
from remora.context.contracts import ToolLike
from remora.context.render import Calling, Style
from remora.context.summarizers import Summarizer
from remora.ports import SummaryGuard, TokenCounter


class TrackSettings(TypedDict, total=False):
    """The keyword arguments of `remora.TwoTrack`, all optional."""

    name: str
    tools: Sequence[ToolLike]
    budget: int | None
    system_prompt: str
    operation: str
    node_id: str
    state_dir: Path | str
    summarizers: Mapping[str, Summarizer] | None
    secrets: Mapping[str, str] | None
    calling: Calling
    style: Style
    guard: SummaryGuard | None
    counter: TokenCounter | None
    extensions: Mapping[str, Extension] | None
    recall: bool
    sync: Literal["always", "turn", "off"]
