"""Per-run overrides of deciders, definitions and tools: to compare models, or to try other wordings of an agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from remora.app._deciding import Deciders
from remora.ports import Tools
from remora.subagent import SubagentDefinition


@dataclass(frozen=True)
class RunOverrides:
    """Replaces parts of a run. The stream records what was used."""

    deciders: Deciders | None = None
    """The caller opens and closes it, so that many runs can share one model."""
    definition: Callable[[SubagentDefinition], SubagentDefinition] = lambda definition: definition
    tools: Callable[[Tools], Tools] = lambda tools: tools
    """Returns the tools under the names that the overridden definition uses."""
    executor: Tools | None = None
    """Runs every tool instead of the agent's own scripts."""
    keep_messages: bool = False
    """Also keep the run as a chat history, for debugging."""
    rungs: tuple[Deciders, ...] = ()
    """Opened deciders for the rungs of the ladder above the first, in order. The caller closes them."""


NO_OVERRIDES = RunOverrides()
