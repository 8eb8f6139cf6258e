"""Reading the Long Track: pure functions over events. Names are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remora.analysis._escalation import EscalationDocument, answer_delta, escalation_document
    from remora.analysis._grounding import Grounding, call_words, grounding, words_in
    from remora.analysis._import import Chat, read_chats
    from remora.analysis._messages import AssistantTurn, ChatProblem, UserMessage
    from remora.analysis._replay import Explanation, Replay, Source, explain, replay
    from remora.analysis._rungs import RungRow, RungTally, decisions_by_rung, sum_rungs, tokens_in
    from remora.analysis._tokens import TokenReport, TokenRow, chat_tokens, token_report
    from remora.analysis._transcript import Entry, LlmConversationLogger, transcript
    from remora.analysis._turns import CallRow, StreamSummary, TurnRow, fold_files, history_tokens, summarize
    from remora.analysis._what_if import ChangedPrompt, Comparison, PromptFigures, Tolerance, WhatIf, what_if

__all__ = [
    "AssistantTurn",
    "CallRow",
    "ChangedPrompt",
    "Chat",
    "ChatProblem",
    "Comparison",
    "Entry",
    "EscalationDocument",
    "Explanation",
    "Grounding",
    "LlmConversationLogger",
    "PromptFigures",
    "Replay",
    "RungRow",
    "RungTally",
    "Source",
    "StreamSummary",
    "TokenReport",
    "TokenRow",
    "Tolerance",
    "TurnRow",
    "UserMessage",
    "WhatIf",
    "answer_delta",
    "call_words",
    "chat_tokens",
    "decisions_by_rung",
    "escalation_document",
    "explain",
    "fold_files",
    "grounding",
    "history_tokens",
    "read_chats",
    "replay",
    "sum_rungs",
    "summarize",
    "token_report",
    "tokens_in",
    "transcript",
    "what_if",
    "words_in",
]

_MODULES = {
    "_escalation": "EscalationDocument answer_delta escalation_document",
    "_grounding": "Grounding call_words grounding words_in",
    "_import": "Chat read_chats",
    "_messages": "ChatProblem UserMessage AssistantTurn",
    "_replay": "Explanation Replay Source explain replay",
    "_rungs": "RungRow RungTally decisions_by_rung sum_rungs tokens_in",
    "_tokens": "TokenReport TokenRow chat_tokens token_report",
    "_transcript": "Entry LlmConversationLogger transcript",
    "_what_if": "ChangedPrompt Comparison PromptFigures Tolerance WhatIf what_if",
    "_turns": "CallRow StreamSummary TurnRow fold_files history_tokens summarize",
}
_HOMES = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found
