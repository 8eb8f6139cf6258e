"""The plan's names for both tracks, on top of the real classes: `remora.memory.schemas` and `remora.memory.context`.

For code that was written against the plan. New code uses `remora.events`, `remora.context` and `remora.TwoTrack`.
Nothing else in Remora imports this package.
"""
