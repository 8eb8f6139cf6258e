"""The oracle: solves tasks through the same port as a model, from what the prompt shows.

For the four bundled agents, where a task stands, and so which call is right, it reads from the prompt alone. From the
task it takes only what a model would have to write: a sentence, an expected value, a line that puts things right. For
any other agent the task names the calls; which of them were made it is told, and the prompt shows what came of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from remora.errors import DecisionError
from remora.events import Call
from remora.ports import Decision, Prompt
from remora.subagent import SUBMIT_RESULT_TOOL
from remora_lab.bench._prompt_parts import PromptParts, read_prompt
from remora_lab.bench.results import Choice
from remora_lab.bench.route import Route
from remora_lab.bench.tasks import Task

Step = tuple[str, dict[str, Any]]
"""A tool and its arguments."""
_ERROR = re.compile(r"line (\d+): (\w+)")
ATTEMPTS = 2
"""Times that a test is written before the oracle gives in."""


class Oracle:
    """A policy that knows how one task is solved."""

    name = "oracle"

    def __init__(self, task: Task, names: Mapping[str, str] | None = None) -> None:
        """`names`: what tools are called here → what they are called in the bundled agents."""
        self._task = task
        self._known = dict(names or {})
        self._here = {known: new for new, known in self._known.items()}
        self._route = Route(task.solution["calls"]) if "calls" in task.solution else None

    async def decide(self, prompt: Prompt) -> Decision:
        """The call that is preferred now. Raises `DecisionError` for a prompt without a tool that would be right."""
        calls = self.choices(prompt)
        if not calls:
            raise DecisionError(f"No tool that is offered would help with task `{self._task.id}`")
        return Decision(calls=calls[:1], finish="tool_calls")

    def asked(self, calls: Sequence[Call]) -> None:
        """Whoever decides has asked for these calls."""
        if self._route:
            self._route.asked([Choice(tool=self._known.get(call.tool, call.tool), args=call.args) for call in calls])

    def choices(self, prompt: Prompt) -> tuple[Call, ...]:
        """All calls that would be right now, the preferred one first."""
        shown = read_prompt(prompt)
        actions = tuple((self._known.get(tool, tool), outcome) for tool, outcome in shown.actions)
        shown = replace(shown, actions=actions)
        offered = {tool.name for tool in prompt.tools}
        steps = [(self._here.get(tool, tool), args) for tool, args in self._steps(shown)]
        kept = [step for step in steps if step[0] in offered] or [_submit("Nothing more can be done here")]
        return tuple(
            Call(call_id=f"call-{prompt.turn}", tool=tool, args=args) for tool, args in kept if tool in offered
        )

    def _steps(self, shown: PromptParts) -> list[Step]:
        if self._route:
            left = self._route.next(shown.actions)
            return [(call.tool, call.args) for call in left] or [_submit("All that was to be done is done")]
        ways = {"lint": _lint, "docstring": _docstring, "test": _test, "sample_data": _sample_data}
        way = ways.get(self._task.operation)
        return list(way(shown, self._task.solution)) if way else []


def _submit(summary: str) -> Step:
    return SUBMIT_RESULT_TOOL, {"summary": summary}


def _lint(shown: PromptParts, solution: Mapping[str, Any]) -> Iterator[Step]:
    known = shown.knowledge
    left = known.get("lint_errors_remaining")
    if not isinstance(left, int) or "needs_edit" not in known:
        yield "run_linter", {}
        return
    for code in known.get("fixable_codes") or ():
        yield "apply_fix", {"code": code}
    # What needs an edit may be done before the fixes or after them.
    todo = list(_edits(shown, solution)) if left else []
    yield from todo
    if not todo and not known.get("fixable_codes"):
        yield _submit(f"{left} errors left as they are" if left else "No lint errors left")


def _edits(shown: PromptParts, solution: Mapping[str, Any]) -> Iterator[Step]:
    """For each error that needs one, the edit; where its lines are not shown, a look at them."""
    told = shown.knowledge["needs_edit"]
    leave = solution.get("leave", [])
    for error in told if isinstance(told, list) else [told]:
        found = _ERROR.match(str(error))
        if not found or found[2] in leave:
            continue
        line, code = int(found[1]), found[2]
        good = [edit for edit in solution.get("edits", []) if edit["code"] == code]
        edit = _edit(shown, line, good)
        if edit:
            yield edit
        elif good and not any(excerpt.label == "read_file" and line in excerpt.rows for excerpt in shown.excerpts):
            yield "read_file", {"line": line}


def _edit(shown: PromptParts, line: int, edits: list[Mapping[str, Any]]) -> Step | None:
    for edit in edits:
        block = tuple(str(one).rstrip() for one in edit["bad"])
        for excerpt in reversed(shown.excerpts):
            for first, last in excerpt.find(block):
                if first <= line <= last:
                    return "edit_lines", {"first": first, "last": last, "text": "\n".join(edit["good"])}
    return None


def _docstring(shown: PromptParts, solution: Mapping[str, Any]) -> Iterator[Step]:
    state = shown.knowledge.get("docstring_state")
    if state is None:
        yield "read_current_docstring", {}
    elif state in ("missing", "outdated"):
        yield "write_docstring", {"summary": str(solution.get("summary", ""))}
    else:
        yield _submit("The docstring is complete")


def _test(shown: PromptParts, solution: Mapping[str, Any]) -> Iterator[Step]:
    written = _good(shown, "write_test_file")
    if written < 0 and shown.knowledge.get("test_file", "none") == "none":
        if "signature" not in shown.knowledge:
            yield "analyze_signature", {}
        yield from _write_test(solution)
    elif shown.last("run_tests") < written or "test_problems" not in shown.knowledge:
        yield "run_tests", {}
    elif shown.knowledge["test_problems"] and not _tried_again(shown):
        yield from _write_test(solution)
    else:
        yield _submit("The test is written and was run")


def _write_test(solution: Mapping[str, Any]) -> Iterator[Step]:
    yield "write_test_file", {key: solution[key] for key in ("cases", "body") if key in solution}
    yield "write_test_file", {}


def _good(shown: PromptParts, tool: str) -> int:
    """The place of the last call of a tool that did not fail; -1 where there is none."""
    places = [place for place, action in enumerate(shown.actions) if action[0] == tool and action[1] != "error"]
    return max(places, default=-1)


def _tried_again(shown: PromptParts) -> bool:
    """Whether a test was written twice and failed each time."""
    written = sum(action[0] == "write_test_file" for action in shown.actions)
    return written >= ATTEMPTS or any(told.startswith("Same call") for told in shown.diagnostics)


def _sample_data(shown: PromptParts, solution: Mapping[str, Any]) -> Iterator[Step]:
    known = shown.knowledge
    if known.get("fixture_problems") == 0:
        yield _submit("The fixture fits the signature")
        return
    if "signature" not in known:
        yield "analyze_signature", {}
    yield "write_fixture_file", {key: solution[key] for key in ("cases", "values") if key in solution}
    yield "write_fixture_file", {}
