"""Evidence: messages, calls and outputs of a run, bounded in size and rendered as a short account."""

from remora.context.evidence._account import Account, ChatAccount, write_account, write_chat
from remora.context.evidence._calls import call_line
from remora.context.evidence._chat import MESSAGE_OVERHEAD, Message, append_message
from remora.context.evidence._entries import Entry, agent_said, called, person_said
from remora.context.evidence._failure import names_error, says_failed
from remora.context.evidence._memory import Evidence, Known, remember
from remora.context.evidence._parsing import parsed as parsed_output
from remora.context.evidence._reading import Kind, Reading, read_output
from remora.context.evidence._whole import whole_lines
from remora.context.evidence._words import words_of

__all__ = [
    "MESSAGE_OVERHEAD",
    "Account",
    "ChatAccount",
    "Entry",
    "Evidence",
    "Kind",
    "Known",
    "Message",
    "Reading",
    "agent_said",
    "append_message",
    "call_line",
    "called",
    "names_error",
    "parsed_output",
    "person_said",
    "read_output",
    "remember",
    "says_failed",
    "whole_lines",
    "words_of",
    "write_account",
    "write_chat",
]
