"""Calls of `print` that are what a program is there to say: no rule about forgotten ones is about them."""

import re

from blocks import NAMED, enclosing_headers, function_rows

PROGRAM = (
    r"(?m)\b__main__\b|\bsys\.argv\b|^\s*(?:from|import)\s+(?:argparse|optparse|getopt|click|typer|docopt|fire|cmd2?)\b"
)
"""Signs of a program that talks to a person at a terminal."""
SPEAKING = (
    r"(?:.*/)?(?:(?:__main__|main|cli|console|commands?|shell|repl|\w*_cli|cli_\w*|make|build|release|setup)\.py"
    r"|(?:bin|scripts?|tools|examples?|demos?|samples?|tutorials?|benchmarks?|cli|commands?)/[^/]*)"
)
"""Files of programs, scripts and examples."""
TELLS = (
    r"(?i)(?:.*_)?(?:p?print|show|display|dump|report|usage|help|main|debug|log|tell|progress|verbose|warn|info|stats?"
    r"|summary|run)(?:_.*)?"
)
"""Names of functions that are there to print."""
ON_DEMAND = r"verbose|debug|quiet|silent|dry|show|print|log"
"""Parts of conditions under which somebody wants to read something."""


def is_output(error, whole):
    """Whether a `print` is likely to be meant, by its file, its function, its condition or its own arguments."""
    row = error["location"]["row"]
    if re.search(PROGRAM, "".join(whole)) or re.fullmatch(SPEAKING, error.get("filename", "").replace("\\", "/")):
        return True
    if re.search(r"\b(?:file|end|sep|flush)\s*=", whole[row - 1]):
        return True
    around = enclosing_headers(whole, row)
    first, last = function_rows(whole, row)
    if not first:
        return bool(around)
    name = re.findall(NAMED, whole[first - 1])[0]
    said = [line for line in whole[first:last] if re.match(r"\s*print\s*\(", line)]
    asked = any(re.match(r"(?:if|elif|else|except)\b", line) for line in around) and (
        "else" in "".join(around) or re.search(rf"(?i){ON_DEMAND}|\bexcept\b", "".join(around))
    )
    return len(said) > 1 or bool(asked) or bool(re.fullmatch(TELLS, name)) or not does_more(whole, first, last)


def does_more(whole, first, last):
    """Whether a function has a statement beside `print` and its docstring."""
    rest = [line.strip() for line in whole[first:last] if line.strip()]
    return any(
        re.match(r"return\b.*\S|yield\b|raise\b|[\w.\[\]]+\s*[-+*/|]?=[^=]|(?!print)[\w.]+\(", line) for line in rest
    )
