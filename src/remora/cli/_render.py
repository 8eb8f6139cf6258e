"""Print results. Each function takes a result and prints it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from remora import analysis, app, events
from remora._version import __version__
from remora.cli._console import json_text, out, say, tell, value_text
from remora.cli._render_rungs import decisions
from remora.cli._render_streams import event_line as event_line
from remora.cli._render_streams import streams as streams
from remora.cli._render_streams import trace_entries as trace_entries
from remora.cli._render_turns import WIDE
from remora.cli._render_turns import both_tracks as both_tracks
from remora.context.text import counts_text, number, one_line, visible
from remora.events import short_id

if TYPE_CHECKING:
    from remora.analysis import Explanation, Replay, TokenReport, TokenRow
    from remora.cli._doctor import Finding
    from remora.events import Event
    from remora.orchestrator import Plan
    from remora.ports import AgentResult
    from remora.trace import BlobCounts, Hit, PrunePlan, PruneResult, StreamReport, Verification

RAW_LINES = 20
KEYS = 20
"""Keys of a packet that are named where the one that was asked for is missing."""
WHY = 150
"""Characters of a reason in an agent's line."""
BAR_WIDTH = 60
BAR_LEAD = 50
"""Columns before a bar."""


def heading(plan: Plan, command: str, sandbox: str) -> None:
    """Print what is about to run, and its limits."""
    asked = [*plan.servers, *(f"what MCP server {name} uses" for name in plan.mcp)]
    network = f"only {', '.join(asked)}" if asked else "not used"
    say(f"remora {__version__} · {_model_name(plan)} · sandbox {sandbox} · network {network}", "bold", hang=2)
    limit = f"prompt limit {plan.limit:,} tokens" if plan.limit else "packet limit by the model"
    say(f"{command}      {_agent_counts(plan)} · {limit}", hang=2)
    if plan.ladder:
        say(f"ladder: {' → '.join(plan.ladder)}")
    say("")


def dry_run(plan: Plan) -> None:
    """Print the agents that would run."""
    for job in plan.jobs:
        say(f" {job.operation:<11} {job.node.node_id}{_STAGES.get(job.stage, '')}")
    skipped(plan)
    say(f"{_agent_counts(plan)}: nothing was run")


def skipped(plan: Plan) -> None:
    """Say what the run leaves out, and why."""
    tell(f"skipped: {problem}" for problem in plan.problems)


def _model_name(plan: Plan) -> str:
    if plan.policy in app.NO_MODEL:
        return f"no model: policy {plan.policy}"
    return (
        f"{plan.model or 'first model of the server'} ({plan.policy})"
        if plan.policy != app.EMBEDDED
        else f"{plan.model} (embedded, CPU)"
    )


def _agent_counts(plan: Plan) -> str:
    per = Counter(job.operation for job in plan.jobs)
    return ", ".join(f"{count} × {operation}" for operation, count in per.items()) or "nothing to do"


def agent_line(result: AgentResult) -> str:
    """One line about how an agent ended."""
    numbers = ""
    if result.check:
        numbers = counts_text(result.check)
    verdict = result.verdict or result.outcome
    why = result.why if result.outcome in ("error", "degraded") else one_line(result.why, WHY)
    whole = _STAGES.get(result.stage, "")
    spent = f"{number(result.turns, 'turn'):>8}  {result.largest_prompt:>5} tok  " if out.width >= WIDE else ""
    return (
        f" {verdict:<10} {numbers:<9} {spent}"
        f"{short_id(result.agent_id)}  {result.operation}  {result.node_id}{whole}{why and f': {why}'}"
    )


def agent_lines(results: Sequence[AgentResult]) -> None:
    """Print one line for each agent. On a terminal, of many that ended alike without a change, only some."""
    alike = Counter(map(_alike, results))
    shown: Counter[object] = Counter()
    for result in results:
        key = _alike(result)
        shown[key] += 1
        if key is None or not out.is_terminal or alike[key] <= MANY or shown[key] <= SOME:
            say(agent_line(result), hang=33)
        elif shown[key] == alike[key]:
            say(f" … {alike[key] - SOME} more {result.operation} {result.verdict or result.outcome}: {result.why}")


