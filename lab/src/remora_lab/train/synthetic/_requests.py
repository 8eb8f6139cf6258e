"""Rows in which a person's sentence chooses the tool, or no tool fits and the model must decline.

Tools and arguments come from the episodes of synthetic agents. The sentence is made from the right tool's description
and its arguments. To decline, the sentence belongs to the tools of another agent.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from remora.context.contracts import ToolSpec
from remora.context.render import list_tool
from remora.ports import TokenCounter
from remora.subagent import NO_TOOL_FITS, SUBMIT_RESULT, SUBMIT_RESULT_TOOL
from remora_lab.train._rows import SYNTHETIC, TrainingRow
from remora_lab.train.synthetic._dice import Dice
from remora_lab.train.synthetic._episodes import episode

REQUEST, REFUSAL = "request", "refusal"
"""The operations of these rows."""
DECLINED = 0.3
"""Share of the rows that no tool fits."""
_EARLIER = 50
"""Requests of other agents to take a sentence from that no tool fits."""
TOOL = 0.6
"""Share of the rows that offer the tool `no_tool_fits`. In others, `submit_result` declines."""
SYSTEMS = (
    "Do what the user asks. Take arguments from the user's words. If no tool fits, call {} and say so.",
    "You help a person with the tools below. Call the one that does what is asked. "
    "When none of them does, call {}: say that no tool fits.",
    "Choose the tool that fits the goal. Never call a tool that does something else: "
    "if there is none that fits, {} says that no tool fits.",
)
BEFORE = ("", "", "", "I am in a hurry. ", "As we said yesterday: ", "Good morning! ", "One more thing. ")
AFTER = (
    "",
    "",
    "",
    " Thank you!",
    " It should be done before noon.",
    " Tell me when it is done.",
    " Nothing else, please.",
)
SPARE = {
    "note": {"type": "string", "optional": True},
    "limit": {"type": "integer", "optional": True},
    "dry_run": {"type": "boolean", "default": False},
    "language": {"type": "string", "default": "en"},
}
"""Arguments that tools have now and then, and that no sentence asks for."""
OPENINGS = ("", "", "Please ", "Could you ", "I need you to ", "Can you ", "Hi! Please ", "I would like you to ")
NO_TOOL = ("No tool fits: {}", "None of the tools can do this: {}", "No tool fits this request: {}")
_TOOLS = re.compile(r"Tools:\n(.*?)\n\n", re.DOTALL)


@dataclass(frozen=True)
class _Request:
    sentence: str
    tools: tuple[Mapping[str, Any], ...]
    answer: str


def request_rows(seed: int, rows: int, counter: TokenCounter, *, unseen: bool = False) -> Iterator[TrainingRow]:
    """So many rows of a person's request and the call that fits, or the refusal."""
    dice = Dice(f"requests-{seed}-{unseen}", unseen=unseen)
    found = _requests(f"{'unseen' if unseen else 'made'}-request-{seed}", dice, counter, unseen=unseen)
    earlier = deque([next(found)], maxlen=_EARLIER)
    for number in range(rows):
        request = next(found)
        foreign = [each for each in earlier if not _share_tools(each, request)]
        earlier.append(request)
        sentence, answer, declines = request.sentence, request.answer, NO_TOOL_FITS if dice.maybe(TOOL) else None
        if refused := bool(foreign and dice.maybe(DECLINED)):
            sentence = dice.one(foreign).sentence
            answer = refusal_of(dice, sentence, declines)
        sentence = f"{dice.one(BEFORE)}{sentence}{dice.one(AFTER)}"
        own = [_with_spare(dice, tool) for tool in dice.shuffled(request.tools) if tool["name"] != SUBMIT_RESULT_TOOL]
        messages = prompt_of(own, declines, dice.one(SYSTEMS), packet_of(sentence, dice.number(1, 12)))
        kind = REFUSAL if refused else REQUEST
        yield TrainingRow(f"request-{seed}-{number}/1", SYNTHETIC, kind, "json-3", messages, answer)


