"""What a model needs to mend an error in its own words: the lines to write anew, and the rule's own example."""

import json
import re

from blocks import NAMED, enclosing_rows, indent
from edits import split_mark
from findings import count_codes, describe_error
from repairs import OPENING, TEXT

from remora.scripts import external


@external
async def run_command(argv: list[str], stdin: str = "", files: dict = {}, seconds: int = 30) -> dict: ...


MOST_ROWS = 14
"""Lines that are shown to be written anew. Of a longer statement, only its line with the error is."""
MOST_RULES = 4
"""Rules whose documentation is read, at most."""
CONTINUES = r"\s*(?:elif|else|except|finally)\b"
REWRITTEN = {"label": "draft: lint error", "text": "", "start_line": 1}
"""Replaces the excerpt of an error by an empty one, because nothing is to be written anew."""
COMMENT = r"(?m)(?:^|\s)#\s?[^\n]*\w[^\n]*$"
WORD = r"[A-Za-z_]{2,}\w*|(?<![%:])\b[A-Za-z]\b(?![\"'])|\b\d[\d.]*"
MOST_COPIED = 4
"""Words of the rule's example that an edit may bring, at most."""
MOST_EXAMPLE = 800
"""Characters of a rule's example, at most."""
BRACKETS = ("()", "[]", "{}")
_docs = {}


async def explain_rule(code):
    """The code before and after in the rule's documentation, and the imports that its second half has."""
    if code not in _docs:
        done = await run_command(["ruff", "rule", code, "--output-format=json"])
        text = json.loads(done["stdout"])["explanation"] if done["returncode"] == 0 else ""
        before, told, after = text.partition("Use instead:")
        blocks = [re.findall(r"```python\n(.*?)```", part, re.DOTALL) for part in (before, after)]
        bad, good = [found[0].strip() if found else "" for found in blocks]
        _docs[code] = {"before": bad, "after": good if told else "", "imports": needed_imports(bad, good)}
    return _docs[code]


def needed_imports(before, after):
    """The names that the imports of an example bind after its change, and not before."""
    return sorted(imported_names(after) - imported_names(before))


def imported_names(code):
    """The names that the imports in a text of code bind."""
    lists = re.findall(r"^\s*(?:from\s+\S+\s+)?import\s+([^#\n]+)", code, re.MULTILINE)
    return {one.split()[-1] for names in lists for one in names.strip("() ").split(",") if one.split()}


async def codes_without_import(text, errors):
    """Rules whose fix needs an import that this file does not have: an agent of some lines cannot add it."""
    codes, have = list(count_codes(errors))[:MOST_RULES], imported_names(text)
    found = {code: await explain_rule(code) for code in codes if re.fullmatch(r"[A-Z]+\d+", code or "")}
    return [code for code, doc in found.items() if any(name not in have for name in doc["imports"])]


def rows_to_rewrite(whole, error):
    """The first and last row of what holds an error: its statement with the block below, if that is short."""
    row, end = error["location"]["row"], error["end_location"]["row"]
    end = end - 1 if error["end_location"]["column"] == 1 and end > row else end
    mine = [pair for pair in logical_rows(whole) if pair[0] <= end and row <= pair[1]] or [(row, end)]
    first, last = mine[0][0], mine[-1][1]
    if re.match(CONTINUES, whole[first - 1]):
        first = opening_row(whole, first)
    first = only_statement_of(whole, first, last)
    if re.match(OPENING, whole[first - 1]) and not re.match(NAMED, whole[first - 1]):
        block = last_of_block(whole, first, last)
        last = block if block - first < MOST_ROWS else last
    return (first, last) if last - first < MOST_ROWS else (row, min(end, row + 2))


def only_statement_of(whole, first, last):
    """The row of the loop whose body is nothing but these lines, or else the first of them."""
    above = enclosing_rows(whole, first)
    looped = above and re.match(r"\s*(?:async\s+)?(?:for|while)\b", whole[above[0] - 1])
    alone = looped and above[0] == first - 1 and last_of_block(whole, above[0], above[0]) == last
    return above[0] if alone else first


def opening_row(whole, row):
    """The row of the `if` or `try` that a clause continues."""
    depth = len(indent([whole[row - 1]]))
    above = [one for one in range(row - 1, 0, -1) if whole[one - 1].strip() and len(indent([whole[one - 1]])) <= depth]
    own = [one for one in above if not re.match(CONTINUES, whole[one - 1])]
    return own[0] if own else row


def last_of_block(whole, first, last):
    """The last row of the block that a header opens, with the clauses that continue it."""
    depth = len(indent([whole[first - 1]]))
    for row in range(last + 1, len(whole) + 1):
        line = whole[row - 1]
        inner = len(indent([line])) > depth
        if line.strip() and not inner and not (re.match(CONTINUES, line) and len(indent([line])) == depth):
            break
        last = row if line.strip() else last
    return last


