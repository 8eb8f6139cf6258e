"""Builds both tracks and an emitter on the local disk, for loops of other programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

from remora.app._deciding import PACKET_TOKENS
from remora.app._project import STATE_DIR, SystemClock, counter_of
from remora.context.checks import Extension
from remora.context.contracts import ToolLike
from remora.context.render import DEFAULT_SYSTEM, Calling, Style
from remora.context.secrets import Secrets
from remora.context.summarizers import Summarizer, get_default_summarizers
from remora.errors import ConfigError, TraceError, TraceLocked, TraceNotFound, UsageError
from remora.events import AgentStartEvent, decode, digest
from remora.ports import SummaryGuard, TokenCounter
from remora.trace import (
    FileBlobs,
    FileTrace,
    StreamEmitter,
    SyncMode,
    find_streams,
    is_locked,
    new_stream_id,
    read_events,
    read_records,
    resolve,
)
from remora.twotrack import Identity, Parent, PromptSettings, Relation, Wiring, read_parent


def local_wiring(
    goal: str,
    *,
    name: str,
    tools: Sequence[ToolLike],
    budget: int | None,
    system_prompt: str,
    operation: str,
    node_id: str,
    state_dir: Path,
    summarizers: Mapping[str, Summarizer] | None,
    secrets: Mapping[str, str] | None,
    calling: Calling,
    style: Style,
    guard: SummaryGuard | None,
    counter: TokenCounter | None,
    extensions: Mapping[str, Extension] | None,
    recall: bool,
    sync: SyncMode,
) -> Wiring:
    """Build the parts of `remora.TwoTrack`: a stream in `state_dir`, and a child process for custom summarizers."""
    from remora.sandbox import SummaryChild

    _check(goal, budget, {"calling": (calling, Calling), "style": (style, Style), "sync": (sync, SyncMode)})
    _check_folder(state_dir)
    clock, child = SystemClock(), SummaryChild()
    identity = Identity(new_stream_id(state_dir, clock.now()), operation=operation, node_id=node_id)
    wiring = Wiring(
        identity=identity,
        goal=goal,
        name=name,
        recall=recall,
        tools=tools,
        system_prompt=system_prompt or DEFAULT_SYSTEM.get(style, ""),
        prompts=PromptSettings(budget or 0, style=style, calling=calling, limit_name="budget"),
        writer=FileTrace(state_dir, clock=clock, sync=sync),
        blobs=FileBlobs(state_dir),
        counter=counter or counter_of(None),
        clock=clock,
        summarizers=get_default_summarizers() if summarizers is None else summarizers,
        secrets=Secrets(secrets),
        guard=guard or child,
        extensions=extensions or {},
        path=state_dir / f"{identity.stream_id}.jsonl",
        close=child.close,
    )
    return wiring.with_packet_budget(PACKET_TOKENS) if budget is None else wiring


def _check(goal: object, budget: object, chosen: Mapping[str, tuple[object, object]]) -> None:
    """Raises `UsageError` for a setting of the wrong type, and for a word that is no choice."""
    if not isinstance(goal, str):
        raise UsageError(f"`goal` is `{goal!r:.100}`: expected a text")
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool)):
        raise UsageError(f"`budget` is `{budget!r:.100}`: expected a number of tokens, or None")
    for name, (value, choices) in chosen.items():
        if value not in get_args(choices):
            known = ", ".join(f"`{choice}`" for choice in get_args(choices))
            raise UsageError(f"`{name}` is `{value!r:.100}`: expected one of {known}")


def _check_folder(state_dir: Path) -> None:
    """Raises `ConfigError` if streams cannot be kept there, because something on the way is not a folder."""
    found = next((place for place in (state_dir, *state_dir.parents) if place.exists()), None)
    if found is not None and not found.is_dir():
        raise ConfigError(f"`{state_dir}` cannot hold streams: `{found}` is not a folder")


def local_parent(stream: str | Path, state_dir: Path, relation: Relation = "continue") -> Parent:
    """Read a stream that another one continues. Raises `TraceLocked` while a process writes it."""
    path = stream if isinstance(stream, Path) else resolve(state_dir, stream, "traces")
    if not path.is_file():
        raise TraceNotFound(f"There is no stream `{path}`")
    if is_locked(path):
        raise TraceLocked(f"`{path}` is still being written", hint="Close it first, or wait until it is sealed")
    records = list(read_records(path, torn_ok=True))
    if not records:
        raise TraceNotFound(f"`{path}` holds no event")
    return read_parent((decode(record.raw) for record in records), path.stem, digest(records[-1].raw), relation)


def latest_stream(state_dir: Path | str, name: str) -> Path | None:
    """The newest stream whose `agent_start` has this name. Only the first line of each stream is read."""
    for path in reversed(find_streams(Path(state_dir), "traces")):
        try:
            first = next(iter(read_events(path, torn_ok=True)), None)
        except TraceError:
            continue  # `verify` reports damage
        if isinstance(first, AgentStartEvent) and first.name == name:
            return path
    return None


class JsonlEventEmitter(StreamEmitter):
    """Writes events to a stream on the local disk: `remora.events.JsonlEventEmitter`."""

    def __init__(self, state_dir: Path | str = STATE_DIR, agent_id: str | None = None) -> None:
        clock = SystemClock()
        super().__init__(state_dir, agent_id or new_stream_id(Path(state_dir), clock.now()), clock=clock)
