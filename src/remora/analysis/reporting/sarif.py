"""A report as SARIF 2.1.0, for code scanning and for editors.

Each problem that an agent left is a result: those that its last check lists with a line, else one for the node. An
agent that failed or was interrupted is a result too. Proposed changes are results of level `note`.

Lines are those of the project's files as they were when the report was made; `artifacts` names those versions by their
digests. A problem whose line changed since its check is no result: it is counted in a notification.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from remora._version import __version__
from remora.analysis.reporting import words
from remora.analysis.reporting.agent import AgentReport
from remora.analysis.reporting.places import line_now, node_lines
from remora.analysis.reporting.totals import Report
from remora.context.text import number
from remora.events import short_id

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
Json = dict[str, Any]


def sarif(report: Report) -> Json:
    """The report as a SARIF log with one run."""
    results = _newest(result for agent in report.agents for result in _results(agent))
    rules = sorted({str(result["ruleId"]) for result in results})
    for result in results:
        result["ruleIndex"] = rules.index(str(result["ruleId"]))
    artifacts = _artifacts(results, report.agents)
    driver = {
        "name": "Remora",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(name) for name in rules],
    }
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"SRCROOT": {"description": {"text": "The project's root folder"}}},
                "invocations": [_invocation(report)],
                "artifacts": artifacts,
                "results": results,
            }
        ],
    }


def _newest(results: Iterable[Json]) -> list[Json]:
    """The results without those that a later agent repeats: the agent of a file and one of its functions both find
    what neither could fix. Columns may differ, because one of them changed the line."""
    found: dict[tuple[str, ...], Json] = {}
    again: Counter[tuple[str, ...]] = Counter()
    for result in results:
        agent, what = result["properties"]["agent"], (result["ruleId"], result["message"]["text"], _line(result))
        again[agent, *what] += 1
        key = (*what, str(again[agent, *what]))
        found.pop(key, None)
        found[key] = result
    return list(found.values())


def _line(result: Json) -> str:
    """The file and line of a result; without a place, its agent."""
    if "locations" not in result:
        return str(result["properties"]["agent"])
    place = result["locations"][0]["physicalLocation"]
    return f"{place['artifactLocation']['uri']}:{place.get('region', {}).get('startLine')}"


def _artifacts(results: Iterable[Json], agents: Sequence[AgentReport]) -> list[Json]:
    """The versions of the files that results are about. Each location gets the index of its own."""
    versions = {agent.agent_id: agent.place.sha256 for agent in agents if agent.place}
    found: dict[tuple[str, str], Json] = {}
    for result in results:
        for place in result.get("locations", ()):
            location = place["physicalLocation"]["artifactLocation"]
            version = versions.get(result["properties"]["agent"], "")
            artifact = {"location": dict(location), "roles": ["analysisTarget"]}
            found.setdefault(
                (location["uri"], version), artifact | ({"hashes": {"sha-256": version}} if version else {})
            )
            location["index"] = list(found).index((location["uri"], version))
    return list(found.values())


def _invocation(report: Report) -> Json:
    invocation: Json = {"executionSuccessful": not report.statuses.get("failed")}
    changed = sum(line_now(item) is None for agent in report.agents for item in agent.problems)
    if changed:
        told = f"{number(changed, 'problem')} not listed: the lines changed after the check, so run it again"
        invocation["toolExecutionNotifications"] = [{"level": "note", "message": {"text": told}}]
    return invocation


def _rule(name: str) -> Json:
    operation, _, problem = name.removeprefix("remora/").partition("/")
    return {
        "id": name,
        "name": f"{operation}/{problem}",
        "shortDescription": {"text": f"Operation {operation}: {problem.replace('_', ' ')}"},
    }


def _results(agent: AgentReport) -> Iterator[Json]:
    operation = agent.operation or "agent"
    if agent.status == "failed":
        told = f"The agent {short_id(agent.agent_id)} failed: {agent.why or words.verdict_text(agent)}"
        yield _result(agent, f"remora/{operation}/failed", "error", told)
    elif agent.status == "unsealed":
        yield _result(agent, f"remora/{operation}/unsealed", "warning", "The agent's run was interrupted")
    elif agent.problems:
        for item in agent.problems:
            rule = f"remora/{operation}/{item['code'] or 'problem'}"
            if line_now(item) is not None:
                yield _result(agent, rule, "warning", f"{item['code']}: {item['message']}", item)
    elif agent.status in ("partial", "unchanged"):
        told = words.verdict_text(agent) + (f". {agent.why}" if agent.why else "")
        yield _result(agent, f"remora/{operation}/{agent.check.get('key') or 'partial'}", "warning", told)
    open_files = [file for file in agent.files if file.decision == "open"]
    if open_files and agent.status != "failed":
        told = f"{words.verdict_text(agent)}. Proposed changes: `remora diff {short_id(agent.agent_id)}`"
        yield _result(agent, f"remora/{operation}/proposed", "note", told)


def _result(agent: AgentReport, rule: str, level: str, told: str, item: Mapping[str, Any] | None = None) -> Json:
    result: Json = {
        "ruleId": rule,
        "level": level,
        "message": {"text": _plain(told)},
        "partialFingerprints": {"remoraNode/v1": f"{agent.operation}:{agent.node_id}:{rule}"},
        "properties": {"agent": agent.agent_id, "run": agent.run_id, "evidence": words.evidence_text(agent)},
    }
    if place := _location(agent, item):
        result["locations"] = [place]
    return result


def _location(agent: AgentReport, item: Mapping[str, Any] | None) -> Json | None:
    file = agent.node.get("file")
    if not isinstance(file, str) or not file:
        return None
    physical: Json = {"artifactLocation": {"uri": quote(file, safe="/~"), "uriBaseId": "SRCROOT"}}
    if item is not None:
        physical["region"] = {"startLine": line_now(item), "startColumn": item["column"]}
    elif lines := agent.place.lines if agent.place else node_lines(agent.node):
        physical["region"] = {"startLine": lines[0], "endLine": lines[1]}
    return {"physicalLocation": physical}


def _plain(text: str) -> str:
    """Text without SARIF's embedded links."""
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
