"""Both tracks of one agent run: every event is recorded, then folded, and each prompt is rendered from the fold.

`remora.runner` drives a `TwoTrack` for our own agents; any other loop can drive one the same way.
"""

from remora.twotrack._carry import Parent, Relation, carried, read_parent
from remora.twotrack._handover import Handover
from remora.twotrack._offload import MAX_INLINE
from remora.twotrack._prompts import Memory, PromptSettings
from remora.twotrack._recall import recall_from
from remora.twotrack._rederive import Rederived, Rules, lacks_prompts, raw_value, rederive, with_prompts
from remora.twotrack._resume import ResumeState, has_failed, past_prompts, resume_state
from remora.twotrack._settings import TrackSettings
from remora.twotrack._track import Track
from remora.twotrack._twotrack import GivenOutcome, Running, TwoTrack
from remora.twotrack._wiring import Identity, Wiring

__all__ = [
    "MAX_INLINE",
    "GivenOutcome",
    "Handover",
    "Identity",
    "Memory",
    "Parent",
    "PromptSettings",
    "Rederived",
    "Relation",
    "ResumeState",
    "Rules",
    "Running",
    "Track",
    "TrackSettings",
    "TwoTrack",
    "Wiring",
    "carried",
    "has_failed",
    "lacks_prompts",
    "past_prompts",
    "raw_value",
    "read_parent",
    "recall_from",
    "rederive",
    "resume_state",
    "with_prompts",
]
