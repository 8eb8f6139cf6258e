"""Who decides, and how tokens are counted. Models join the policies without one in a later version."""

from remora.inference._policies import FirstCandidatePolicy, RandomPolicy, ScriptedPolicy
from remora.inference._tokens import EstimatedCounter

__all__ = ["EstimatedCounter", "FirstCandidatePolicy", "RandomPolicy", "ScriptedPolicy"]
