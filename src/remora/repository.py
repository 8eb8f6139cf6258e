"""What a repository's `remora.yaml` may set: a clone must not weaken your protection, nor fill your machine.

Every setting has a rule here; a test checks that. The user's own file, the environment and flags may set anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROMPT_TOKENS = 32_768
AGENTS_AT_ONCE = 16
FAILURES = 100
"""Consecutive failed or repeated calls."""
RETRIES = 10
FILE_BYTES = 64 * 1024 * 1024
FILES = 2_000
PATTERNS = 1_000
QUIET_MS = 10_000
LOCAL_STORES = ("jsonl", "kv")
"""Trace stores in the project's own state folder."""


@dataclass(frozen=True)
class Rule:
    """What a repository may do with one setting."""

    never: bool = False
    most: int | None = None
    """The largest number, or the longest list."""
    only: str = ""
    """The only value allowed."""
    among: tuple[str, ...] = ()
    """The values allowed."""
    inside: bool = False
    """Whether it is a path that must be inside the project."""

    def problem(self, value: Any) -> str:
        """Why a repository may not set `value`; empty if it may."""
        if self.never or (self.only and value != self.only) or (self.among and value not in self.among):
            names = (self.only,) if self.only else self.among
            allowed = f" to anything but {' or '.join(f'`{name}`' for name in names)}" if names else ""
            return f"a repository may not set this{allowed}; use your own settings or a flag"
        size = len(value) if isinstance(value, tuple) else value
        if self.most is not None and size is not None and size > self.most:
            return f"a repository may set at most {self.most:,}; for more, use your own settings or a flag"
        if self.inside and value is not None and (Path(value).is_absolute() or ".." in Path(value).parts):
            return "a repository may name only a path inside the project; for another, use your own settings or a flag"
        return ""

    def __str__(self) -> str:
        """The rule as text for a table."""
        if self.never:
            return "no"
        if self.only or self.among:
            return f"only {' or '.join(f'`{name}`' for name in self.among or (self.only,))}"
        return f"at most {self.most:,}" if self.most else "inside the project" if self.inside else "yes"


FREE, NEVER = Rule(), Rule(never=True)

FOR_REPOSITORIES: dict[str, Rule] = {
    "agents_dir": Rule(inside=True),
    "discovery.exclude": Rule(most=PATTERNS),
    "discovery.queries": Rule(inside=True),
    # Where code and keys are sent, which files a native library loads, and the sandbox of project code.
    "server": NEVER,
    "escalation": NEVER,
    "sandbox": NEVER,
    # Programs that run and servers that are called, and the keys that they get.
    "mcp": NEVER,
    # These only leave something out, or lower a limit.
    "operations.*.enabled": FREE,
    "operations.*.priority": FREE,
    "operations.*.strict": FREE,
    "operations.*.max_turns": FREE,
    # Without the packet only the model's window limits a prompt and its cost.
    "runner.memory.enabled": NEVER,
    "runner.memory.packet_size_limit": Rule(most=PROMPT_TOKENS),
    # A store elsewhere gets all that agents read.
    "runner.memory.trace_store": Rule(among=LOCAL_STORES),
    "runner.memory.summarizer_mode": FREE,
    "runner.memory.history_limit": Rule(most=PROMPT_TOKENS),
    "runner.memory.trace_indexing": FREE,
    "runner.by_rule": NEVER,
    "runner.max_turns": FREE,
    "runner.max_concurrent": Rule(most=AGENTS_AT_ONCE),
    "runner.max_errors": Rule(most=FAILURES),
    "runner.max_repeats": Rule(most=FAILURES),
    "runner.retries": Rule(most=RETRIES),
    "runner.deadline_s": FREE,
    "runner.total_deadline_s": FREE,
    # Rules only choose among the models that the user named. The limits of cost are the user's.
    "runner.escalation.undecided": FREE,
    "runner.escalation.repeats": FREE,
    "runner.escalation.errors": FREE,
    "runner.escalation.no_progress": FREE,
    "runner.escalation.ask": FREE,
    "runner.escalation.max_moves": NEVER,
    "runner.escalation.max_decisions": NEVER,
    "runner.escalation.max_run_decisions": NEVER,
    "runner.escalation.max_price": NEVER,
    "workspace.max_file_bytes": Rule(most=FILE_BYTES),
    "workspace.max_files": Rule(most=FILES),
    # Anything weaker loses events in a power cut.
    "event_stream.sync": Rule(only="always"),
    # It deletes recorded streams.
    "retention": NEVER,
    # Which machines get the code.
    "engine": NEVER,
    "watch.debounce_ms": Rule(most=QUIET_MS),
    "hub.enabled": FREE,
    "hub.mode": FREE,
    # What you pay is not for a clone to say.
    "report": NEVER,
}
"""Rules by path; `*` matches any name. A rule for a block applies to everything in it."""


def rule_for(path: str) -> Rule:
    """The rule for a setting. Raises `KeyError` if there is none."""
    block, _, rest = path.partition(".")
    if block in FOR_REPOSITORIES:
        return FOR_REPOSITORIES[block]
    return FOR_REPOSITORIES[f"{block}.*.{rest.rpartition('.')[2]}" if block == "operations" else path]
