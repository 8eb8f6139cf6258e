"""The result of an agent that raised instead of recording its end."""

from __future__ import annotations

from remora.errors import AgentError, RemoraError
from remora.ports import AgentResult, Job

MAX_MESSAGE = 500


def degraded_result(job: Job, reason: str, message: str) -> AgentResult:
    """The result of an agent whose stream has no end: it is not over, and `remora resume` continues it."""
    return _result(job, "degraded", reason, message)


def failed_result(job: Job, error: Exception) -> AgentResult:
    """The result of an agent that raised `error`. It is over if it could not begin: its code is gone."""
    if isinstance(error, AgentError):
        return _result(job, "error", type(error).__name__, error.message)
    if isinstance(error, RemoraError):
        return degraded_result(job, type(error).__name__, error.message)
    return degraded_result(job, "internal_error", f"{type(error).__name__}: {error}")


def _result(job: Job, outcome: str, reason: str, message: str) -> AgentResult:
    said = message[:MAX_MESSAGE]
    return AgentResult(job.agent_id, job.node.node_id, job.operation, outcome, reason, said, verdict="failed")
