"""Renders the packet as messages for a model, within the budget, with token counts for the receipt.

Constant parts come first and are byte-identical in every turn, so that a server can reuse its prefix cache. The system
message holds the agent's text and its tools. The user message holds the packet, newest parts last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, get_args

import orjson

from remora.context.budget import CONSTRAINTS_CAP, EMPTIEST, ERROR_CAP, Fitted, fit, reserved
from remora.context.contracts import ToolSpec
from remora.context.evidence import MESSAGE_OVERHEAD, Message, append_message, write_account, write_chat
from remora.context.models import Constraints, DecisionPacket
from remora.context.signatures import list_signatures
from remora.context.text import messages_text, one_line
from remora.errors import BudgetError
from remora.ports import TokenCounter

Style = Literal["json", "markdown", "account", "chat"]
STYLES: tuple[Style, ...] = get_args(Style)
CHRONOLOGICAL: frozenset[Style] = frozenset({"account", "chat"})
"""Styles that show the run as it happened, with people's words and every call, and offer `recall`."""
Calling = Literal["text", "reasoned", "native"]
"""How a model calls tools: `text` lists them in the prompt and asks for JSON; `reasoned` also asks for a sentence that
says why, before the call, and lists tools as signatures; `native` uses the server's API for tools."""
RENDERERS: dict[Style, str] = {"json": "json-3", "markdown": "markdown-3", "account": "account-4", "chat": "chat-3"}
"""The version of each style, as receipts name it. A new version of the account chooses other lines."""

WIDEST = 32
"""A text with more characters per token of its limit counts as too long: counting megabytes would take seconds."""
WIDE = 5
"""Few texts have more characters per token. Of a longer text, the beginning is counted first."""
SEAM = 16
"""Most extra tokens that a prefix takes when it is counted alone."""

ACCOUNT_HEAD = "The run so far, oldest first; `#n` is an event, indented lines are outputs."
EARLIER_HEADS = (
    "What has happened so far, oldest first. `#n` is an event's number. Indented lines are tools' outputs.",
)
"""The first lines of accounts up to `account-3`."""
ACCOUNT_SYSTEM = (
    "You work on a task in turns. Each turn shows an account of the run so far: the task, what people said, and your "
    "calls with what they returned. Make the next call, or answer in words when the task is done."
)
"""The default system text of style `account`."""
CHAT_SYSTEM = (
    "You work on a task in turns. The messages show the run so far, with the least important parts left out. Make the "
    "next call, or answer in words when the task is done."
)
"""The default system text of style `chat`."""
DEFAULT_SYSTEM: dict[Style, str] = {"account": ACCOUNT_SYSTEM, "chat": CHAT_SYSTEM}
REST_SHARE = 0.5
"""The share of a prompt that everything beside the account may take."""
LEAST_EVIDENCE = 60
"""Other styles show evidence if at least this many tokens are left beside the packet."""

_LINES = re.compile(r"\d+ lines: ")
_ANSWER = 'Answer with one JSON object and nothing else: {"tool": NAME, "args": {…}}'
_REASONED = 'Answer with one JSON object and nothing else: {"why": ONE SHORT SENTENCE, "tool": NAME, "args": {…}}'


@dataclass(frozen=True)
class Rendered:
    """A prompt within its limit, with its token counts."""

    system: str
    shown: tuple[Message, ...]
    """The messages after the system message."""
    tokens: dict[str, int]
    """By field, and `total`."""
    left_out: dict[str, int]

    @property
    def messages(self) -> tuple[Message, ...]:
        return ({"role": "system", "content": self.system}, *self.shown)

    @property
    def user(self) -> str:
        """The packet as text."""
        return messages_text(self.shown)

    def ending_with(self, text: str, tokens: int) -> Rendered:
        """A copy that ends with `text`, which takes `tokens`."""
        shown = [*self.shown]
        append_message(shown, _user(text.strip()) if shown[-1]["role"] != "user" else _user(text))
        counts = self.tokens | {"closing": tokens, "total": self.tokens["total"] + tokens}
        return replace(self, shown=tuple(shown), tokens=counts)


def render(
    packet: DecisionPacket,
    *,
    system_prompt: str,
    tools: Sequence[ToolSpec],
    limit: int,
    counter: TokenCounter,
    style: Style = "json",
    calling: Calling = "text",
) -> Rendered:
    """The prompt for this packet, at most `limit` tokens by `counter`. Raises `BudgetError` if it cannot fit."""
    system = system_text(system_prompt, tools, calling)
    fixed = fixed_tokens(system, counter, tools if calling == "native" else ())
    return render_within(packet, system, fixed, limit=limit, count=counter.count, style=style, calling=calling)


