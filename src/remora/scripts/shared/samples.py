"""Sample values that fit a type, each as a Python expression and as a JSON value."""

import json
import re
from typing import Any

KNOWN: dict[str, list[Any]] = {}
"""Samples of the project's classes by name: expressions, or pairs with a JSON value. Scripts fill it."""
ALIASES: dict[str, str] = {}
"""What the file's own names for types stand for; `learn_aliases` fills it."""
UNKNOWN = [
    ["path", "str"],
    ["file", "str"],
    ["name", "str"],
    ["text", "str"],
    ["key", "str"],
    ["string", "str"],
    ["title", "str"],
    ["prefix", "str"],
    ["suffix", "str"],
    ["line", "str"],
    ["word", "str"],
    ["pattern", "str"],
    ["items", "list[int]"],
    ["values", "list[int]"],
    ["iterable", "list[int]"],
    ["seq", "list[int]"],
    ["list", "list[int]"],
    ["data", "list[int]"],
    ["args", "list[int]"],
    ["kwargs", "dict[str, int]"],
    ["mapping", "dict[str, int]"],
    ["dict", "dict[str, int]"],
    ["func", "Callable"],
    ["flag", "bool"],
    ["is_", "bool"],
]
"""Types that a part of a parameter's name suggests."""
EXACT = {
    "d": "dict[str, int]",
    "fn": "Callable",
    "f": "Callable",
    "predicate": "Callable",
    "pred": "Callable",
    "callback": "Callable",
    "n": "int",
    "s": "str",
    "i": "int",
    "x": "int | str | list[int]",
}
"""Types that a whole parameter name suggests."""
SHORT = {
    "List": "list",
    "Sequence": "list",
    "Iterable": "list",
    "Iterator": "list",
    "Collection": "list",
    "MutableSequence": "list",
    "Generator": "list",
    "Dict": "dict",
    "Mapping": "dict",
    "MutableMapping": "dict",
    "DefaultDict": "dict",
    "OrderedDict": "dict",
    "Tuple": "tuple",
    "Set": "set",
    "AbstractSet": "set",
    "FrozenSet": "frozenset",
    "Text": "str",
    "AnyStr": "str",
    "PurePath": "Path",
    "PathLike": "Path",
    "Hashable": "str",
}
"""The builtin type that has the same samples."""
TEXTUAL = {
    "Decimal": ["1.50", "0", "-2"],
    "Path": ["a.txt", "folder/b.txt"],
    "date": ["2024-02-29", "2020-01-01"],
    "datetime": ["2024-02-29T12:30:00", "2020-01-01T00:00:00"],
    "UUID": ["12345678-1234-5678-1234-567812345678"],
}
"""Samples of types that JSON holds as text."""


