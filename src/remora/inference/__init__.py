"""Who decides, and how tokens are counted."""

from remora.inference._counters import GgufCounter, JsonCounter, file_counter
from remora.inference._policies import FirstCandidatePolicy, RandomPolicy, ScriptedPolicy
from remora.inference._probe import Probed, counter_for, probe
from remora.inference._server_counter import ServerCounter
from remora.inference._server_policy import ServerPolicy
from remora.inference._servers import PRESETS, Endpoint, Preset, preset_of
from remora.inference._tokens import EstimatedCounter

__all__ = [
    "PRESETS",
    "Endpoint",
    "EstimatedCounter",
    "FirstCandidatePolicy",
    "GgufCounter",
    "JsonCounter",
    "Preset",
    "Probed",
    "RandomPolicy",
    "ScriptedPolicy",
    "ServerCounter",
    "ServerPolicy",
    "counter_for",
    "file_counter",
    "preset_of",
    "probe",
]
