"""Objects of the project as JSON, and whether a value fits a type."""

import json
import re

from remora.scripts import external
from remora.scripts.shared.places import class_file
from remora.scripts.shared.samples import KNOWN, json_of, kind_of, names_in, options, outer, samples


@external
async def node_facts(path: str, node: str = "") -> dict: ...


@external
async def read_file(path: str) -> str: ...


OBJECTS = {}
"""The fields of the project's classes by class name: all with their types, and which are required."""
CHOICES = {}
"""Values of the project's enumerations by name."""


def fits(kind, value):
    """Whether a JSON value can represent a value of this type; an unknown type accepts anything but null."""
    return any(fits_one(option, value) for option in options(kind))


def fits_one(kind, value):
    """The same for a type that is no union."""
    name, inner = outer(kind)
    if name in ("None", "NoneType"):
        return value is None
    if name in CHOICES:
        return value in CHOICES[name]
    if name in OBJECTS:
        return fits_object(name, value)
    if name == "Literal":
        return any(type(json_of(part)) is type(value) and json_of(part) == value for part in inner)
    if name in ("Any", "object"):
        return True
    if name == "bool":
        return isinstance(value, bool)
    if name == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    if name in ("float", "complex", "Number", "Real", "timedelta"):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name in ("str", "bytes", "Path", "UUID"):
        return isinstance(value, str)
    if name == "Decimal":
        return isinstance(value, str) and bool(re.fullmatch(r"-?\d+(\.\d+)?", value))
    if name in ("date", "datetime"):
        return isinstance(value, str) and bool(re.match(r"\d{4}-\d\d-\d\d", value))
    if name == "dict":
        keyed = inner if len(inner) == 2 else ["str", "Any"]
        return isinstance(value, dict) and all(fits(keyed[1], one) for one in value.values())
    if name == "tuple" and inner and inner[-1] != "...":
        return isinstance(value, list) and len(value) == len(inner) and all(map(fits, inner, value))
    if name in ("list", "set", "frozenset", "tuple"):
        return isinstance(value, list) and all(fits(inner[0] if inner else "Any", one) for one in value)
    return value is not None


async def learn_objects(kind, file, text, depth=0):
    """Learn what objects of the project's own classes in a type look like as JSON."""
    for name in names_in(kind):
        if depth > 3 or name in KNOWN or samples(name, [], []):
            continue
        place = await class_file(name, file, text)
        source = await read_file(place) if place else ""
        try:
            found = await node_facts(place, name) if place else None
        except ValueError:
            found = None
        if found and found["kind"] == "class":
            await learn_class(name, found, place, source, depth)


async def learn_class(name, found, file, source, depth):
    """Learn one class: an enumeration by its values, anything else by its annotated fields."""
    lines = source.split("\n")[found["first"] - 1 : found["last"]]
    if "Enum" in found["bases"]:
        texts = [match.group(1) for line in lines if (match := re.match(r"\s+[A-Z]\w* = (.+)$", line))]
        CHOICES[name] = [json_of(text.strip()) for text in texts if json_of(text.strip()) is not None]
        KNOWN[name] = [[f"{name}({value!r})", value] for value in CHOICES[name]]
        return
    if "__init__" in found["methods"] or not found["fields"]:
        return
    for one in found["fields"]:
        await learn_objects(one["annotation"], file, source, depth + 1)
    OBJECTS[name] = {
        "fields": {one["name"]: one["annotation"] for one in found["fields"]},
        "needed": [one["name"] for one in found["fields"] if one["default"] is None],
    }
    made = [json_object(name, turn) for turn in range(3)]
    KNOWN[name] = [[json.dumps(one), one] for one in made if one is not None]


def json_object(name, turn):
    """An object with its required fields, in the last turn with all that have a sample; None if one has none."""
    known = OBJECTS[name]
    found = {}
    for field, kind in known["fields"].items():
        words = [f"{field.replace('_', ' ')} {number}" for number in (turn + 1, turn + 2)]
        values = [pair[1] for pair in samples(kind, words, []) if fits(kind, pair[1])]
        full = [value for value in values if value not in ("", [], {}, None)] or values
        if field in known["needed"] and not full:
            return None
        if full and (field in known["needed"] or turn == 2):
            found[field] = full[turn % len(full)]
    return found


def fits_object(name, value):
    """Whether a JSON object has the required fields of a class of the project and no unknown ones."""
    known = OBJECTS[name]
    if not isinstance(value, dict) or [field for field in known["needed"] if field not in value]:
        return False
    return all(field in known["fields"] and fits(known["fields"][field], one) for field, one in value.items())


def find_problems(found, parameters):
    """What is wrong with a fixture: every case has all required arguments, no unknown ones, and the right types."""
    known = {one["name"]: kind_of(one) for one in parameters if not one["kind"].startswith("var_")}
    needed = [one["name"] for one in parameters if one["default"] is None and one["name"] in known]
    wrong = [] if found["cases"] else ["there is no case"]
    for number, case in enumerate(found["cases"], start=1):
        wrong += [f"case {number}: `{name}` is missing" for name in needed if name not in case]
        wrong += [f"case {number}: `{name}` is no parameter" for name in case if name not in known]
        wrong += [
            f"case {number}: `{name}` is not {known[name]}"
            for name, value in case.items()
            if name in known and not fits(known[name], value)
        ]
    return wrong


def json_samples(parameter, texts, numbers):
    """JSON values for a parameter, the usual ones first."""
    made = [pair[1] for pair in samples(kind_of(parameter), texts, numbers)]
    return [value for value in made if fits(kind_of(parameter), value)]