def split_top(text: str, mark: str) -> list[str]:
    """Split a text at a mark, but not inside brackets or quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == mark and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()]


def outer(kind: str) -> tuple[str, list[str]]:
    """The name of a type, without its module, and the types in its brackets."""
    kind = kind.strip()
    if len(kind) > 1 and kind[0] in "\"'" and kind[-1] == kind[0]:
        kind = kind[1:-1].strip()
    name, bracket, inner = kind.partition("[")
    name = name.strip().split(".")[-1]
    return SHORT.get(name, name), split_top(inner[:-1], ",") if bracket else []


def learn_aliases(source: str) -> None:
    """Add the names that a file gives to types: `Size = Union[int, str]`, `type Size = int | str`, a `TypeVar`."""
    found = re.findall(r"(?m)^[ \t]*(?:type[ \t]+)?([A-Z_]\w*)[ \t]*(:[^=\n]*TypeAlias)?[ \t]*=[ \t]*([^\n#]+)", source)
    for name, marked, text in found:
        text = text.strip()
        if re.match(r"(?:\w+\.)?(?:TypeVar|NewType)\(", text):
            parts = split_top(text[text.index("(") + 1 :].rstrip(")"), ",")
            bound = [part.partition("=")[2] for part in parts if part.startswith("bound")]
            plain = [part for part in parts[1:] if "=" not in part]
            ALIASES[name] = bound[0] if bound else " | ".join(plain) or "int"
        elif (
            marked or "Union[" in text or "Optional[" in text or re.fullmatch(r"[\w.\[\], ]+(?:\|[\w.\[\], ]+)+", text)
        ):
            ALIASES[name] = text


def options(kind: str) -> list[str]:
    """The types of a union, `None` last."""
    if kind in ALIASES:
        known = ALIASES[kind]
        return options(known) if known != kind and known not in ALIASES else [known]
    if not (kind[:1] in "\"'" and kind[-1:] == kind[:1]) and len(split_top(kind, "|")) > 1:
        parts = split_top(kind, "|")
    else:
        name, inner = outer(kind)
        if name == "Annotated" or name == "Final" or name == "ClassVar":
            return options(inner[0]) if inner else ["Any"]
        plain = kind.strip("\"'")
        if name not in ("Optional", "Union"):
            return options(plain) if plain != kind and len(split_top(plain, "|")) > 1 else [kind]
        parts = [*inner, "None"] if name == "Optional" else inner
    flat = [each for part in parts for each in options(part)]
    return [each for each in flat if each != "None"] + [each for each in flat if each == "None"][:1]


def names_in(kind: str) -> list[str]:
    """Every name in a type, also those in its brackets."""
    return list(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", " ".join(options(kind)))))


def quoted(text: str) -> str:
    """The text as a string literal in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def samples(kind: str, texts: list[str], numbers: list[Any], depth: int = 0) -> list[list[Any]]:
    """Pairs of an expression and its JSON value that fit a type; none for an unknown type."""
    if len(options(kind)) > 1:
        each = [samples(option, texts, numbers, depth) for option in options(kind)]
        return [found[0] for found in each if found] + [one for found in each for one in found[1:]]
    name, inner = outer(options(kind)[0])
    if name == "Literal":
        return [[part, json_of(part)] for part in inner if json_of(part) is not None]
    if name == "str":
        return [[quoted(text), text] for text in [*texts, "a", "Hello, World", ""]]
    if name in ("int", "float", "complex", "Number", "Real", "SupportsInt", "SupportsFloat"):
        whole = [number for number in [*numbers, 3, 0, -1, 10] if "." not in str(number) or name == "float"]
        found = [1.5, *whole] if name == "float" else whole
        return [[str(number), number] for number in found]
    if name == "bool":
        return [["True", True], ["False", False]]
    if name in ("None", "NoneType"):
        return [["None", None]]
    if name in ("Any", "object", ""):
        return [["1", 1], ['"a"', "a"]]
    if name == "bytes" or name == "Buffer":
        return [['b"ab"', "ab"], ['b""', ""]]
    if name in TEXTUAL:
        made = f"{name}.fromisoformat" if name in ("date", "datetime") else name
        return [[f"{made}({quoted(text)})", text] for text in TEXTUAL[name]]
    if name == "timedelta":
        return [["timedelta(seconds=90)", 90], ["timedelta(0)", 0]]
    if name in KNOWN:
        return [[made, None] if isinstance(made, str) else made for made in KNOWN[name]]
    if name == "Callable" or name == "type":
        return [["str", None], ["len", None]] if depth == 0 else []
    return container_samples(name, inner, texts, numbers, depth)


