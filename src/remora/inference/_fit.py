"""Asks whether the tool that a model chose does what was asked, where the model may decline.

A model that was not trained to decline calls the nearest tool. Asked about that tool alone, after some examples, the
same model mostly says that it does something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from remora.context.contracts import ToolSpec
from remora.context.signatures import list_signatures
from remora.context.text import one_line
from remora.events import Call
from remora.inference._stream import Reply
from remora.ports import Decision, Prompt
from remora.subagent import NO_TOOL_FITS_TOOL, RESERVED_TOOLS

FIT_GRAMMAR = 'root ::= "Yes" | "No"'
FIT_TOKENS = 4
"""Most tokens of the answer."""
FIT_TOP = 10
"""How many tokens' probabilities are asked for."""
LEAST_YES = 0.6
"""The least log odds of `Yes` for a call that is made."""
UNLIKELY = -20.0
"""The log probability of a token that is not among the likeliest."""
MAX_CHARACTERS = 2000
"""Characters of the request that the question shows."""

_NAMED = re.compile(r'"tool"\s*:\s*"([^"\\]+)"')
_SYSTEM = (
    "A user asks for something, and there is one function. "
    "Say whether calling the function helps to do what the user asks. Answer Yes or No."
)
_EXAMPLES = (
    ("Book a table for four at Luigi's tonight at 8.", "get_stock_price(symbol: string): Price of a stock.", "No"),
    ("How hot is it in Oslo right now?", "current_weather(city: string, unit?: string): Weather of a city.", "Yes"),
    ("Convert 120 dollars to euros.", "calculate_area(width: number, height: number): Area of a rectangle.", "No"),
    ("What did the team decide about the release? See notes.md.", "read_file(path: string): Read a file.", "Yes"),
    ("Cancel my order 5521.", "track_order(order_id: string): Where an order is.", "No"),
)


def call_to_check(prompt: Prompt, decision: Decision) -> Call | None:
    """The agent's first call, if it may decline instead. None if there is nothing to ask."""
    if prompt.turn > 1 or not prompt.offers(NO_TOOL_FITS_TOOL) or not decision.calls:
        return None
    first = decision.calls[0]
    return None if first.tool in RESERVED_TOOLS else first


def begun_call(prompt: Prompt, text: str) -> Call | None:
    """The offered tool that an unfinished call names, without arguments."""
    named = _NAMED.search(text)
    return Call(call_id="begun", tool=named[1]) if named and prompt.offers(named[1]) else None


def fit_messages(prompt: Prompt, call: Call) -> list[dict[str, str]]:
    """The question about a call. All but the last message are the same for every call."""
    messages = [{"role": "system", "content": _SYSTEM}]
    for asked, function, answer in _EXAMPLES:
        messages += [_question(asked, function), {"role": "assistant", "content": answer}]
    return [*messages, _question(_goal(prompt), describe_tool(_spec(prompt, call)))]


def describe_tool(tool: ToolSpec) -> str:
    """The tool's signature and description, in one line."""
    return list_signatures([tool])[0].removeprefix("- ")


def _question(asked: str, function: str) -> dict[str, str]:
    return {"role": "user", "content": f"User: {asked}\nFunction: {function}"}


def _goal(prompt: Prompt) -> str:
    """What was asked: the goal, or without one the prompt's own text."""
    text = prompt.goal or _goal_in(prompt.text)
    return one_line(text, MAX_CHARACTERS)


def _goal_in(text: str) -> str:
    """The goal in a packet of style `json`; another text as it is."""
    try:
        packet = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    goal = packet.get("goal") if isinstance(packet, Mapping) else None
    return goal if isinstance(goal, str) else text


def judge_fit(
    prompt: Prompt, decision: Decision, call: Call, messages: Sequence[Mapping[str, Any]], reply: Reply
) -> Decision:
    """The decision with the question and its answer. If the call does not fit, `no_tool_fits` takes its place."""
    said, odds = reply.text.strip(), log_odds(reply.probabilities)
    fits = not said.lower().startswith("no") if odds is None else odds >= LEAST_YES
    fit: dict[str, Any] = {"proposed": {"tool": call.tool, "args": call.args}, "messages": list(messages)}
    fit |= {"answer": said[:40], "fits": fits} | ({} if odds is None else {"log_odds": odds, "least": LEAST_YES})
    fit |= {"usage": dict(reply.usage)} if reply.usage else {}
    checked = replace(decision, fit=fit)
    return checked if fits else replace(checked, calls=(_declining(prompt, call),), bad=())


def log_odds(probabilities: Mapping[str, float]) -> float | None:
    """How much likelier `Yes` is than `No`. None if neither is among the likeliest tokens."""
    known: dict[str, float] = {}
    for token, value in probabilities.items():
        word = token.strip().lower()
        known[word] = max(known.get(word, UNLIKELY), value)
    if not known.keys() & {"yes", "no"}:
        return None
    return round(known.get("yes", UNLIKELY) - known.get("no", UNLIKELY), 3)


def _declining(prompt: Prompt, call: Call) -> Call:
    tool = _spec(prompt, call)
    reason = f"`{tool.name}` is the nearest tool, and it does something else: {one_line(tool.description, 120)}"
    return Call(call_id=call.call_id, tool=NO_TOOL_FITS_TOOL, args={"reason": reason.rstrip(": ")})


def _spec(prompt: Prompt, call: Call) -> ToolSpec:
    return next(tool for tool in prompt.tools if tool.name == call.tool)
