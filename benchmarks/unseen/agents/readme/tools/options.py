"""Options: those that an argparse command line has, and those that a table in README.md tells of."""

import re

from remora.scripts import external


@external
async def read_file(path: str) -> str: ...


@external
async def write_file(path: str, content: str) -> None: ...


README = "README.md"
HEADER = r"\|\s*Option\s*\|\s*Default\s*\|"
NAMED = r"(?<![\w-])--?[A-Za-z][\w-]*"
TEXT = r"\"([^\"]*)\"|'([^']*)'"


def arguments(source):
    """The text between the parentheses of each add_argument."""
    found = []
    for piece in source.split(".add_argument(")[1:]:
        depth, quote, end = 1, "", 0
        while depth and end < len(piece):
            letter = piece[end]
            if quote:
                quote = "" if letter == quote else quote
            elif letter in "\"'":
                quote = letter
            else:
                depth += {"(": 1, ")": -1}.get(letter, 0)
            end += 1
        found.append(piece[: end - 1])
    return found


def keyword(text, name):
    """What a keyword is given, as it would stand in a table; empty where it is not given or computed."""
    found = re.search(rf"\b{name}\s*=\s*(?:{TEXT}|([\w.-]+)\s*(?:,|$))", text)
    return (found.group(1) or found.group(2) or found.group(3) or "") if found else ""


def code_options(source):
    """Each option by its long name: its short one, its default and its help, in the order of the code."""
    found = {}
    for text in arguments(source):
        names = re.findall(rf"[\"']({NAMED})[\"']", re.split(r"\b\w+\s*=", text)[0])
        if names:
            switch = keyword(text, "action") == "store_true"
            long = max(names, key=len)
            found[long] = {
                "short": min(names, key=len) if len(names) > 1 else "",
                "default": "off" if switch else keyword(text, "default") or "none",
                "help": keyword(text, "help"),
            }
    return found


def computes(source):
    """Whether an option has a name that only a running program knows."""
    return any(re.match(r"\s*(?:f[\"']|\w)", text) for text in arguments(source))


def cells(row):
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def table(readme):
    """The rows of the table of options, by their numbers: long name, short name, default."""
    found, inside = {}, False
    for number, row in enumerate(readme.split("\n")):
        if re.match(HEADER, row):
            inside = True
        elif not row.startswith("|"):
            inside = False
        elif inside and re.search(NAMED, cells(row)[0]):
            names = re.findall(NAMED, cells(row)[0])
            found[number] = (max(names, key=len), min(names, key=len) if len(names) > 1 else "", cells(row)[1])
    return found


def row_of(readme, option):
    """The number of an option's row; -1 if it has none."""
    return {row[0]: number for number, row in table(readme).items()}.get(option, -1)


def written(option, about, description):
    names = f"`{about['short']}`, `{option}`" if about["short"] else f"`{option}`"
    return f"| {names} | {about['default']} | {description} |"


def with_row(readme, source, option):
    """README.md with a row for the option: above the first that is later in the code, else below the last."""
    options, rows, there = code_options(source), readme.split("\n"), table(readme)
    later = [*options][[*options].index(option) + 1 :]
    places = [number for number, row in there.items() if row[0] in later]
    heads = [number for number, row in enumerate(rows) if re.match(HEADER, row)]
    place = min(places) if places else max(there, default=heads[0] + 1) + 1
    about = options[option]
    return "\n".join([*rows[:place], written(option, about, about["help"]), *rows[place:]])


def facts(source, readme):
    """What a later turn should know."""
    options, rows, some = code_options(source), [*table(readme).values()], computes(source)
    heads = len(re.findall(rf"(?m)^{HEADER}", readme))
    if heads != 1:
        return {"table": "several" if heads else "none", "tables": heads, "to_fix": 0}
    listed = [row[0] for row in rows]
    new = [name for name in options if name not in listed and options[name]["help"] != "argparse.SUPPRESS"]
    old = [row for row in rows if row[0] not in options]
    pairs = [(row[0], name) for row in old for name in new if row[1] and row[1] == options[name]["short"]]
    taken = [name for pair in pairs for name in pair]
    missing = [name for name in new if name not in taken and options[name]["help"]]
    extra = [row[0] for row in old if row[0] not in taken]
    wrong = [row[0] for row in rows if row[0] in options and row[2] != options[row[0]]["default"]]
    wanted = [name for name in missing if not deprecated(options[name])]
    return {
        "table": "one",
        "renamed": [f"{before} is now {after}" for before, after in pairs][:3],
        "missing": [f"{name} ({options[name]['help'][:50]})" for name in missing][:5],
        "gone": [] if some else extra[:5],
        "wrong_default": [f"{name} is {options[name]['default']}" for name in wrong][:4],
        "hidden": [name for name in options if options[name]["help"] == "argparse.SUPPRESS"][:3],
        "without_help": [name for name in new if name not in taken and not options[name]["help"]][:3],
        "unclear": extra[:4] if some else [],
        "to_fix": len(pairs) + len(wanted) + (0 if some else len(extra)) + len(wrong),
    }


def deprecated(about):
    return "deprecated" in about["help"].lower()


def state(file, known):
    """The facts in one sentence."""
    if known["table"] != "one":
        return f"{README} has {known['tables']} tables of options: a person must say which one counts"
    kinds = ("renamed", "missing", "gone", "wrong_default", "without_help", "unclear")
    told = [f"{len(known[kind])} {kind}" for kind in kinds if known[kind]]
    return f"{', '.join(told)}; {known['to_fix']} to fix" if told else f"The table fits {file}"


def one_call(tool, options, reason):
    """The call for the first of these options; none where there is none."""
    return [{"tool": tool, "args": {"option": option}, "reason": reason} for option in options[:1]]


def next_calls(file, known, source):
    """One call for each kind of difference; nothing is left to do if there is none."""
    pairs = [each.split(" is now ") for each in known["renamed"]]
    told = [each.split(" ")[0] for each in known["missing"]]
    wanted = [option for option in told if not deprecated(code_options(source)[option])]
    calls = [
        *one_call("add_row", wanted, "It has no row"),
        *one_call("remove_row", known["gone"], "The code does not have it"),
        *one_call("correct_default", [each.split(" ")[0] for each in known["wrong_default"]], "Another default"),
        *[{"tool": "rename_row", "args": {"old": old, "new": new}, "reason": "Same short form"} for old, new in pairs],
    ]
    done = {"tool": "submit_result", "args": {"summary": state(file, known)[:150]}, "reason": "Nothing is left to fix"}
    return calls or [done]


def answer(file, source, readme, done, error=""):
    """The answer of a tool that changes something, or of one that was refused."""
    known = facts(source, readme)
    return {
        "result": {"readme": readme},
        "summary": (error or f"{done}; {known['to_fix']} to fix")[:190],
        "knowledge_delta": known,
        "outcome": "error" if error else ("partial" if known["to_fix"] else "success"),
        "error": error[:190] or None,
        "candidate_actions": next_calls(file, known, source) if known["table"] == "one" else [],
        "excerpts": [],
    }
