"""The built-in summarizers: pure functions from a tool's output to one line, knowledge and an excerpt."""

from remora.context._summaries._auto import AUTO, BUILT_IN, FALLBACK
from remora.context._summaries._base import BuiltIn
from remora.context._summaries._bounds import MAX_DELTA_BYTES, bounded
from remora.context._summaries._distill import Distilled, distill, raw_result_of, says_enough, states_outcome, storable

__all__ = [
    "AUTO",
    "BUILT_IN",
    "FALLBACK",
    "MAX_DELTA_BYTES",
    "BuiltIn",
    "Distilled",
    "bounded",
    "distill",
    "raw_result_of",
    "says_enough",
    "states_outcome",
    "storable",
]