def render_within(
    packet: DecisionPacket,
    system: str,
    fixed: int,
    *,
    limit: int,
    count: Callable[[str], int],
    style: Style,
    calling: Calling,
) -> Rendered:
    """Like `render`, for a system text whose `fixed` tokens are already counted."""
    count = cache(count)
    if style == "account":
        return _render_account(packet, system, fixed, limit, count)
    if style == "chat":
        return _render_chat(packet, system, fixed, limit, count, calling)
    text = _json if style == "json" else _markdown

    def measure(sections: dict[str, Any]) -> int:
        shown, room = text(sections), limit - fixed
        if len(shown) > limit * WIDEST or (len(shown) > room * WIDE and count(shown[: room * WIDE]) > room + SEAM):
            return limit + 1
        return fixed + count(shown)

    fitted = fit(packet, measure, limit, count)
    sections, left_out = fitted.sections, fitted.left_out
    if packet.evidence.entries:
        sections, left_out = _with_evidence(packet, fitted, measure, limit, count)
    user = text(sections)
    tokens = {name: count(text({name: part})) for name, part in sections.items()}
    total = fixed + count(user)
    return Rendered(system, (_user(user),), {"system": fixed, **tokens, "total": total}, left_out)


def reserved_tokens(style: Style, count: Callable[[str], int]) -> int:
    """Tokens that this style needs beside system text and tools, so that every packet fits."""
    return (
        _least_rest(count) + count(ACCOUNT_HEAD) + LEAST_EVIDENCE + SEAM if style in CHRONOLOGICAL else reserved(count)
    )


def _least_rest(count: Callable[[str], int]) -> int:
    """Tokens beside an account with every optional part left out."""
    return CONSTRAINTS_CAP + ERROR_CAP + count(_markdown(EMPTIEST)) + SEAM


