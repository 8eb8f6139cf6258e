"""Print one agent turn by turn: what the model saw, what it chose, what the tools returned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from remora.cli._console import out, say, value_text
from remora.cli._render_rungs import decisions, moves
from remora.context.text import counts_text, one_line, visible
from remora.events import short_id

if TYPE_CHECKING:
    from remora.analysis import CallRow, StreamSummary, TurnRow

WIDE = 120
"""Columns of a terminal from which on a turn is one line: what was seen on the left, what was done on the right."""
NO_TERMINAL = 150
"""Columns of a line where there is no terminal."""
GOAL = 300
BAR = 6
"""Columns of the bar that shows how much of its limit a prompt takes."""
LEAD = 31
"""Columns of turn, tokens, bar and what was left out."""


def both_tracks(summary: StreamSummary, history: Mapping[int, int], how: str = "") -> None:
    """Print a run on both tracks, how it ended, and what the check says about the files."""
    words = (summary.node_id, summary.operation, summary.name, f"agent {short_id(summary.agent_id)}")
    say(" · ".join(filter(None, words)), "bold", hang=2)
    if not summary.node_id and summary.goal and one_line(summary.goal, GOAL) != summary.name:
        say(f"goal: {one_line(summary.goal, GOAL)}", hang=6)
    columns = _Columns.of(_room()) if _room() >= WIDE else None
    title = f"turn  tokens {'':<{BAR}}  left out  SHORT TRACK  all the model saw"
    if columns:
        say(f"{title:<{LEAD + columns.seen}} {'it chose':<{columns.choice}} LONG TRACK  what the tool returned", "bold")
    else:
        say(title, "bold")
        say("      → LONG TRACK  what it chose, and what the tool returned", "bold")
    for row in summary.turns:
        sealed = summary.outcome != "unsealed" and row is summary.turns[-1]
        for line in _wide_lines(row, sealed, columns) if columns else _narrow_lines(row, sealed):
            say(line)
    if not summary.turns:
        say("      no turn was recorded")
    if ending := _ending(summary):
        say(ending, hang=2)
    if summary.check:
        say(_verdict_line(summary.check), hang=2)
    asked = [row for row in summary.turns if row.limit]
    if asked and history:
        _print_comparison(asked[-1], history, how)
    moves(summary.moves)
    decisions(summary.decisions)
    say("")


def _ending(summary: StreamSummary) -> str:
    """How a run ended that did not end well, and why."""
    if summary.outcome == "unsealed":
        why = f": {summary.reason}: {summary.summary}" if summary.reason else ""
        return f"Not ended: the agent is running, or was interrupted{why}"
    if summary.outcome == "success":
        return ""
    said = [words for words in (summary.reason, summary.summary) if words and words != summary.outcome]
    if summary.outcome == "cancelled":
        return ": ".join(["Ended as cancelled", *said])
    return f"Ended as {summary.outcome}: {': '.join(said) or 'no reason is recorded'}"


def _verdict_line(check: Mapping[str, Any]) -> str:
    counts = f"{counts_text(check)} {check.get('key')} by {check.get('tool')}"
    evidence = ", ".join(f"seq {seq}" for seq in check.get("evidence", ()))
    return f"Verdict {check.get('verdict')}: {counts}{f' ({evidence})' if evidence else ''}"


def _seen(row: TurnRow) -> str:
    if row.rule:
        return f"by rule: {row.rule}"
    return row.news if row.turn == 1 else f"+ {row.news}" if row.news else ""


@dataclass(frozen=True)
class _Columns:
    """Widths of the columns whose text is cut."""

    seen: int
    choice: int
    result: int

    @classmethod
    def of(cls, room: int) -> _Columns:
        """Divide what the lead, the size and the number of the event leave."""
        left = room - LEAD - 10 - 10 - 6
        seen, choice = left * 36 // 100, left * 26 // 100
        return cls(seen, choice, left - seen - choice)


def _room() -> int:
    return out.width if out.is_terminal else NO_TERMINAL


def _lead(row: TurnRow) -> str:
    """Turn, tokens, their share of the limit, and how much was left out."""
    if not row.limit:
        return f"{row.turn:>3}".ljust(LEAD)
    filled = min(round(BAR * row.prompt_tokens / row.limit), BAR)
    left_out = f"{sum(row.left_out.values()):,}" if row.left_out else ""
    return f"{row.turn:>3}  {row.prompt_tokens:>7,} {'█' * filled}{'░' * (BAR - filled)} {left_out:>9}".ljust(LEAD)


def _wide_lines(row: TurnRow, sealed: bool, columns: _Columns) -> Iterator[str]:
    choices, results = columns.choice, columns.result
    lead = f"{_lead(row)}{one_line(_seen(row), columns.seen):<{columns.seen}}"
    for choice, size, what, seq in _done(row):
        chosen, result = one_line(choice, choices), one_line(what, results)
        yield f"{lead} {chosen:<{choices}} {size:>10}  {result:<{results}} seq {seq}"
        lead = " " * len(lead)
    if row.submitted is not None:
        end = " sealed" if sealed else ""
        room = results - len(end)
        submitted = one_line(row.submitted, room)
        yield f"{lead} {'submit_result':<{choices}} {'':>10}  {submitted:<{room}} seq {row.last_seq}{end}"
        lead = " " * len(lead)
    if row.answer:
        yield f'{lead} answered "{one_line(row.answer, choices + results)}"'
        lead = " " * len(lead)
    for problem in row.problems:
        yield f"{lead} ! {one_line(problem, choices + results + 10)}"
        lead = " " * len(lead)
    if lead.strip():
        yield f"{lead} {_CUT_OFF}"


_CUT_OFF = "nothing: the turn was cut off"


def _narrow_lines(row: TurnRow, sealed: bool) -> Iterator[str]:
    room = _room()
    yield _cut(f"{_lead(row)}{_seen(row)}".rstrip(), room)
    lines = 0
    for choice, size, what, seq in _done(row):
        yield _cut(f"      → {one_line(choice, 22):<22} {size:>10}  seq {seq:<4} {what}", room)
        lines += 1
    if row.submitted is not None:
        end = " sealed" if sealed else ""
        yield _cut(f"      → {'submit_result':<22} {'':>10}  seq {row.last_seq:<4}{end} {row.submitted}", room)
        lines += 1
    if row.answer:
        yield _cut(f'      → answered "{row.answer}"', room)
    for problem in row.problems:
        yield _cut(f"      ! {problem}", room)
    if not (lines or row.answer or row.problems):
        yield _cut(f"      → {_CUT_OFF}", room)


def _cut(line: str, room: int) -> str:
    """One line that fits. Its indentation stays."""
    line = visible(line)  # escapes take room too
    text = line.lstrip(" ")
    lead = line[: len(line) - len(text)]
    rest = text.splitlines() or [""]
    kept = rest[0] if len(rest) == 1 else f"{rest[0]} …"
    return lead + (kept if len(lead) + len(kept) <= room else kept[: max(room - len(lead) - 1, 1)] + "…")


def _done(row: TurnRow) -> Iterator[tuple[str, str, str, int]]:
    """Of each call: tool with arguments, size of the result, summary, and seq."""
    for call in row.calls:
        size = f"{call.raw_bytes:,} B" if call.outcome != "none" else ""
        yield _choice(call), size, _result_summary(call), call.seq


def _choice(call: CallRow) -> str:
    words = " ".join(map(value_text, call.args.values()))
    # Logs of shell agents have the command as the tool's name and in its arguments.
    return words if words.split(" ", 1)[0] == call.tool else f"{call.tool} {words}".rstrip()


def _result_summary(call: CallRow) -> str:
    return f"ERROR {call.summary}" if call.outcome == "error" else call.summary


def _print_comparison(last: TurnRow, history: Mapping[int, int], how: str) -> None:
    sent = history.get(last.turn, 0)
    verdict = "over the limit" if sent > last.limit else "within the limit"
    say(
        f"Chat history would have sent {sent:,} tokens at turn {last.turn}: {verdict}. "
        f"The packet sent {last.prompt_tokens:,}. ({how})",
        hang=2,
    )
