"""Words for renamed tools: parts of invented names, and other descriptions of the bundled tools."""

from __future__ import annotations

FIRST = ("zorv", "melk", "quint", "brax", "tolu", "vesp", "harn", "olmi", "druv", "pask", "fenn", "ilra")
SECOND = ("asp", "oden", "ule", "ith", "orra", "enk", "ilo", "usk", "ava", "eld", "oma", "yrn")

WORDINGS: dict[str, tuple[str, ...]] = {
    "lint.run_linter": (
        "Report what the style checker objects to in the target.",
        "Get the current list of rule violations.",
        "Inspect the target and name each violated rule.",
    ),
    "lint.apply_fix": (
        "Let the checker repair every safely repairable violation of the given rule.",
        "Automatic repair for a single rule, named by its code.",
        "Repair one kind of violation by machine; takes the rule's code.",
    ),
    "lint.read_file": (
        "Display source near a given row, with row numbers.",
        "Look at a few rows of the source.",
        "Print rows of the file around one position.",
    ),
    "lint.edit_lines": (
        "Rewrite a stretch of rows by hand where a violation stands.",
        "Substitute your own text for some rows.",
        "Manual repair: replace rows by new source text.",
    ),
    "docstring.read_current_docstring": (
        "Present the definition and the gaps in its documentation.",
        "See the source together with what is undocumented.",
        "Look up which parts of the documentation are absent or wrong.",
    ),
    "docstring.read_type_hints": (
        "Give the inputs and their annotations, the output, and possible exceptions.",
        "Enumerate annotated inputs, output and exceptions.",
        "Tell the types that go in and out, and what may be raised.",
    ),
    "docstring.write_docstring": (
        "Set the documentation; you supply a single sentence on the purpose.",
        "Store a description of the definition, built around your sentence.",
        "Document the definition: give one sentence, the rest is filled in.",
    ),
    "test.analyze_signature": (
        "Describe the inputs and suggest invocations worth checking.",
        "Find out how the target is invoked, and with which examples.",
        "List inputs and promising example invocations.",
    ),
    "test.read_existing_tests": (
        "Find checks that mention the target so far.",
        "See what is covered up to now.",
        "Display earlier checks of the target.",
    ),
    "test.write_test_file": (
        "Create the file of checks.",
        "Store checks for the target in a new file.",
        "Put the chosen invocations into a file of checks.",
    ),
    "test.run_tests": (
        "Execute the checks, and try whether they catch altered code.",
        "Carry out the stored checks and rate them.",
        "Try the checks on the code and on spoiled copies of it.",
    ),
    "sample_data.analyze_signature": (
        "Describe the inputs and values that suit them.",
        "Find out what the target accepts.",
        "List inputs with fitting values.",
    ),
    "sample_data.write_fixture_file": (
        "Create the file of example inputs.",
        "Store example inputs for the target.",
        "Put sample inputs into a file.",
    ),
}
"""By operation and tool. A tool without an entry keeps its own description."""