MANY, SOME = 12, 3
"""More agents than `MANY` that ended alike are shown by the first `SOME` of them."""


def _alike(result: AgentResult) -> tuple[str, str, str, str] | None:
    """What agents without a change have in common; None for one that changed something or failed."""
    if result.files or result.outcome != "success":
        return None
    return result.operation, result.verdict, result.outcome, result.why


_STAGES = {"first": " as a whole", "last": " as a whole, after the others"}


def verdicts(results: Sequence[AgentResult]) -> None:
    """Print the verdicts by operation."""
    say(f"\n{number(len(results), 'agent')}, judged by the files, not by the model's word:")
    for operation in sorted({result.operation for result in results}):
        mine = [result for result in results if result.operation == operation]
        counts = Counter(result.verdict or result.outcome for result in mine)
        tools = sorted({str(result.check.get("tool")) for result in mine if result.check})
        tally = "   ".join(f"{number} {word}" for word, number in sorted(counts.items(), key=_best_first))
        say(f" {operation:<11} {tally:<44} {', '.join(tools)}".rstrip(), hang=13)
        for line in _common_reasons(mine):
            say(f" {'':<11} {line}", hang=13)
    largest = max((result.largest_prompt for result in results), default=0)
    sealed = sum(bool(result.head) for result in results)
    streams = number(sealed, "stream")
    unsealed = f", {len(results) - sealed} not" if sealed != len(results) else ""
    decisions(analysis.sum_rungs(row for result in results for row in result.decisions))
    say(f"Largest prompt {largest} tokens · {streams} sealed{unsealed} · none of your files changed yet", hang=2)
    say("")


def _common_reasons(results: Sequence[AgentResult]) -> list[str]:
    """The reason, and the note, that more than half of the agents share."""
    failed = [str(result.check["why"]) for result in results if result.check.get("why") and result.check.get("after")]
    notes = [str(note) for result in results for note in result.check.get("notes", ())]
    lines = []
    for found, words in ((failed, "for the same reason: "), (notes, "")):
        text, count = Counter(found).most_common(1)[0] if found else ("", 0)
        if count > 1 and 2 * count > len(found):
            lines.append(f"{count} of {len(found) if words else len(results)} {words}{one_line(text, WHY)}")
    return lines


_BEST_FIRST = ("clean", "written", "rewritten", "kept", "partial", "unsafe", "unchanged", "discarded", "failed")


def _best_first(counted: tuple[str, int]) -> tuple[int, str]:
    word = counted[0]
    return (_BEST_FIRST.index(word) if word in _BEST_FIRST else len(_BEST_FIRST), word)


def event_values(event: Event) -> dict[str, Any]:
    """An event for `--json`: its type, and all fields that are not at their default."""
    return {"type": event.type} | event.model_dump(exclude_defaults=True)


def event_json(event: Event) -> None:
    """Print an event as one line of JSON: escaped on a terminal, else byte for byte as in the stream."""
    line = events.encode(event)
    sys.stdout.write((json_text(line) if out.is_terminal else line.decode()) + "\n")
    sys.stdout.flush()


def hits(found: Sequence[Hit]) -> None:
    """Print each event found, with an excerpt."""
    for hit in found:
        event = hit.event
        say(
            f"{short_id(hit.stream_id)}  seq {event.seq:<5} turn {event.turn:<3} {event.type:<14} {event.node_id}",
            "bold",
        )
        say(f"    {hit.excerpt}", hang=4)
    say(f"{len(found)} found")


def pruned(plan: PrunePlan, result: PruneResult | None) -> None:
    """Print what would be deleted, or what was."""
    for stream in plan.streams:
        say(f"{short_id(stream.stream_id)}  {stream.size:>12,} B  {stream.reason}")
    what = "blobs of streams" if plan.blobs_only else "streams"
    if result is None:
        say(f"Would delete: {len(plan.streams)} {what}, {len(plan.blobs)} blobs, {plan.bytes_freed:,} bytes")
        say("Nothing was deleted")
        return
    for line in result.skipped:
        say(f"kept: {line}", "yellow")
    say(f"Deleted: {len(result.streams)} streams, {len(result.blobs)} blobs, {result.bytes_freed:,} bytes")


