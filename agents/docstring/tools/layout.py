"""The text of a docstring in the project's style, and repairs of single lines in one that is there."""

import re

from prose import in_person, with_ticks
from sections import entry_end, find_raises, find_section, indent_of

WIDTH, NARROW = 88, 72
"""Characters of a line in a new docstring, and least ones in one that is there: others are as long as its longest."""


def wrapped(text, width):
    """The text in lines of at most `width` characters. Code in backticks is not split."""
    words = re.findall(r"(?:`+[^`]*`+|\S)+", text)
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] += " " + word
    return lines


def raises_block(style, raises):
    """The lines about errors, for a style with sections; for a plain one, a sentence for each."""
    if not raises:
        return []
    if style == "sphinx":
        return [f":raises {name}: {text}" for name, text in raises]
    if style == "numpy":
        return ["Raises", "------", *[line for name, text in raises for line in (name, f"    {text}")]]
    return ["Raises:", *[f"    {name}: {text}" for name, text in raises]]


def new_docstring(sentence, further, raises, habits):
    """A docstring for code that has none: a sentence, what else is true, and the errors."""
    plain = habits["style"] == "plain"
    told = [f"Raises `{name}` {text[0].lower()}{text[1:]}" for name, text in raises] if plain else []
    rest = [in_person(one, habits["third_person"]) for one in [*further, *told]]
    sentence = in_person(sentence, habits["third_person"])
    blocks = ["\n".join(wrapped(sentence, WIDTH))]
    if len(" ".join([sentence, *rest])) <= WIDTH - 8:
        blocks = [" ".join([sentence, *rest])]
    elif rest:
        blocks.append("\n".join(wrapped(" ".join(rest), WIDTH)))
    if not plain and raises:
        blocks.append("\n".join(raises_block(habits["style"], raises)))
    return with_ticks("\n\n".join(blocks), habits["ticks"])


def repaired(lines, repairs, ticks):
    """The lines of a docstring, as they are in the file, with the repairs made."""
    for one in repairs:
        lines = repair_line(list(lines), one, ticks)
    return lines


def entry_line(lines, name):
    """The number of the line that describes a parameter; -1 without one."""
    found = find_section("\n".join(lines))
    if not found:
        return -1
    style, first, end = found
    start = first + {"google": 1, "numpy": 2, "sphinx": 0}[style]
    pattern = {
        "google": rf"\s*\*{{0,2}}{name}\s*(?:\(.*?\))?\s*:",
        "numpy": rf"\s*\*{{0,2}}{name}\s*(?::.*)?$",
        "sphinx": rf"\s*:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*?[\s*])?\*{{0,2}}{name}\s*:",
    }[style]
    return next(iter([number for number in range(start, end) if re.match(pattern, lines[number])]), -1)


def repair_line(lines, one, ticks):
    """The lines with one repair made. They stay as they are if the place is not found."""
    at = entry_line(lines, one["name"]) if one["do"] in ("rename", "remove") else -1
    if one["do"] == "rename" and at >= 0:
        lines = renamed_entry(lines, at, one)
        return [re.sub(rf"(:type\s+){one['name']}\b", rf"\g<1>{one['new']}", line) for line in lines]
    if one["do"] == "remove" and at >= 0:
        end = entry_end(lines, at)
        between = at > 0 and end < len(lines) and not lines[at - 1].strip() and not lines[end].strip()
        lines = [*lines[:at], *lines[end + (1 if between else 0) :]]
        return [line for line in lines if not re.match(rf"\s*:type\s+{one['name']}\s*:", line)]
    if one["do"] == "describe":
        return with_entry(lines, one)
    if one["do"] == "raise":
        style, first, end = find_raises("\n".join(lines))[:3]
        inside = lines[first] if style == "sphinx" else lines[first + (1 if style == "google" else 2)]
        margin = " " * indent_of(inside)
        text = with_ticks(one["text"], ticks)
        new = {"sphinx": [f":raises {one['name']}: {text}"], "google": [f"{one['name']}: {text}"]}
        new["numpy"] = [one["name"], f"    {text}"]
        return [*lines[:end], *[margin + line for line in new[style]], *lines[end:]]
    return lines


def renamed_entry(lines, at, one):
    """The lines with another name in one entry. Lines that were aligned with its description still are."""
    old = lines[at]
    lines[at] = re.sub(rf"\b{one['name']}\b", one["new"], old, count=1)
    start = len(old) - len(old.partition(": ")[2])
    for number in range(at + 1, entry_end(lines, at)):
        if indent_of(lines[number]) == start:
            lines[number] = " " * (start + len(lines[at]) - len(old)) + lines[number].lstrip()
    return lines


def with_entry(lines, one):
    """The lines with an entry for one more parameter: after the one before it in the signature, else the last one."""
    style, first, end = find_section("\n".join(lines))
    while end > first and not lines[end - 1].strip():
        end -= 1
    before = entry_line(lines, one["after"]) if one.get("after") else -1
    begin = first + {"google": 1, "numpy": 2, "sphinx": 0}[style]
    at = entry_end(lines, before) if before >= 0 else begin if one.get("after") in ("", "self", "cls") else end
    while at < len(lines) and re.match(r"\s*:type\s", lines[at]):
        at = entry_end(lines, at)
    margin = " " * indent_of(lines[begin])
    named = f"{one['name']} {one['kind']}" if one.get("kind") else one["name"]
    head = {"sphinx": f":param {one['name']}: {one['text']}", "google": f"{named}: {one['text']}"}.get(style, "")
    width = max([len(line) for line in lines[begin:end]] + [NARROW])
    new = [one["name"], f"    {one['text']}"] if style == "numpy" else wrapped(head, width - len(margin) - 4)
    new = [new[0], *[f"    {line.strip()}" for line in new[1:]]]
    return [*lines[:at], *[margin + line for line in new], *lines[at:]]
