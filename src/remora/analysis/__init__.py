"""Reading the Long Track: pure functions over events."""

from remora.analysis._replay import Explanation, Replay, Source, explain, replay
from remora.analysis._turns import CallRow, StreamSummary, TurnRow, fold_files, history_tokens, summarize

__all__ = [
    "CallRow",
    "Explanation",
    "Replay",
    "Source",
    "StreamSummary",
    "TurnRow",
    "explain",
    "fold_files",
    "history_tokens",
    "replay",
    "summarize",
]