def _with_evidence(
    packet: DecisionPacket,
    fitted: Fitted,
    measure: Callable[[dict[str, Any]], int],
    limit: int,
    count: Callable[[str], int],
) -> tuple[dict[str, Any], dict[str, int]]:
    """Add as many lines of evidence to the sections as fit."""
    room = limit - measure(fitted.sections)
    while room >= LEAST_EVIDENCE:
        account = write_account("", packet.evidence, room, count, recalls=False)
        sections = fitted.sections | {"evidence": account.text.splitlines()}
        if (over := measure(sections) - limit) <= 0:
            return sections, fitted.left_out | {f"evidence {name}": n for name, n in account.left_out.items()}
        room = min(room - over, room * 9 // 10)
    return fitted.sections, fitted.left_out


def _render_account(
    packet: DecisionPacket, system: str, fixed: int, limit: int, count: Callable[[str], int]
) -> Rendered:
    """Render the run as a chronological account, followed by knowledge, candidates and other sections."""
    room = limit - fixed
    fitted = _beside(packet, room, count)
    if _is_newest(packet.last_error, packet):
        fitted.sections.pop("last_error", None)
    if fitted.sections.keys() == {"turn"}:
        fitted.sections.clear()  # the account shows how far the run is
    rest = _markdown(fitted.sections)
    around = f"{ACCOUNT_HEAD}\n", f"\n{rest}" if rest else ""
    # The account is counted with the text around it, so the whole prompt is within the limit.
    account = write_account(_goal(packet), packet.evidence, room, count, around)
    tokens = {"system": fixed, "account": account.tokens - count("".join(around)), **_by_section(fitted, count)}
    tokens["total"] = _checked(fixed + account.tokens, limit)
    return Rendered(system, (_user(account.text.join(around)),), tokens, fitted.left_out | dict(account.left_out))


def _render_chat(
    packet: DecisionPacket, system: str, fixed: int, limit: int, count: Callable[[str], int], calling: Calling
) -> Rendered:
    """Render the run as chat messages. Knowledge, candidates and other sections are a last message of the user."""
    fitted = _beside(packet, limit - fixed, count)
    fitted.sections.pop("turn", None)  # the messages show how far the run is
    if _is_newest(packet.last_error, packet):
        fitted.sections.pop("last_error", None)
    rest = _markdown(fitted.sections)
    taken = count(rest) + MESSAGE_OVERHEAD if rest else 0
    chat = write_chat(_goal(packet), packet.evidence, limit - fixed - taken, count, calls_in_text=calling != "native")
    shown = [*chat.messages]
    if rest:
        append_message(shown, _user(rest))
    tokens = {"system": fixed, "chat": chat.tokens, **_by_section(fitted, count)}
    tokens["total"] = _checked(fixed + chat.tokens + taken, limit)
    return Rendered(system, tuple(shown), tokens, fitted.left_out | dict(chat.left_out))


def _is_newest(error: str | None, packet: DecisionPacket) -> bool:
    """Whether the newest result shows this error."""
    newest = packet.evidence.entries[-1] if packet.evidence.entries else None
    if not error or newest is None or not newest.failed:
        return False
    # A summary of many lines begins with their number, and ends with `…` if it is cut.
    said = _LINES.sub("", error.removeprefix(f"{newest.tool}: "), count=1).rstrip("…")
    return said in " ".join(newest.lines)


_BESIDE = (
    "node_summary", "knowledge", "last_error", "hub_context", "state_summary", "diagnostics", "candidate_actions",
    "excerpts", "extensions",
)  # fmt: skip
"""The fields of a packet that are shown beside the run's account."""
_UNCONSTRAINED = Constraints()


def _beside(packet: DecisionPacket, room: int, count: Callable[[str], int]) -> Fitted:
    """The sections beside the run's account, within their share."""
    if not any(map(packet.__dict__.__getitem__, _BESIDE)) and packet.constraints == _UNCONSTRAINED:
        return Fitted({"turn": packet.turn}, {})  # the common case: nothing to fit
    bare = packet.model_copy(update={"goal": "", "recent_actions": [], "operation": "", "node_id": ""})
    most = max(int(room * REST_SHARE), _least_rest(count))
    return fit(bare, lambda sections: count(_markdown(sections)), most, count)


def _by_section(fitted: Fitted, count: Callable[[str], int]) -> dict[str, int]:
    return {name: count(_markdown({name: part})) for name, part in fitted.sections.items()}


def _checked(total: int, limit: int) -> int:
    if total > limit:
        raise BudgetError(f"The prompt exceeds its limit of {limit} tokens even without its optional parts")
    return total


def _goal(packet: DecisionPacket) -> str:
    return " ".join(part for part in (packet.goal, _target(packet)) if part)


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _target(packet: DecisionPacket) -> str:
    # The operation of an imported log says nothing about its task.
    operation = "" if packet.operation == "import" else packet.operation
    named = [part for part in (operation, packet.node_id) if part and part not in packet.goal]
    return f"({', '.join(named)})" if named else ""


def fixed_tokens(system: str, counter: TokenCounter, sent_beside: Sequence[ToolSpec] = ()) -> int:
    """Tokens of every prompt beside its packet: the system text, and tools sent beside the messages."""
    tools = counter.count(_json([tool.openai() for tool in sent_beside])) if sent_beside else 0
    return counter.count(system) + tools + 2 * MESSAGE_OVERHEAD


def system_text(system_prompt: str, tools: Sequence[ToolSpec], calling: Calling = "text") -> str:
    """The system message. It is constant during a run."""
    if calling == "native":
        return system_prompt.strip()
    if calling == "reasoned":
        listed, answer = list_signatures(tools), _REASONED
    else:
        listed, answer = [_json(list_tool(tool)) for tool in tools], _ANSWER
    return "\n".join([system_prompt.strip(), "", "Tools:", *listed, "", answer])


def list_tool(tool: ToolSpec) -> dict[str, Any]:
    """A tool as the system message lists it."""
    return {"name": tool.name, "description": tool.description, "args": _args(tool)}


def _args(tool: ToolSpec) -> dict[str, Any]:
    """The arguments by name. One that may be left out has a default, or else is marked as `optional`."""
    required = tool.parameters.get("required", ())
    return {
        name: {key: item for key, item in schema.items() if key != "title"}
        | ({"optional": True} if name not in required and "default" not in schema else {})
        for name, schema in tool.parameters.get("properties", {}).items()
    }


def _markdown(sections: dict[str, Any]) -> str:
    """The sections under headings: lists as lists, excerpts as code blocks, other values as JSON."""
    return "\n".join(line for name, part in sections.items() for line in _section(name, part))


def _section(name: str, part: Any) -> Iterator[str]:
    title = name.replace("_", " ").capitalize()
    if name == "excerpts":
        for excerpt in part:
            fence = _fence(excerpt["text"])
            yield from (f"## {one_line(excerpt['label'])} from line {excerpt['start_line']}", fence)
            yield from (excerpt["text"], fence)
    elif isinstance(part, dict):
        yield from (f"## {title}", *(f"- {_inline(key)}: {_inline(value)}" for key, value in part.items()))
    elif isinstance(part, list):
        yield from (f"## {title}", *(f"- {_inline(item)}" for item in part))
    else:
        yield f"{title}: {_inline(part)}"


def _fence(text: str) -> str:
    """A code fence that is longer than any run of backticks in the text."""
    return "`" * max(3, 1 + max((len(ticks) for ticks in re.findall("`+", text)), default=0))


def _inline(value: Any) -> str:
    """The value in one line. Text with line breaks or control characters is written as JSON."""
    return value if isinstance(value, str) and value.isprintable() else _json(value)


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