def replayed(result: Replay) -> None:
    """Print the packet, and whether the receipts match it."""
    say(events.readable(result.packet.model_dump(mode="json", exclude_defaults=True)))
    if result.first_difference is None:
        match = "matches" if result.receipts == 1 else "match"
        tell([f"{number(result.receipts, 'receipt')} {match} the folded packets"])
    else:
        tell([f"the receipt at seq {result.first_difference} does not match the folded packet"])


def explained(found: Explanation, raw: str) -> None:
    """Print where a value came from, down to the raw result."""
    if not found.known:
        say(f"{found.key} is not in the packet at turn {found.turn}")
        more = f" and {len(found.keys) - KEYS} more" if len(found.keys) > KEYS else ""
        say(f"It has {', '.join(found.keys[:KEYS])}{more}" if found.keys else "It is empty", hang=2)
        return
    say(f"{found.key} = {one_line(value_text(found.value), 160)}    at turn {found.turn}", "bold", hang=4)
    for source in found.sources:
        over = f", in place of {source.supersedes}" if source.supersedes else ""
        what = f"{source.type} {source.tool}: {one_line(value_text(source.value), 100)}"
        say(f"  turn {source.turn}  seq {source.seq}  {what}{over}", hang=4)
    lines = raw.splitlines()
    if lines:
        say(f"What {found.sources[-1].tool} returned at seq {found.sources[-1].seq}, {len(raw):,} characters:")
    for line in lines[:RAW_LINES]:
        say(f"  {line[:160]}")
    if len(lines) > RAW_LINES:
        say(f"  … {len(lines) - RAW_LINES} more lines with `--json`")


