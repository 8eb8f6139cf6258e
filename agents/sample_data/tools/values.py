"""Values that the function accepts: within its limits, in the form that it parses."""

import json
import re

from guards import body_of, guards_of, is_rejected, loop_variable, loops_of, numbers_named
from objects import fits, json_samples

from remora.scripts.shared.places import is_in_tests, is_script
from remora.scripts.shared.samples import constants, kind_of, required

PARTING = r"\.r?(?:split|partition)\([ ]*(?:sep=)?(\"[^\"\n]+\"|'[^'\n]+')?"
READING = r"\b(?:int|float|Decimal|Fraction)\(|\.is(?:digit|numeric|decimal)\("
CLOCKS = [
    {"%Y": "2024", "%m": "02", "%d": "29", "%H": "12", "%M": "30", "%S": "00", "%y": "24"},
    {"%Y": "2020", "%m": "01", "%d": "01", "%H": "00", "%M": "00", "%S": "59", "%y": "20"},
]


def parseable_texts(body, name):
    """Texts of the form that the body parses: with its separators, numbers or dates."""
    made = ["3", "10"] if re.search(rf"\b(?:int|float|Decimal|Fraction)\({name}\b", body) else []
    for form in re.findall(r"strptime\([^\n]*?[\"']([^\"'\n]*%[^\"'\n]*)[\"']", body):
        for clock in CLOCKS:
            made.append("".join([clock.get(part, part) for part in re.findall(r"(?s)%.|.", form)]))
    made += ["2024-02-29", "2020-01-01"] if "fromisoformat(" in body else []
    made += ['{"a": 1}', "[1, 2]"] if "json.loads(" in body else []
    if not re.search(rf"\b{name}\b[^\n]*{PARTING}|\bfor \w+ in {name}\b", body):
        return made
    marks = [mark[1:-1].replace("\\n", "\n").replace("\\t", "\t") or " " for mark in re.findall(PARTING, body)]
    marks = list(dict.fromkeys(marks))[:2]
    targets = re.findall(r"(?m)^[ \t]*(\w[\w, ]*,[ ]*\w+)[ ]*=[^=\n]*\.r?split\(", body)
    count = max([2, *[left.count(",") + 1 for left in targets]])
    return made + join_texts(marks, count, bool(re.search(READING, body)))


def join_texts(marks, count, has_numbers):
    """Words and numbers joined by separators, in the usual ways."""
    if not marks:
        return []
    words, digits = ["a", "b", "c", "d", "e", "f"][:count], ["3", "10", "1", "2", "5", "4"][:count]
    if len(marks) == 1:
        mixed = [marks[0].join(row) for row in ([words[0], *digits[1:]], digits, [*words[:-1], digits[0]])]
        return mixed if has_numbers else [marks[0].join(words), marks[0].join(words[::-1])]
    ends = digits if has_numbers else words[::-1]
    made = []
    for outside, inside in (marks, marks[::-1]):
        made.append(outside.join([f"{word}{inside}{end}" for word, end in zip(words[:2], ends)]))
        made.append(outside.join([f"{word}{inside}{end}" for word, end in zip(ends[:2], ends[::-1])]))
    return made


def docstring_texts(doc, parameter, parameters, raised):
    """Examples of a text that the docstring gives in quotes or backticks for this parameter."""
    doc = re.split(r"(?m)^[ \t]*(?::?[Rr]eturns?\b|:?[Yy]ields?\b|:?[Rr]aises?\b|>>>)", doc or "")[0]
    texts = [one for one in parameters if one["default"] is None and fits(kind_of(one), "a")]
    names = "|".join([re.escape(one["name"]) for one in parameters])
    pieces = re.split(rf"(?m)^[ \t]*(?:[:@]param[ ]+)?(?:\w+[ ]+)?(?=(?:{names})\b[^\n]{{0,40}}:)", doc)
    made = []
    for place, piece in enumerate(pieces):
        is_own = re.match(rf"{re.escape(parameter['name'])}\b", piece) if place else texts == [parameter]
        quotes = r"``?([^`\n]{1,40})``?|\"([^\"\n]{1,40})\"|(?<!\w)'([^'\n]{1,40})'(?!\w)"
        made += ["".join(found) for found in re.findall(quotes, piece)] if is_own else []
    no_values = ["None", "True", "False", *raised, *[one["name"] for one in parameters]]
    no_text = r"\($|\(\)$|^:|[A-Z]\w+(?:Error|Exception)$"
    return [text for text in made if text not in no_values and not re.search(no_text, text)]


