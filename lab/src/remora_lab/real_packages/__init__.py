"""The bench on real packages: pinned versions of other people's code, their own tests, and written-down rules."""
