"""Reading the Long Track: pure functions over events."""

from remora.analysis._turns import CallRow, StreamSummary, TurnRow, fold_files, history_tokens, summarize

__all__ = ["CallRow", "StreamSummary", "TurnRow", "fold_files", "history_tokens", "summarize"]
