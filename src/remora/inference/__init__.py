"""Model policies and token counters."""

from remora.inference._adapters import AdapterFile, bundled_adapter, read_adapter
from remora.inference._catalogue import DEFAULT_MODEL, CallFormat, ModelEntry, bundled_catalogue, read_catalogue
from remora.inference._counters import GgufCounter, JsonCounter, file_counter
from remora.inference._embedded import EmbeddedServer, check_gguf
from remora.inference._embedded_policy import Adapter, EmbeddedPolicy
from remora.inference._encoding import encode
from remora.inference._policies import FirstCandidatePolicy, RandomPolicy, ScriptedPolicy
from remora.inference._probe import Probed, counter_for, probe
from remora.inference._server_counter import ServerCounter
from remora.inference._server_policy import ServerPolicy
from remora.inference._servers import PRESETS, Endpoint, Preset, preset_of
from remora.inference._speed import Speed, measure, memory_needed
from remora.inference._threads import cores, idle_share, threads_for
from remora.inference._tokens import EstimatedCounter
from remora.inference._weights import Progress, StoredWeights, Weights, look, present, pull, sha256_of

__all__ = [
    "DEFAULT_MODEL",
    "PRESETS",
    "Adapter",
    "AdapterFile",
    "CallFormat",
    "EmbeddedPolicy",
    "EmbeddedServer",
    "Endpoint",
    "EstimatedCounter",
    "FirstCandidatePolicy",
    "GgufCounter",
    "JsonCounter",
    "ModelEntry",
    "Preset",
    "Probed",
    "Progress",
    "RandomPolicy",
    "ScriptedPolicy",
    "ServerCounter",
    "ServerPolicy",
    "Speed",
    "StoredWeights",
    "Weights",
    "bundled_adapter",
    "bundled_catalogue",
    "check_gguf",
    "cores",
    "counter_for",
    "encode",
    "file_counter",
    "idle_share",
    "look",
    "measure",
    "memory_needed",
    "present",
    "preset_of",
    "probe",
    "pull",
    "read_adapter",
    "read_catalogue",
    "sha256_of",
    "threads_for",
]