def container_samples(name: str, inner: list[str], texts: list[str], numbers: list[Any], depth: int) -> list[list[Any]]:
    """The same for containers."""
    if name not in ("list", "set", "frozenset", "tuple", "dict") or depth > 3:
        return []
    # Inside a container the same few values are enough, and unannotated ones are whole numbers.
    kinds = [part for part in inner if part and part != "..."] or (["str", "int"] if name == "dict" else ["int"])
    parts = [samples(part, texts, numbers, depth + 1)[:3] for part in kinds]
    if not all(parts):
        return []
    if name == "dict":
        keys, values = parts[0], parts[-1]
        one = [f"{{{keys[0][0]}: {values[0][0]}}}", {str(keys[0][1]): values[0][1]}]
        return [one, ["{}", {}]]
    if name == "tuple" and not (inner and inner[-1] == "..."):
        first = [part[0] for part in parts]
        second = [part[-1] for part in parts]
        return [[f"({', '.join(one[0] for one in row)},)", [one[1] for one in row]] for row in (first, second)]
    texts_of, values_of = [one[0] for one in parts[0]], [one[1] for one in parts[0]]
    if name == "list":
        return [[f"[{', '.join(texts_of)}]", values_of], ["[]", []], [f"[{texts_of[0]}]", values_of[:1]]]
    if name == "tuple":
        return [[f"({', '.join(texts_of)},)", values_of], ["()", []]]
    empty = [f"{name}()", []]
    whole = f"{{{', '.join(texts_of)}}}"
    return [[whole if name == "set" else f"frozenset({whole})", values_of], empty]


def json_of(text: str) -> Any:
    """The JSON value of a simple constant, such as `3` or `"a"`; None for anything else."""
    if text in ("True", "False"):
        return text == "True"
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text)
    if re.fullmatch(r"-?\d{1,15}\.\d{1,15}", text):
        return float(text)
    if re.fullmatch(r"\"[^\"\\\\]*\"|'[^'\\\\]*'", text):
        return text[1:-1]
    return None


def kind_of(parameter: dict[str, Any]) -> str:
    """The type of a parameter: as annotated, as its default has it, or as its name suggests."""
    if parameter["annotation"]:
        return str(parameter["annotation"])
    default = parameter["default"] or ""
    if default and default != "None":
        value = json_of(default)
        if value is not None:
            return type(value).__name__
        if default[0] in "[({":
            return {"[": "list", "(": "tuple", "{": "dict"}[default[0]]
    name = parameter["name"].lower()
    guesses = [guess for word, guess in UNKNOWN if word in name]
    if name in EXACT:
        return EXACT[name]
    if guesses:
        return guesses[0]
    return "list[int] | list[str] | dict[str, int] | str" if name.endswith("s") else "int | str | list[int]"


def strings(code: str) -> list[str]:
    """The values of short, plain string literals, in order."""
    code = re.sub(r"(?s)\"{3}.*?\"{3}|'{3}.*?'{3}", "", code)
    found = re.findall(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|#[^\n]*", code)
    texts = [one[1:-1] for one in found if not one.startswith("#")]
    return [text for text in texts if 0 < len(text) <= 24 and not re.search(r"[\\{}%]", text)]


def constants(text: str, facts: dict[str, Any], source: str) -> tuple[list[str], list[int]]:
    """Strings and numbers that a function works with: its own, and those of module constants that it names."""
    lines = text.split("\n")[max(0, (facts["body_line"] or facts["first"]) - facts["first"]) :]
    body = re.sub(r"(?s)\"{3}.*?\"{3}|'{3}.*?'{3}", "", "\n".join(lines))
    texts: list[str] = []
    for name in dict.fromkeys(re.findall(r"\b[A-Z][A-Z0-9_]{2,}\b", body)):
        for line in re.findall(rf"(?m)^{name}\b[^\n=]*=([^\n]*)", source)[:1]:
            texts += strings(line)[:2]
    texts += strings(body)
    plain = re.sub(r"\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*", "", body)
    numbers = [int(one) for one in re.findall(r"(?<![\w.])\d{1,6}(?![\w.])", plain)]
    return list(dict.fromkeys(texts))[:4], list(dict.fromkeys(numbers))[:3]


def required(parameters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parameters without a default, `*args` and `**kwargs` left out."""
    return [one for one in parameters if one["default"] is None and not one["kind"].startswith("var_")]


def own_parameters(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """The parameters that a caller gives: without `self` or `cls`."""
    marks = [mark.split("(")[0].split(".")[-1] for mark in facts["decorators"]]
    is_bound = facts["kind"] == "method" and "staticmethod" not in marks
    parameters: list[dict[str, Any]] = facts["parameters"]
    return parameters[1:] if is_bound else parameters
