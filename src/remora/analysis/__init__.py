"""Reading the Long Track: pure functions over events."""

from remora.analysis._import import Chat, read_chats
from remora.analysis._messages import ChatProblem, Said, Took
from remora.analysis._replay import Explanation, Replay, Source, explain, replay
from remora.analysis._tokens import TokenReport, TokenRow, chat_tokens, token_report
from remora.analysis._transcript import Entry, LlmConversationLogger, transcript
from remora.analysis._turns import CallRow, StreamSummary, TurnRow, fold_files, history_tokens, summarize

__all__ = [
    "CallRow",
    "Chat",
    "ChatProblem",
    "Entry",
    "Explanation",
    "LlmConversationLogger",
    "Replay",
    "Said",
    "Source",
    "StreamSummary",
    "TokenReport",
    "TokenRow",
    "Took",
    "TurnRow",
    "chat_tokens",
    "explain",
    "fold_files",
    "history_tokens",
    "read_chats",
    "replay",
    "summarize",
    "token_report",
    "transcript",
]
