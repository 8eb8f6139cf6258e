"""Evidence: messages, calls and outputs of a run, bounded in size and rendered as a short account."""

from remora.context.evidence._account import Account, write_account
from remora.context.evidence._calls import call_line
from remora.context.evidence._entries import Entry, agent_said, called, person_said
from remora.context.evidence._failure import says_failed
from remora.context.evidence._memory import Evidence, Known, remember
from remora.context.evidence._reading import Kind, Reading, read_output
from remora.context.evidence._words import words_of

__all__ = [
    "Account",
    "Entry",
    "Evidence",
    "Kind",
    "Known",
    "Reading",
    "agent_said",
    "call_line",
    "called",
    "person_said",
    "read_output",
    "remember",
    "says_failed",
    "words_of",
    "write_account",
]
