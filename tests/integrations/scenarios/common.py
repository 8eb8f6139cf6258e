"""What every framework must do, driven by a scripted model. Runs in the framework's own environment.

A framework's module defines `talk`: run its own agent once, with the tools below and both tracks attached.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PARIS, ROME, ATLANTIS = (("weather", {"city": city}, f"call_{city}") for city in ("Paris", "Rome", "Atlantis"))
WAIT, DIE = ("wait", {}, "call_wait"), ("die", {}, "call_die")
BAD, GOOD = {"city": "Paris", "temp_c": "warm"}, {"city": "Paris", "temp_c": 21}


@dataclass
class Ask:
    """One run of an agent."""

    state_dir: str
    text: str
    script: list[Any]
    """Replies: a text, a list of calls, or a dict as structured output."""
    conversation: str = ""
    how: str = "run"
    """`run`, `stream`, `structured` or `cancel`."""


@dataclass
class Told:
    """What happened, as the framework's user and the model saw it."""

    output: str = ""
    raised: str = ""
    prompts: list[dict[str, Any]] = field(default_factory=list)
    """For each request of the model: `system`, `said` (texts and calls in order), `tools` (names)."""


Talk = Callable[[Ask], Awaitable[Told]]


def made_call(name: str, args: Any) -> str:
    """A call as all frameworks' prompts are compared."""
    return f"{name} {json.dumps(json.loads(args) if isinstance(args, str) else args, sort_keys=True)}"


def weather(city: str) -> dict[str, Any]:
    if city == "Atlantis":
        raise RuntimeError("no such city")
    return {"city": city, "temp_c": 21, "station_id": f"ST-{city.upper()}-77"}


def die() -> str:
    os._exit(9)


async def scenarios(talk: Talk, out: Path) -> dict[str, list[Told]]:
    def ask(name: str, text: str, *script: Any, **more: Any) -> Awaitable[Told]:
        return talk(Ask(str(out / name), text, list(script), **more))

    both = ([PARIS, ROME], "Both have 21 degrees.")
    done = {
        "parallel": [await ask("parallel", "Weather in Paris and Rome?", *both)],
        "raising": [await ask("raising", "Weather in Atlantis?", [ATLANTIS], "There is none.")],
        "structured": [await ask("structured", "Weather in Paris?", BAD, GOOD, how="structured")],
        "stream": [await ask("stream", "Weather in Paris and Rome?", *both, how="stream")],
        "cancel": [await ask("cancel", "Wait", [WAIT], "Done.", how="cancel")],
    }
    done["second"] = [
        await ask("second", "Weather in Paris?", [PARIS], "21 degrees.", conversation="chat-1"),
        await ask("second", "And which station said so?", "ST-PARIS-77", conversation="chat-1"),
    ]
    at_once = (
        ask("at_once", f"Question {number} about Paris", [PARIS], f"Answer {number}", conversation=f"chat-{number}")
        for number in (1, 2)
    )
    done["at_once"] = list(await asyncio.gather(*at_once))
    child = await asyncio.create_subprocess_exec(sys.executable, sys.argv[0], str(out), "die")
    assert await child.wait() == 9
    done["unsealed"] = [await ask("unsealed", "Did it work?", "Nobody knows.", conversation="chat-1")]
    return done


def main(talk: Talk) -> None:
    out = Path(sys.argv[1])
    if sys.argv[2:] == ["die"]:
        asyncio.run(talk(Ask(str(out / "unsealed"), "Die", [[DIE]], conversation="chat-1")))
        return
    done = asyncio.run(scenarios(talk, out))
    told = {name: [vars(each) for each in several] for name, several in done.items()}
    (out / "told.json").write_text(json.dumps(told))
