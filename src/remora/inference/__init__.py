"""Who decides, and how tokens are counted. Models join the policies without one in a later version."""

from remora.inference._counters import GgufCounter, JsonCounter, file_counter
from remora.inference._policies import FirstCandidatePolicy, RandomPolicy, ScriptedPolicy
from remora.inference._server_counter import ServerCounter
from remora.inference._tokens import EstimatedCounter

__all__ = [
    "EstimatedCounter",
    "FirstCandidatePolicy",
    "GgufCounter",
    "JsonCounter",
    "RandomPolicy",
    "ScriptedPolicy",
    "ServerCounter",
    "file_counter",
]
