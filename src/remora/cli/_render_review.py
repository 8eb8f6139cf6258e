"""Print agents' changes. Each function takes a result and prints it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from remora.app import Accepted, AgentDiff, MergedDiff, Rejected
from remora.cli._console import out, say
from remora.context.text import number, one_line
from remora.events import short_id

_STYLES = {"+": "green", "-": "red", "@": "cyan"}
UNSAFE = "unsafe"
MAX_HINTS = 3
_NOTHING = "No open changes"


def diffs(found: Sequence[AgentDiff], limit: int | None = None) -> None:
    """Print each agent's changes as a unified diff."""
    if not out.is_terminal and limit is None:
        sys.stdout.write("".join(map(_patch_text, found)))  # a patch that `git apply` accepts
        return
    for diff in found:
        say(title(diff), "bold yellow" if diff.summary.verdict == UNSAFE else "bold")
        lines = diff.text.split("\n")
        patch(lines[:limit])
        if limit is not None and len(lines) > limit:
            say(f"… {len(lines) - limit} more lines")
    if not found:
        say(_NOTHING)


def _patch_text(diff: AgentDiff) -> str:
    """A patch. One that may alter behaviour says so above, in a line that `git apply` skips."""
    return f"{title(diff)}\n{diff.text}" if diff.summary.verdict == UNSAFE else diff.text


def title(diff: AgentDiff) -> str:
    """Whose changes these are, their verdict and the reason for it."""
    summary = diff.summary
    verdict = "UNSAFE, may alter behaviour" if summary.verdict == UNSAFE else summary.verdict
    why = one_line(str(summary.check.get("why", "")), 100)
    words = (summary.node_id, summary.operation, f"agent {short_id(summary.agent_id)}", verdict, why)
    return f"# {' · '.join(word for word in words if word)}"


def merged_diff(merged: MergedDiff) -> None:
    """Print one diff over all agents. Without a terminal, it is a patch that `git apply` accepts."""
    if not out.is_terminal:
        sys.stdout.write(merged.text)
        return
    if not merged.files:
        say(_NOTHING)
        return
    who = "1 agent" if merged.agents == 1 else f"{merged.agents} agents, merged"
    say(f"# {number(len(merged.files), 'file')} by {who}", "bold")
    patch(merged.text.removesuffix("\n").split("\n"))


def patch(lines: Sequence[str]) -> None:
    """Print lines of a unified diff."""
    for line in lines:
        say(line, _STYLES.get(line[:1], ""))


def accepted(done: Sequence[Accepted]) -> None:
    """Print what was written and which changes were refused."""
    _outcomes(done, "accepted")
    if not done:
        say(_NOTHING)


def undone(done: Sequence[Accepted]) -> None:
    """Print what was undone and what was refused."""
    _outcomes(done, "undone")
    if not done:
        say("Nothing to undo")


def rejected(done: Sequence[Rejected]) -> None:
    """Print what was rejected."""
    for item in done:
        say(f"✓ rejected  {short_id(item.agent_id)}  {item.node_id}  {', '.join(item.paths)}", "green")
    if not done:
        say(_NOTHING)


def _outcomes(done: Sequence[Accepted], word: str) -> None:
    hints: dict[str, None] = {}
    for item in done:
        agent = f"{short_id(item.agent_id)}  {item.node_id}"
        if item.conflict:
            say(f"✗ conflict  {agent}  {item.conflict}", "bold red")
            hints |= {item.hint: None} if item.hint else {}
        else:
            say(f"✓ {word:<8}  {agent}  {', '.join(change.path for change in item.files)}", "green")
    for hint in [*hints][:MAX_HINTS]:
        say(f"hint: {hint}")
    if len(hints) > MAX_HINTS:
        say(f"… {len(hints) - MAX_HINTS} more hints; `--json` lists them all")