def logical_rows(whole):
    """The first and last row of each logical line, by brackets, strings over several lines and backslashes."""
    parts = re.split(rf"({TEXT})", "".join(whole))
    code = "".join(["\0" * part.count("\n") if at % 2 else part for at, part in enumerate(parts)])
    lines = re.split(r"([\n\x00])", code)  # NUL stands for an end of line inside a string
    rows, depth, start = [], 0, 1
    for at in range(0, len(lines), 2):
        line, end = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
        depth += sum([line.count(opens) - line.count(closes) for opens, closes in BRACKETS])
        if depth <= 0 and end != "\0" and not line.rstrip("\r").endswith("\\"):
            rows.append((start, at // 2 + 1))
            start, depth = at // 2 + 2, 0
    return rows


def next_to_rewrite(errors, known):
    """The error that a model writes anew next; None if there is none."""
    wanted = known.get("needs_edit", []) if known.get("next_step") == "edit" else []
    found = [error for error in errors if describe_error(error) in wanted]
    return found[0] if found else None


async def to_rewrite(text, errors, known):
    """What a model needs to write the next error's lines anew, as an excerpt."""
    error = next_to_rewrite(errors, known)
    if not error:
        return REWRITTEN
    whole = split_mark(text)[1]
    first, last = rows_to_rewrite(whole, error)
    old = [line.rstrip() for line in whole[first - 1 : last]]
    line = whole[error["location"]["row"] - 1].strip()[:120]
    doc = await explain_rule(error["code"])
    example = [*fenced(doc["before"]), "is better written as", *fenced(doc["after"])]
    said = [
        f"{error['code']}: {error['message']}",
        *([f"It is in the line `{line}`."] if len(old) > 1 else []),
        *(["An example of this rule:", *example] if doc["after"] and len(str(example)) < MOST_EXAMPLE else []),
        "This is the code:",
        *fenced("\n".join(row[len(indent(old)) :] for row in old)),
        "Write this code again, with that error fixed. Change nothing else: it must do the same.",
    ]
    return {"label": REWRITTEN["label"], "text": "\n".join(said), "start_line": first}


def fenced(code):
    """The lines of code between fences."""
    return ["```python", code, "```"]


def widened(whole, edit, errors):
    """The edit, for all lines that were shown if its text has those around the lines that it names."""
    meant = [error for error in errors if edit["first"] <= error["location"]["row"] <= edit["last"]]
    first, last = rows_to_rewrite(whole, meant[0]) if meant else (edit["first"], edit["last"])
    if not first <= edit["first"] <= edit["last"] <= last:
        return edit
    written = [line.strip() for line in edit["text"].strip("\r\n").split("\n")]
    above = [line.strip() for line in whole[first - 1 : edit["first"] - 1]]
    below = [line.strip() for line in whole[edit["last"] : last]]
    starts = above and written[: len(above)] == above
    ends = below and written[-len(below) :] == below
    return {**edit, "first": first if starts else edit["first"], "last": last if ends else edit["last"]}


async def undefined_names(before, after):
    """Names that an edit leaves without a definition, whatever rules the project has."""
    return sorted(set(await _undefined(after)) - set(await _undefined(before)))


async def _undefined(text):
    argv = [
        "ruff",
        "check",
        "--isolated",
        "--output-format=json",
        "--no-cache",
        "--no-fix",
        "--select=F821,F822,F823",
        "-",
    ]
    done = await run_command(argv, stdin=text)
    errors = json.loads(done["stdout"]) if done["returncode"] in (0, 1) else []
    return [found for error in errors for found in re.findall(r"`[^`]+`", error["message"])[:1]]


async def refusal_of_words(old, edit, errors):
    """Why an edit of a model's own is refused for what it takes away or adds; empty if it is not.

    Words may go if the error's message or the bad half of the rule's example has them, and come if the message or the
    good half has them, or if they are a new name for one that the message names.
    """
    gone = [comment for comment in re.findall(COMMENT, old) if comment.strip("# ") not in edit["text"]]
    if gone:
        return f"Keep the comment `{gone[0].strip()}`"
    meant = [error for error in errors if edit["first"] <= error["location"]["row"] <= edit["last"]]
    docs = [await explain_rule(error["code"]) for error in meant[:MOST_RULES]]
    said = " ".join([error["message"] for error in meant])
    had, has = re.findall(WORD, old), re.findall(WORD, edit["text"])
    may_go = re.findall(WORD, " ".join([said, *[doc["before"] for doc in docs]]))
    may_come = re.findall(WORD, " ".join([said, *[doc["after"] for doc in docs]]))
    lost = [word for word in had if word not in has and word not in may_go]
    if lost:
        return f"Keep `{lost[0]}`"
    renamed = any(f"`{word}`" in said and word not in has for word in had)
    added = [word for word in has if word not in had and word not in may_come]
    if added and not renamed:
        return f"`{added[0]}` is neither in the code nor in the rule's example"
    copied = [word for word in sorted(set(has)) if word not in had and word not in re.findall(WORD, said)]
    return f"It copies the rule's example: {', '.join(copied[:3])}" if len(copied) > MOST_COPIED else ""


def unfenced(text):
    """The code of a reply that has it between fences, or the text as it is."""
    found = re.findall(r"```(?:python)?\n(.*?)```", text, re.DOTALL)
    return found[0].rstrip("\n") if found else text
