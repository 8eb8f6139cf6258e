"""Reading the Long Track: pure functions over events. Names are loaded when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remora._lazy import lazy_names

if TYPE_CHECKING:
    from remora.analysis._compare import (
        AgentComparison,
        AgentPair,
        RunComparison,
        TurnPair,
        TurnView,
        compare,
        compare_runs,
        view_turns,
    )
    from remora.analysis._escalation import EscalationDocument, answer_delta, escalation_document
    from remora.analysis._fork import CONTINUE, FORK, continued_turns, inherited_events, inherited_seq
    from remora.analysis._grounding import Grounding, call_words, grounding, words_in
    from remora.analysis._import import Chat, ChatProblem, read_chats
    from remora.analysis._prompt_parts import PromptItem, PromptPart, mark_new, prompt_parts
    from remora.analysis._replay import Explanation, Replay, Source, explain, replay
    from remora.analysis._rungs import BY_RULE, RungRow, RungTally, decisions_by_rung, sum_rungs, tokens_in
    from remora.analysis._seen import Shown, Sighting, is_telling, squeezed, words_of
    from remora.analysis._tokens import TokenReport, TokenRow, chat_tokens, token_report
    from remora.analysis._transcript import Entry, LlmConversationLogger, describe_fit, transcript
    from remora.analysis._turns import CallRow, StreamSummary, TurnRow, fold_files, history_tokens, summarize
    from remora.analysis._what_if import ChangedPrompt, Comparison, PromptFigures, Tolerance, WhatIf, what_if
    from remora.analysis.exporting.atif import atif
    from remora.analysis.exporting.chat import chat
    from remora.analysis.exporting.complete import CompleteStream
    from remora.analysis.exporting.otlp import otlp
    from remora.analysis.exporting.table import COLUMNS, csv_text, turn_rows
    from remora.analysis.logs import AssistantTurn, Conversation, LogFile, LogProblem, UserMessage, read_log
    from remora.analysis.reporting.agent import REPORTED, AgentReport, FileReport, ModelUse, Refusal, Step, report_agent
    from remora.analysis.reporting.html import html
    from remora.analysis.reporting.markdown import markdown
    from remora.analysis.reporting.places import Place, node_lines
    from remora.analysis.reporting.sarif import sarif
    from remora.analysis.reporting.totals import (
        Failure,
        Group,
        Losses,
        Price,
        Report,
        ToolTotals,
        build_report,
        report_json,
    )

__all__ = [
    "BY_RULE",
    "COLUMNS",
    "CONTINUE",
    "FORK",
    "REPORTED",
    "AgentComparison",
    "AgentPair",
    "AgentReport",
    "AssistantTurn",
    "CallRow",
    "ChangedPrompt",
    "Chat",
    "ChatProblem",
    "Comparison",
    "CompleteStream",
    "Conversation",
    "Entry",
    "EscalationDocument",
    "Explanation",
    "Failure",
    "FileReport",
    "Grounding",
    "Group",
    "LlmConversationLogger",
    "LogFile",
    "LogProblem",
    "Losses",
    "ModelUse",
    "Place",
    "Price",
    "PromptFigures",
    "PromptItem",
    "PromptPart",
    "Refusal",
    "Replay",
    "Report",
    "RunComparison",
    "RungRow",
    "RungTally",
    "Shown",
    "Sighting",
    "Source",
    "Step",
    "StreamSummary",
    "TokenReport",
    "TokenRow",
    "Tolerance",
    "ToolTotals",
    "TurnPair",
    "TurnRow",
    "TurnView",
    "UserMessage",
    "WhatIf",
    "answer_delta",
    "atif",
    "build_report",
    "call_words",
    "chat",
    "chat_tokens",
    "compare",
    "compare_runs",
    "continued_turns",
    "csv_text",
    "decisions_by_rung",
    "describe_fit",
    "escalation_document",
    "explain",
    "fold_files",
    "grounding",
    "history_tokens",
    "html",
    "inherited_events",
    "inherited_seq",
    "is_telling",
    "mark_new",
    "markdown",
    "node_lines",
    "otlp",
    "prompt_parts",
    "read_chats",
    "read_log",
    "replay",
    "report_agent",
    "report_json",
    "sarif",
    "squeezed",
    "sum_rungs",
    "summarize",
    "token_report",
    "tokens_in",
    "transcript",
    "turn_rows",
    "view_turns",
    "what_if",
    "words_in",
    "words_of",
]

_MODULES = {
    "_compare": "AgentPair AgentComparison RunComparison TurnPair TurnView compare compare_runs view_turns",
    "_escalation": "EscalationDocument answer_delta escalation_document",
    "_fork": "CONTINUE FORK continued_turns inherited_events inherited_seq",
    "_grounding": "Grounding call_words grounding words_in",
    "_import": "Chat ChatProblem read_chats",
    "logs": "AssistantTurn Conversation LogFile LogProblem UserMessage read_log",
    "_prompt_parts": "PromptItem PromptPart mark_new prompt_parts",
    "_replay": "Explanation Replay Source explain replay",
    "_rungs": "BY_RULE RungRow RungTally decisions_by_rung sum_rungs tokens_in",
    "_seen": "Shown Sighting is_telling squeezed words_of",
    "_tokens": "TokenReport TokenRow chat_tokens token_report",
    "_transcript": "Entry LlmConversationLogger describe_fit transcript",
    "_turns": "CallRow StreamSummary TurnRow fold_files history_tokens summarize",
    "_what_if": "ChangedPrompt Comparison PromptFigures Tolerance WhatIf what_if",
    "exporting.atif": "atif",
    "exporting.chat": "chat",
    "exporting.complete": "CompleteStream",
    "exporting.otlp": "otlp",
    "exporting.table": "COLUMNS csv_text turn_rows",
    "reporting.agent": "REPORTED AgentReport FileReport ModelUse Refusal Step report_agent",
    "reporting.html": "html",
    "reporting.markdown": "markdown",
    "reporting.places": "Place node_lines",
    "reporting.sarif": "sarif",
    "reporting.totals": "Failure Group Losses Price Report ToolTotals build_report report_json",
}
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