def _requests(name: str, dice: Dice, counter: TokenCounter, *, unseen: bool) -> Iterator[_Request]:
    """Endless: of each synthetic episode, the calls whose arguments a sentence can hold, each tool once."""
    number = 0
    while True:
        said: set[str] = set()
        for row in episode(f"{name}-{number}", counter, unseen=unseen):
            call = orjson.loads(row.answer)
            tools = _tools(row)
            spec = next((tool for tool in tools if tool["name"] == call["tool"]), None)
            if spec is None or call["tool"] in {*said, SUBMIT_RESULT_TOOL}:
                continue
            if not spec["description"] or not _sayable(call["args"]):
                continue
            said.add(call["tool"])
            yield _Request(_sentence(dice, str(spec["description"]), call["args"]), tools, row.answer)
        number += 1


def _tools(row: TrainingRow) -> tuple[Mapping[str, Any], ...]:
    listed = _TOOLS.search(str(row.messages[0]["content"]))
    return tuple(map(orjson.loads, listed.group(1).split("\n"))) if listed else ()


def _sayable(args: Mapping[str, Any]) -> bool:
    return all(isinstance(value, str | int | float) and len(str(value)) < 60 for value in args.values())


def _sentence(dice: Dice, description: str, args: Mapping[str, Any]) -> str:
    """The description as a request, with every argument in words."""
    opening = dice.one(OPENINGS)
    work = description.rstrip(".")
    work = work[0].lower() + work[1:] if opening else work
    named = [f"{name.replace('_', ' ')} {value}" for name, value in dice.shuffled(list(args.items()))]
    if not named:
        return f"{opening}{work}."
    if dice.maybe(0.4):
        return f"{opening}{work}: {', '.join(named)}."
    if dice.maybe(0.5):
        return f"{opening}{work} ({', '.join(named)})."
    return f"{opening}{work}. The {' and the '.join(named)}."


def _share_tools(one: _Request, other: _Request) -> bool:
    names = [{str(tool["name"]) for tool in each.tools} - {SUBMIT_RESULT_TOOL} for each in (one, other)]
    return bool(names[0] & names[1])


def refusal_of(dice: Dice, sentence: str, tool: ToolSpec | None) -> str:
    """The call that declines: by this tool, or else by `submit_result`."""
    if tool is not None:
        return orjson.dumps({"tool": tool.name, "args": {"reason": sentence.rstrip(".")[:100]}}).decode()
    summary = dice.one(NO_TOOL).format(sentence.rstrip("."))
    return orjson.dumps({"tool": SUBMIT_RESULT_TOOL, "args": {"summary": summary[:120]}}).decode()


def packet_of(sentence: str, max_turns: int | None) -> dict[str, Any]:
    """The first packet of an agent whose goal is this sentence."""
    constraints = {} if max_turns is None else {"constraints": {"max_turns": max_turns}}
    return {"goal": sentence, **constraints, "turn": 1}


def prompt_of(
    listed: Sequence[Mapping[str, Any]], declines: ToolSpec | None, system: str, packet: Mapping[str, Any]
) -> tuple[dict[str, str], ...]:
    """The prompt of an agent that has these tools, those that decline, and `submit_result`."""
    built_in = [list_tool(tool) for tool in (declines, SUBMIT_RESULT) if tool]
    tools = "\n".join(orjson.dumps(tool).decode() for tool in (*listed, *built_in))
    how = 'Answer with one JSON object and nothing else: {"tool": NAME, "args": {…}}'
    system = system.format(declines.name if declines else SUBMIT_RESULT_TOOL)
    return (
        {"role": "system", "content": f"{system}\n\nTools:\n{tools}\n\n{how}"},
        {"role": "user", "content": orjson.dumps(packet).decode()},
    )


def _with_spare(dice: Dice, tool: Mapping[str, Any]) -> dict[str, Any]:
    """The tool, now and then with an argument that may be left out."""
    spare = {name: SPARE[name] for name in dice.some(list(SPARE), 0, 1) if name not in tool["args"]}
    return {**tool, "args": {**tool["args"], **(spare if dice.maybe(0.4) else {})}}
