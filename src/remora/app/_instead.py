"""What a caller may put in the place of a run's own parts: to compare deciders, and to try an agent in other words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from remora.app._deciding import Deciders
from remora.ports import Tools
from remora.subagent import SubagentDefinition


def _definition_as_it_is(definition: SubagentDefinition) -> SubagentDefinition:
    return definition


def _tools_as_they_are(tools: Tools) -> Tools:
    return tools


@dataclass(frozen=True)
class Instead:
    """Stands between an agent and the runner. What it changes is what the stream records."""

    deciders: Deciders | None = None
    """Who decides; left open by the caller's own hand, so that many runs may share one model."""
    definition: Callable[[SubagentDefinition], SubagentDefinition] = _definition_as_it_is
    tools: Callable[[Tools], Tools] = _tools_as_they_are
    """The tools by the names that the definition gives them then."""


NOTHING = Instead()