def verified(found: Verification, store: str = "") -> None:
    """Print one line for each stream, then the blobs, then what could not be checked.

    Of many streams, sealed ones are only counted.
    """
    marks = {"sealed": ("✓", "green"), "unsealed": ("·", "yellow"), "damaged": ("✗", "bold red")}
    listed = list(found.by_ids() if store else found)
    for report in listed if len(listed) <= LISTED else [each for each in listed if each.status != "sealed"]:
        mark, style = marks[report.status]
        place = f":{report.line}  " if report.seq is None else f":{report.line}  seq {report.seq}: "
        problem = f"{place}{report.problem}" if report.problem else ""
        text = f"{mark} {_status(report):<8} {report.events:>6} events  {_near(report.file)}{problem}"
        out.print(Text(visible(text), style=style))
    if store:
        say(f"In the store {store}")
    counts = Counter(map(_status, found))
    say(", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "No streams")
    if counts["open run"]:
        say(
            "The stream of a run stays open after the run, so that accept, reject and undo can be recorded in it",
            hang=0,
        )
    say(_blob_line(found.blobs))
    if found.heads.problem:
        say(f"✗ {found.heads.problem}", "bold red")
    for sentence in found.not_checked:
        say(f"not checked: {sentence}", "yellow")


def _near(file: Path) -> Path:
    """A file by its way from here, if it is below this folder."""
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file


def _blob_line(counts: BlobCounts) -> str:
    bad = [f"{count} {word}" for word in ("damaged", "gone", "pruned") if (count := getattr(counts, word))]
    read = f"{counts.read:,} read ({counts.bytes:,} bytes)" if counts.read or not counts.not_read else "none read"
    return ", ".join([f"{number(counts.named, 'blob')} named, {read}", *bad])


def _status(report: StreamReport) -> str:
    # Accept and undo are recorded after a run has ended, so a run's stream is never sealed.
    return "open run" if report.kind == "runs" and report.status == "unsealed" else report.status


def findings(found: Sequence[Finding]) -> None:
    """Print the findings of `remora doctor`."""
    for item in found:
        mark, style = ("✓", "green") if item.ok else ("-", "yellow")
        needed = f"  ({item.needed_for})" if item.needed_for else ""
        say(f"{mark} {item.part:<22} {item.detail}{needed}", style, hang=25)


def next_steps(
    shown: AgentResult, options: str, *, key: str = "", changed: bool = True, named: bool = False, unfinished: int = 0
) -> None:
    """Print commands to continue with, ready to paste. Without changes there is nothing to accept.

    `key` is something in the packet after the first turn. `named` means that the review commands take the changes only
    if the agent is named. `unfinished` agents have no recorded end.
    """
    name = f" {short_id(shown.agent_id)}" if named else ""
    steps = [("resume", f"continue {number(unfinished, 'agent')} without an end")] if unfinished else []
    steps += [(f"diff{name}", "all changes"), (f"accept{name} -i", "choose what to keep")] if changed else []
    if shown.last_seq >= 0:
        short = short_id(shown.agent_id)
        steps.append((f"trace show {short}", "both tracks, turn by turn"))
        if key:
            steps.append((f"trace explain {key} {short} --at 1", "why did it believe this?"))
    steps.append(("trace verify", "check that no event and no blob is missing or changed"))
    lines = [(f"remora {command} {options}".rstrip(), what) for command, what in steps]
    say("Next:" if changed else "No agent changed a file. Next:")
    wide = min(76, max(len(command) for command, _ in (*lines, *_MORE_STEPS)))
    beside = not out.is_terminal or wide + 4 + max(len(what) for _, what in (*lines, *_MORE_STEPS)) <= out.width
    for command, what in (*lines, *_MORE_STEPS):
        say(f"  {command:<{wide}}  {what}" if beside else f"  {command}\n      {what}")


_MORE_STEPS = (
    ("remora analyze … --server ollama --model qwen3:4b", "your model"),
    ("remora analyze … --no-memory", "the same agents on chat history"),
)


LISTED = 200
"""Streams up to which `trace verify` prints a line for each."""


def tokens(report: TokenReport) -> None:
    """Print a bar for each turn: the packet, and how much longer chat history would have been."""
    how = "exact" if report.exact else "estimated"
    say(f"agent {short_id(report.agent_id)} · counted by {report.counter} ({how})", "bold")
    if not report.rows:
        say("No prompt was sent in this stream")
        say(f"No model was asked: `remora trace show {short_id(report.agent_id)}` says who decided")
        return
    say("turn   history    packet    used  █ packet  ░ more with chat history", "bold")
    widest = max(report.largest_history, report.largest_packet, 1)
    for row in report.rows:
        left_out = ", ".join(f"{name} {count}" for name, count in row.left_out.items())
        if out.width < WIDE:
            left_out = f"{sum(row.left_out.values())}" if left_out else ""
        missing = f"  left out: {left_out}" if left_out else ""
        used = f"{row.needed - len(row.missing)}/{row.needed}" if row.needed else "-"
        say(f"{row.turn:>4} {row.history:>9,} {row.packet:>9,} {used:>7}  {_bar(row, widest)}{missing}")
    times = report.history_sent / max(report.sent, 1)
    counted = "" if report.kept_by == report.counter else f", counted by {report.kept_by}"
    say(f"Largest packet {report.largest_packet:,} tokens; the limit was {report.rows[-1].limit:,}{counted}")
    if report.recall is not None and report.grounded is not None:
        say(
            f"Used next: {report.recall:.0%} of the identifiers and numbers that calls took from the past were shown; "
            f"{report.grounded:.0%} of turns had all of theirs",
            hang=2,
        )
    sent = f"packets of {report.sent:,} tokens" if report.operation == "import" else f"{report.sent:,} tokens sent"
    say(f"All turns: {sent}; chat history {report.history_sent:,} ({times:.1f} times as much)", hang=2)
    if not report.is_recorded:
        say("The packets were built now, from the log's stream: no model saw them, and nothing is recorded", hang=2)


def _bar(row: TokenRow, widest: int) -> str:
    room = min(BAR_WIDTH, max(out.width - BAR_LEAD, 10))
    packet, history = (round(room * count / widest) for count in (row.packet, row.history))
    return "█" * max(packet, 1) + "░" * (history - max(packet, 1))
