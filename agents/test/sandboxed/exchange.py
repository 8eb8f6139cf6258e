"""How the sandboxed code and the tool script exchange data: a spec comes in as a file, a report goes out as a line."""

import json
import pathlib

SPEC = json.loads(pathlib.Path(__file__).with_name("spec.json").read_text(encoding="utf-8"))
"""What the tool script asks for."""


def report(value):
    """Print the answer between two marks, on a line of its own: project code may have printed too."""
    text = json.dumps(value).replace("@", "\\u0040")  # the code may contain the mark itself
    print("\n" + SPEC["mark"] + text + SPEC["mark"], flush=True)
