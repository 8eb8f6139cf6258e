"""Modules that every tool script may import: `from remora.scripts.shared.samples import samples`.

Monty runs them as part of the script, so they follow the rules for scripts: the same subset of Python, host functions
declared with `@external`, and no imports but those of the interpreter and of each other.
"""
