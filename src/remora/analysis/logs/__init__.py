"""Logs of other programs as conversations: the format is detected, and memory is bounded. Pure: bytes in, steps out."""

from remora.analysis.logs._conversation import Conversation, Link
from remora.analysis.logs._detect import FORMATS, read_log
from remora.analysis.logs._source import NO_REPLY, LogFile, LogProblem
from remora.analysis.logs._steps import AssistantTurn, Step, UserMessage

__all__ = [
    "FORMATS",
    "NO_REPLY",
    "AssistantTurn",
    "Conversation",
    "Link",
    "LogFile",
    "LogProblem",
    "Step",
    "UserMessage",
    "read_log",
]
