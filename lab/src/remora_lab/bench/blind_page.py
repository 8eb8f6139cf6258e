"""The report of the blindness check: packet and raw output side by side. All text is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import orjson

from remora.context.text import number
from remora_lab.bench.blind import MAX_RAW, BlindnessSummary, LostStream, Recheck
from remora_lab.bench.results import Choice, Result

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 1400px; padding: 0 1rem;
  color: #1f2328; background: #fff; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid #8886; border-radius: 6px; padding: .7rem;
  max-height: 28rem; overflow: auto; font-size: 13px; margin: 0; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
@media (max-width: 800px) { .two { grid-template-columns: 1fr; } }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #1c2128; } }
"""


def blind_page(measure: BlindnessSummary, looked: Sequence[Recheck | LostStream], title: str) -> str:
    """One HTML page that needs nothing else."""
    return f"{page_head(title, describe_blindness(measure))}{''.join(map(section, looked))}</body></html>\n"


def page_head(title: str, words: str) -> str:
    """The page up to its sections: with these alone behind it, a browser shows it too."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width"><title>{escape(title)}</title><style>{_STYLE}</style></head><body>'
        f"<h1>{escape(title)}</h1><p>{escape(words)}</p>\n"
    )


def describe_blindness(measure: BlindnessSummary) -> str:
    """The measure in sentences."""
    lines = [f"{number(measure.failures, 'failed trial')} on two tracks."]
    if measure.no_wrong_turn:
        lines.append(f"{measure.no_wrong_turn} of them had no turn that the oracle would not have taken.")
    if measure.lost:
        lines.append(f"{measure.lost} could not be looked at, because the stream is gone or unreadable.")
    if measure.share is None:
        lines.append("No model was asked again.")
        return " ".join(lines)
    were = "was" if measure.asked_again == 1 else "were"
    lines.append(
        f"{measure.asked_again} {were} asked again: {measure.right_by_packet} right with the packet alone, "
        f"{measure.right_by_raw} with packet and raw output. Raw rescues {measure.rescued} ({measure.share:.0%})."
    )
    worst = sorted(measure.rescued_by_tool.items(), key=lambda item: -item[1])
    if worst:
        lines.append("By tool: " + ", ".join(f"{tool} {count}" for tool, count in worst) + ".")
    return " ".join(lines)


def section(one: Recheck | LostStream) -> str:
    """One failure, as the page shows it."""
    if isinstance(one, LostStream):
        return f"<h2>{escape(_where(one.result))}</h2><p>not looked at: {escape(one.why)}</p>\n"
    result, sight = one.sight.result, one.sight
    facts = [
        ("failed because", "; ".join(result.problems)),
        ("it called", _call(result.wrong_call)),
        ("right would have been", "; ".join(map(_call, result.choices))),
    ]
    if one.asked:
        facts += [("asked again, packet alone", _answer(one.packet, one.right_by_packet))]
        facts += [("asked again, packet and raw", _answer(one.with_raw, one.right_by_raw))]
    listed = "".join(f"<li>{escape(name)}: <code>{escape(text)}</code></li>" for name, text in facts)
    shown = "\n\n".join(str(message.get("content") or "") for message in sight.prompt.messages[1:])
    raw = sight.raw[:MAX_RAW] or "(no tool had run)"
    return (
        f"<h2>{escape(_where(result))}</h2><ul>{listed}</ul><div class=two>"
        f"<div><h3>what the model saw</h3><pre>{escape(shown)}</pre></div>"
        f"<div><h3>raw output of {escape(sight.tool or 'no tool')}</h3><pre>{escape(raw)}</pre></div></div>\n"
    )


def _where(result: Result) -> str:
    return f"{result.task}: {result.row}, {result.control}, seed {result.seed}, turn {result.wrong_turn}"


def _answer(call: Choice | None, right: bool) -> str:
    return f"{_call(call)} ({'right' if right else 'wrong'})"


def _call(call: Choice | None) -> str:
    return f"{call.tool} {orjson.dumps(call.args).decode()}" if call else "nothing that can be called"
