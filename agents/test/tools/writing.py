"""The text of tests: names that say what they protect, in the style of the project."""

import re

from remora.scripts.shared.places import flat

LONGEST_LINE = 88
"""Characters of a line, as most formatters have it."""
LONGEST_NAME, LONGEST_REASON, LONGEST_MESSAGE = 80, 44, 24
"""Characters of a name, of a condition in it, and of what an error says."""


def snake(name):
    """A name in camel case as words with underscores."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


MARKS = {"-": "dash", "_": "underscore", ".": "dot", ",": "comma", ":": "colon", "/": "slash", "!": "bang", "@": "at",
         "#": "hash", ";": "semicolon", "=": "equals", "+": "plus", "*": "star", "%": "percent", "&": "ampersand",
         "?": "question_mark", "|": "bar", "<": "less", ">": "greater", "$": "dollar", "~": "tilde", "^": "caret",
         "\\": "backslash", "`": "backquote"}  # fmt: skip
"""Words for characters that cannot be part of a name."""


NAMED = "raises another error"
"""How a change ends that the name of its test tells."""


def slug(text, most):
    """A text as a part of a name."""
    text = re.sub(r"(?<![\w'\"])-(?=\d)", " minus ", text)
    text = re.sub(r"''|\"\"", " empty string ", text)
    for brackets, kind in (("[]", "list"), ("{}", "dict"), ("()", "tuple")):
        text = text.replace(brackets, f" empty {kind} ")
    text = re.sub(r"(['\"])(\s+)\1", " space ", text)
    words = re.findall(r"[A-Za-z0-9]+", text)
    words = words or [MARKS[char] for char in text if char in MARKS]
    kept = []
    for word in words:
        if len("_".join([*kept, word])) > most:
            break
        kept.append(word.lower())
    return "_".join(kept)


def test_name(function, case, seen, reasons):
    """The name of a test: the function, and the error or the arguments that matter."""
    begin = f"test_{flat(snake(function))}"
    if "raises" in seen:
        when = reasons["errors"].get(seen["raises"], "")
        ending = f"raises_{snake(seen['raises'])}"
        given = slug(case["arguments"], 24)
        most = LONGEST_REASON if when.startswith("if ") else LONGEST_MESSAGE
        when = when if len(slug(when, LONGEST_NAME)) <= most else ""
        ending += f"_{slug(when, LONGEST_REASON)}" if when else f"_for_{given}" if given else ""
        return f"{begin}_{ending}"[:LONGEST_NAME].rstrip("_")
    given = slug(case["arguments"], 24)
    value = seen["value"] or ""
    end = reasons["ends"].get(case.get("line"))
    if end:
        what = slug(end["value"], 20) if re.fullmatch(r"`?-?[\w.]+`?", end["value"]) else ""
        when = slug(end["when"], LONGEST_NAME)
        if when and len(when) <= LONGEST_REASON:
            return f"{begin}_{f'returns_{what}_' if what else ''}if_{when}"[:LONGEST_NAME].rstrip("_")
    if value in ("None", "True", "False", "[]", "''", "{}", "()"):
        empty = {"None": "none", "True": "true", "False": "false"}.get(value, "empty")
        return f"{begin}_is_{empty}{f'_for_{given}' if given else ''}"
    return f"{begin}_of_{given}" if given else f"{begin}_{'of_signs' if case['arguments'] else 'as_it_is'}"


def reason_line(case):
    """A comment that says which mistake the test catches, unless its name says that already."""
    shown = [one.partition(": ")[2] for one in case.get("notices", []) if ": " in one]
    return f"    # Fails if {shown[0]}." if shown and not shown[0].endswith(NAMED) else ""


def called(case, seen):
    """The call as it must be written: awaited, or its values listed."""
    return {"await": f"asyncio.run({case['call']})", "list": f"list({case['call']})"}.get(seen.get("how"), case["call"])


def pytest_lines(case, seen):
    """The statements of one test as a function."""
    call = called(case, seen)
    if "raises" in seen:
        return [f"    with pytest.raises({seen['raises']}):", f"        {call}"]
    value = case["expected"] if case["expected"] is not None else seen["value"]
    if value in ("None", "True", "False"):
        return [f"    assert {call} is {value}"]
    return [f"    assert {call} == {f'pytest.approx({value})' if seen.get('float') else value}"]


def unittest_lines(case, seen):
    """The statements of one test as a method."""
    call = called(case, seen)
    if "raises" in seen:
        return [f"    with self.assertRaises({seen['raises']}):", f"        {call}"]
    value = case["expected"] if case["expected"] is not None else seen["value"]
    if value == "None":
        return [f"    self.assertIsNone({call})"]
    if value in ("True", "False"):
        return [f"    self.assertIs({call}, {value})"]
    return [f"    self.{'assertAlmostEqual' if seen.get('float') else 'assertEqual'}({call}, {value})"]


def property_test(name, cases, as_unittest):
    """One test of a property, with the inputs that show it."""
    form, inputs = cases[0]["form"], ", ".join(case["arguments"] for case in cases)
    several = len(cases) > 1
    value = "value" if several else inputs
    call, wanted = (form[part].replace("%s", value) for part in ("call", "expected"))
    # No comment on what it notices: the agents of a function and of its inverse write the same test.
    head = [f"def test_{flat(snake(name))}({'self' if as_unittest else 'value' if several else ''}):"]
    check = f"self.assertEqual({call}, {wanted})" if as_unittest else f"assert {call} == {wanted}"
    if not several:
        return "\n".join([*head, f"    {check}"])
    if as_unittest:
        loop = [f"    for value in [{inputs}]:", "        with self.subTest(value=value):", f"            {check}"]
        return "\n".join([*head, *loop])
    return "\n".join([f'@pytest.mark.parametrize("value", [{inputs}])', *head, f"    {check}"])


def documented_test(function, pairs, as_unittest):
    """One test of the examples that the project's documents give of a function."""
    places = list(dict.fromkeys([case["where"] for case, _ in pairs]))
    stem = flat(snake(places[0].rpartition("/")[2].partition(".")[0])) if len(places) == 1 else "documents"
    said = "the docstring shows" if places == ["docstring"] else f"{places[0]} shows"
    said = said if len(places) == 1 else "the documents show"
    head = f"def test_{flat(snake(function))}_examples_in_{stem}({'self' if as_unittest else ''}):"
    write = unittest_lines if as_unittest else pytest_lines
    lines = [line for case, seen in pairs for line in in_two_lines(write(case, seen), called(case, seen))]
    return "\n".join([head, f"    # What {said}.", *lines])