async def read_code(text, facts, file, source, parameters):
    """What the function's own code says about the values that it accepts."""
    body = body_of(text, facts)
    texts, numbers = constants(text, facts, source)
    marks = [mark[1:-1] for mark in re.findall(PARTING, body)]
    return {
        "body": body,
        "doc": facts["docstring"],
        "raises": [name.split(".")[-1] for name in facts["raises"]],
        "texts": [one for one in texts if one not in marks],
        "numbers": numbers,
        "named": await numbers_named(body, file, source),
        "guards": [[guard, loop_variable(guard, loops_of(body), parameters)] for guard in guards_of(body)],
        "loops": loops_of(body),
        "parameters": parameters,
    }


def numbers_for(name, code):
    """Numbers that the code uses; if it rejects some, numbers near its limits that it does not reject."""
    plain = [number for number in code["named"].values() if abs(number) < 1000000]
    usual = list(dict.fromkeys([*plain, *code["numbers"]]))
    near = [number + step for number in usual for step in (1, -1, 0.5)]
    wanted = [*usual, 3, 10, 1, *near]
    rejected = [one for one in wanted if is_rejected({name: one}, code) or is_rejected({name: [one] * 4}, code)]
    return list(dict.fromkeys([one for one in wanted if one not in rejected])) if rejected else usual


def keyed_values(name, code):
    """Dicts with the keys that the body reads from the parameter, or lists of such dicts if a loop reads them."""
    made = []
    inner = [each for each, over in code["loops"].items() if re.match(rf"(?:\w+\()?{name}\b(?!\.)", over)]
    for own in [name, *inner]:
        keys = re.findall(rf"\b{own}\[[\"']([^\"'\n]+)[\"']\]", code["body"])
        each = [dict.fromkeys(keys, value) for value in (3, "a")] if keys else []
        made += each if own == name else [[one] for one in each]
    return made


def values_for(parameter, code):
    """JSON values for a parameter, usual ones first and those that the code rejects last."""
    name = parameter["name"]
    own = docstring_texts(code["doc"], parameter, code["parameters"], code["raises"])
    own += parseable_texts(code["body"], name)
    made = [one for one in keyed_values(name, code) if fits(kind_of(parameter), one)]
    made += json_samples(parameter, list(dict.fromkeys([*own, *code["texts"]])), numbers_for(name, code))
    seen = [json.dumps(one) for one in made]
    made = [one for place, one in enumerate(made) if seen[place] not in seen[:place]]
    taken = [one for one in made if one and not is_rejected({name: one}, code)]
    made += [one for one in longer_lists(made) if len(taken) < 2 and fits(kind_of(parameter), one)]
    rejected = [is_rejected({name: one}, code) for one in made]
    return [one for one, bad in zip(made, rejected) if not bad] + [one for one, bad in zip(made, rejected) if bad]


def longer_lists(made):
    """Longer lists of the same values, for code that rejects the short ones."""
    return [each for one in made[:1] if isinstance(one, list) and len(one) > 1 for each in (one[::-1], [*one, one[0]])]


def why_no_subject(file, parameters):
    """Why the function is none that samples are for; empty if it is one."""
    if is_in_tests(file):
        return "it is part of the tests itself"
    if is_script(file):
        return "its file is no part of what the project does"
    return "" if [one for one in parameters if not one["kind"].startswith("var_")] else "it takes no arguments"


def why_not(file, parameters, values):
    """Why there is nothing to write; empty if there is."""
    problem = why_no_subject(file, parameters)
    unknown = [one for one in required(parameters) if not values[one["name"]]]
    nothing = f"there is no sample for `{unknown[0]['name']}: {kind_of(unknown[0])}`" if unknown else ""
    return problem or nothing
