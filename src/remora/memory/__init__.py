"""The plan's names for both tracks, over the real parts: `remora.memory.schemas` and `remora.memory.context`.

For code that was written against the plan. New code uses `remora.events`, `remora.context` and `remora.TwoTrack`, and
nothing else in Remora imports this package.
"""