def in_two_lines(lines, call):
    """The statements with a long call on a line of its own."""
    if len(lines) > 1 or len(lines[0]) <= LONGEST_LINE or call not in lines[0]:
        return lines
    return [f"    result = {call}", lines[0].replace(call, "result", 1)]


def imports(chosen, module, lines):
    """The import lines that the tests need: the standard library's, pytest, the project's."""
    found = {}
    for _, seen in chosen:
        names = {**seen["names"], **(seen.get("expected_names") or {})}
        if seen.get("source"):
            names[seen["raises"]] = seen["source"]
        for name, source in names.items():
            found[source] = {*found.get(source, []), name}
    froms = {source: f"from {source} import {', '.join(sorted(names))}" for source, names in found.items()}
    own = sorted(source for source in froms if source.split(".")[0] == module.split(".")[0])
    standard = [f"import {name}" for name in ("asyncio", "unittest") if f"{name}." in lines]
    groups = [
        [*standard, *[froms[source] for source in sorted(froms) if source not in own]],
        ["import pytest"] if "pytest." in lines else [],
        [froms[one] for one in own],
    ]
    return "\n\n".join("\n".join(group) for group in groups if group)


STRING = r"('(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"


def with_quotes(text, quote):
    """The code with its plain strings in these quotes."""
    if quote == "'":
        return text
    parts = re.split(STRING, text)
    return "".join([f'"{part[1:-1]}"' if is_plain_string(part, place) else part for place, part in enumerate(parts)])


def is_plain_string(part, place):
    """Whether a part, as split at strings, is a string that means the same in double quotes."""
    return place % 2 == 1 and part[0] == "'" and '"' not in part and "\\'" not in part


def tests_text(chosen, function, reasons, as_unittest):
    """The tests without imports."""
    parts, names = [], []
    shown = dict.fromkeys(case["property"] for case, _ in chosen if case.get("property"))
    for name in shown:
        parts.append(property_test(name, [case for case, _ in chosen if case.get("property") == name], as_unittest))
    documented = [one for one in chosen if one[0].get("where")]
    if documented:
        parts.append(documented_test(function, documented, as_unittest))
    for case, seen in [one for one in chosen if not one[0].get("property") and not one[0].get("where")]:
        name = test_name(function, case, seen, reasons)
        given = slug(case["arguments"], 24)
        name = name if name not in names or not given else f"{name}_for_{given}"
        name = name if name not in names else f"{name}_{len(names) + 1}"
        names.append(name)
        why = reason_line(case)
        given = "self" if as_unittest else ", ".join(case.get("takes", []))
        lines = (unittest_lines if as_unittest else pytest_lines)(case, seen)
        parts.append("\n".join([f"def {name}({given}):", *([why] if why else []), *lines]))
    if not as_unittest:
        return "\n\n\n".join(parts)
    owner = "".join(part[:1].upper() + part[1:] for part in re.split(r"[._]", function) if part)
    body = "\n\n".join(re.sub(r"(?m)^(?=.)", "    ", part) for part in parts)
    return f"class Test{owner}Edges(unittest.TestCase):\n{body}"


def without_tests(text, names):
    """The text without definitions of these names, which are written again."""
    for name in names:
        text = re.sub(
            rf"(?ms)^(?:@[^\n]*\n)*(?:class|def|async def) {name}\b.*?(?=^(?:@|class |def |async def )|\Z)", "", text
        )
    return text


def whole_file(head, before, chosen, module, text):
    """The file with the new tests at its end."""
    needed = imports(chosen, module, text)
    if not before:
        return "\n\n".join(part for part in (head, needed, f"\n{text}\n") if part)
    before = without_tests(before, re.findall(r"(?m)^(?:class|def) (\w+)", text))
    missing = [line for line in needed.split("\n") if line and line not in before.split("\n")]
    lines = before.rstrip("\n").split("\n")
    last = max([number for number, line in enumerate(lines) if re.match(r"(?:from|import) ", line)] or [0])
    return "\n".join([*lines[: last + 1], *missing, *lines[last + 1 :]]) + f"\n\n\n{text}\n"
