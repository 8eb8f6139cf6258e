"""Rows in which a person asks for something in their own words, and a tool does it, or none does.

Sentences, tools and calls were written by hand (`_toolsets`). What varies by row is which tools are offered: all of the
set, fewer, some of other fields, or all but the right one, so that the model must decline; how they are named, in
what order their arguments stand, and which numbers are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from remora.context.contracts import ToolSpec
from remora.context.render import list_tool
from remora.ports import TokenCounter
from remora.subagent import NO_TOOL_FITS
from remora_lab.train._rows import SYNTHETIC, TrainingRow, answer_text
from remora_lab.train.synthetic._dice import Dice
from remora_lab.train.synthetic._naming import restyled, with_shuffled_arguments
from remora_lab.train.synthetic._renumbering import renumbered
from remora_lab.train.synthetic._requests import (
    DECLINED,
    REFUSAL,
    REQUEST,
    SYSTEMS,
    TOOL,
    packet_of,
    prompt_of,
    refusal_of,
)
from remora_lab.train.synthetic._toolsets import Said, Toolset, toolsets

FEWER, MORE = 0.35, 0.3
"""Shares of the rows without some of the tools that are not needed, and with tools of other fields."""
BARE = 0.5
"""Share of the packets without constraints, as those of requests that are asked once."""
NEAR_MISS, TAKEN_AWAY = 0.55, 0.25
"""Shares of the refusals: sentences written as such, and those whose tool is not offered. Others: of other fields."""
SYSTEMS_OF_PEOPLE = (
    SYSTEMS[0],
    SYSTEMS[0],
    *SYSTEMS,
    "You are a helpful assistant with the tools below. If none of them can do what is asked, call {}.",
    "Call the function that answers the user, with arguments as its parameters describe them. "
    "Leave out what the user does not mention. If no function is suitable, call {}.",
    "You can use these functions. Never guess: where none does what the user wants, {} tells them so.",
    "Assistant for one user. One message, one call. Out of reach of the tools? Then {}.",
)
BEFORE = ("Hi! ", "Hello, ", "Hey. ", "ok so ", "Quick one: ", "Good evening. ", "Excuse me, ")
AFTER = (" Thanks!", " thx", " Thank you.", " Nothing else.", " Please.", " That's all.", " Cheers")
RENAMED, REORDERED = 0.4, 0.4
"""Shares of the rows whose names have another style than they were written in, or whose arguments another order."""
RENUMBERED = 0.5
"""Share of the rows whose order numbers, amounts and the like are others."""
DECORATED, UNDOTTED = 0.12, 0.12


@dataclass(frozen=True)
class _Asked:
    """A sentence, the tools that are offered, and the call; none if it must be declined."""

    said: Said
    tools: tuple[ToolSpec, ...]
    fits: bool


def spoken_rows(seed: int, rows: int, counter: TokenCounter, *, unseen: bool = False) -> Iterator[TrainingRow]:
    """So many rows of what people say. With `unseen`, of toolsets that are never trained on."""
    del counter  # the prompts hold one sentence each: they are never cut
    dice = Dice(f"spoken-{seed}-{unseen}", unseen=unseen)
    sets = [each for each in toolsets() if each.is_unseen == unseen]
    for number in range(rows):
        asked = _asked(dice, sets)
        if dice.maybe(RENUMBERED):
            asked = replace(asked, said=renumbered(dice, asked.said))
        declines = NO_TOOL_FITS if dice.maybe(TOOL) else None
        sentence = _spoken(dice, asked.said.say)
        tools, answer = _offered(dice, asked)
        answer = answer if asked.fits else refusal_of(dice, sentence, declines)
        packet = packet_of(sentence, None if dice.maybe(BARE) else dice.number(1, 12))
        listed = [list_tool(tool) for tool in dice.shuffled(tools)]
        messages = prompt_of(listed, declines, dice.one(SYSTEMS_OF_PEOPLE), packet)
        kind = REQUEST if asked.fits else REFUSAL
        yield TrainingRow(f"spoken-{seed}-{number}/1", SYNTHETIC, kind, "json-3", messages, answer)


def _asked(dice: Dice, sets: Sequence[Toolset]) -> _Asked:
    chosen = dice.one(sets)
    if dice.maybe(DECLINED):
        return _refused(dice, chosen, sets)
    said = dice.one([each for each in chosen.requests if each.call])
    needed = said.call.tool if said.call else ""
    kept = _some_left_out(dice, chosen.specs, needed)
    return _Asked(said, (*kept, *_of_other_fields(dice, chosen, sets, kept)), fits=True)


def _refused(dice: Dice, chosen: Toolset, sets: Sequence[Toolset]) -> _Asked:
    """A sentence that no tool fits: written as one, without the tool that would fit, or of another field."""
    kind = dice.chance.random()
    near = [each for each in chosen.requests if each.call is None]
    robbed = [each for each in chosen.requests if each.call and _without(chosen, each)]
    if near and (kind < NEAR_MISS or chosen.wide):
        # No tools of other fields: one of them may do what is missing here.
        return _Asked(dice.one(near), _some_left_out(dice, chosen.specs, ""), fits=False)
    if robbed and kind < NEAR_MISS + TAKEN_AWAY:
        said = dice.one(robbed)
        left = _without(chosen, said)
        return _Asked(said, (*left, *_of_other_fields(dice, chosen, sets, left)), fits=False)
    said = dice.one([each for other in _others(chosen, sets) for each in other.requests if each.call])
    return _Asked(said, _some_left_out(dice, chosen.specs, ""), fits=False)


def _without(chosen: Toolset, said: Said) -> tuple[ToolSpec, ...]:
    """The tools of the set without the one that fits, and without those that could stand in for it."""
    gone = chosen.stand_ins(said.call.tool) if said.call else frozenset()
    return tuple(tool for tool in chosen.specs if tool.name not in gone)


def _some_left_out(dice: Dice, tools: Sequence[ToolSpec], needed: str) -> tuple[ToolSpec, ...]:
    """All tools, or some of them; always the one that is needed."""
    if len(tools) < 2 or not dice.maybe(FEWER):
        return tuple(tools)
    kept = {tool.name for tool in dice.some(tools, 1, len(tools) - 1)} | {needed}
    return tuple(tool for tool in tools if tool.name in kept)


def _of_other_fields(
    dice: Dice, chosen: Toolset, sets: Sequence[Toolset], own: Sequence[ToolSpec]
) -> tuple[ToolSpec, ...]:
    """Now and then up to four tools that have nothing to do with it."""
    if not dice.maybe(MORE):
        return ()
    known = {tool.name for tool in own}
    foreign = [tool for each in _others(chosen, sets) for tool in each.specs if tool.name not in known]
    return tuple({tool.name: tool for tool in dice.some(foreign, 1, 4)}.values())


def _others(chosen: Toolset, sets: Sequence[Toolset]) -> list[Toolset]:
    """Toolsets that cannot do each other's work."""
    return [each for each in sets if each.field != chosen.field and not each.wide and not chosen.wide]


def _spoken(dice: Dice, sentence: str) -> str:
    """The sentence, now and then with a greeting, a word of thanks, or without its full stop."""
    if dice.maybe(DECORATED):
        return f"{dice.one(BEFORE)}{sentence}"
    if dice.maybe(DECORATED):
        return f"{sentence}{dice.one(AFTER)}"
    return sentence.removesuffix(".") if dice.maybe(UNDOTTED) else sentence


def _offered(dice: Dice, asked: _Asked) -> tuple[tuple[ToolSpec, ...], str]:
    """The tools as this row names and orders them, and the call; nothing where none of them fits."""
    wanted = asked.said.call if asked.fits else None
    tools, tool, args = asked.tools, wanted.tool if wanted else "", dict(wanted.args) if wanted else {}
    if dice.maybe(RENAMED):
        tools, tool, args = restyled(dice, tools, tool, args)
    if dice.maybe(REORDERED):
        tools = tuple(with_shuffled_arguments(dice, each) for each in tools)
    answer = answer_text(tool, args, tools) if wanted else ""
    if answer is None:
        raise ValueError(f"The call for {asked.said.say!r} does not fit its tools: mend it in requests/*.yaml")
    return tools, answer
