"""Vary calls: the same call with another value somewhere, or with less."""

import ast
import enum
import inspect
import re
import types
import typing

from .changes import ignored_parts

NUMBERS = [0, 1, 2, 3, 10, -1]
NEAR = (0, 1, -1)
TEXTS = ["a", "b", "7", "12", " ", "Hello, World"]
MOST_POOL = 40
LISTS = ("list", "Sequence", "Iterable", "Iterator", "Collection", "MutableSequence", "Generator")
DICTS = ("dict", "Mapping", "MutableMapping", "defaultdict", "OrderedDict")


class Unmade(Exception):
    """No expression is known for a type."""


class Values:
    """Varies calls with numbers and texts that the function itself uses."""

    def __init__(self, calls, changes, chance):
        self.calls, self.chance = calls, chance
        self.numbers, self.own = pools(changes)
        self.texts = once(
            [*self.own, *(str(one + more) for one in self.numbers if type(one) is int for more in NEAR), *TEXTS]
        )

    def varied(self, text):
        """The call with one to three parts changed; None if that fails."""
        try:
            tree = parsed(text)
            for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
                spots = [part for part in ast.walk(tree) if isinstance(part, SPOTS) and self.is_value(part)]
                if spots:
                    self.change(self.chance.choice(spots), tree)
            return ast.unparse(ast.fix_missing_locations(tree))
        except (Unmade, SyntaxError, ValueError, RecursionError):
            return None

    def shorter(self, text):
        """Shorter calls: with half of a text, without an item of a list, without an optional keyword."""
        tree = parsed(text)
        for index, part in enumerate(ast.walk(tree)):
            for number in range(parts_of(part)):
                twin = parsed(text)
                cut(list(ast.walk(twin))[index], number)
                yield ast.unparse(twin)

    def is_value(self, part):
        return not isinstance(part, ast.Constant) or isinstance(part.value, (bool, int, float, str))

    def change(self, part, tree):
        """Change one part in place."""
        if isinstance(part, ast.Constant):
            part.value = self.constant(part.value, tree)
        elif isinstance(part, ast.Dict):
            self.change_dict(part)
        elif isinstance(part, ast.Call):
            self.change_call(part)
        else:
            self.change_list(part)

    def constant(self, value, tree):
        others = [part.value for part in ast.walk(tree) if isinstance(part, ast.Constant)]
        if isinstance(value, bool):
            return not value
        if isinstance(value, str):
            return self.text(value, [other for other in others if isinstance(other, str)])
        numbers = [other for other in others if type(other) in (int, float)]
        return self.number(value, numbers)

    def number(self, value, others):
        """A number that the code uses or that is elsewhere in the call, its neighbour, or two of them combined."""
        known = [*self.numbers, *others]
        kind = self.chance.random()
        found = self.chance.choice(known)
        if kind < 0.3:
            found += self.chance.choice((-1, 1))
        elif kind < 0.45:
            found += self.chance.choice(known) * self.chance.choice((-1, 1))
        elif kind < 0.5 and isinstance(value, float):
            found += self.chance.choice((0.5, 0.01, -0.01))
        return round(float(found), 6) if isinstance(value, float) else int(found)

    def text(self, value, others):
        """A text that the code uses, or a few pieces of such texts joined."""
        token = self.chance.choice([*self.texts, *others])
        place = self.chance.randint(0, len(value))
        kind = self.chance.randrange(9)
        if kind == 0:
            return token
        if kind == 1:
            return value[:place] + token + value[place:]
        if kind == 2:
            return value[:place] + value[place + 1 :]
        if kind == 3:
            return self.chance.choice((value.upper(), value.lower(), value.title(), value + " ", ""))
        if kind == 4:
            sizes = [number for number in self.numbers if isinstance(number, int) and 0 < number <= 40]
            return "".join(self.chance.choice("0123456789") for _ in range(self.chance.choice(sizes)))
        if kind == 5:
            pieces = [self.chance.choice(self.texts) for _ in range(self.chance.choice((2, 3)))]
            return self.chance.choice([mark for mark in self.texts if not mark.isalnum()]).join(pieces)
        if kind == 6:
            return value[:place] + self.chance.choice("0123456789") + value[place + 1 :]
        return value + token if kind == 7 else token + value

    def change_list(self, part):
        """Add an item like the others, remove one, or change the order."""
        kind = self.chance.randrange(3)
        if not part.elts or kind == 2:
            self.chance.shuffle(part.elts)
        elif kind == 0:
            twin = parsed(ast.unparse(self.chance.choice(part.elts))).body
            part.elts.insert(self.chance.randint(0, len(part.elts)), twin)
            for inner in ast.walk(twin):
                if isinstance(inner, ast.Constant) and self.is_value(inner) and self.chance.random() < 0.6:
                    inner.value = self.constant(inner.value, twin)
        else:
            part.elts.pop(self.chance.randrange(len(part.elts)))
        if not part.elts and isinstance(part, ast.Set):
            raise Unmade("a set without values is no literal")

    def change_dict(self, part):
        if part.keys and self.chance.random() < 0.6:
            place = self.chance.randrange(len(part.keys))
            key, value = (parsed(ast.unparse(one[place])).body for one in (part.keys, part.values))
            for inner in [*ast.walk(key), *ast.walk(value)]:
                if isinstance(inner, ast.Constant) and self.is_value(inner) and self.chance.random() < 0.7:
                    inner.value = self.constant(inner.value, inner)
            part.keys.append(key)
            part.values.append(value)
        elif part.keys:
            place = self.chance.randrange(len(part.keys))
            part.keys.pop(place)
            part.values.pop(place)

    def change_call(self, part):
        """Give one parameter of a call another value of its type, or leave an optional one out."""
        target = self.resolved(part.func)
        hints = hints_of(target)
        try:
            parameters = list(inspect.signature(target).parameters.values())
        except (TypeError, ValueError):
            raise Unmade("its parameters are not known") from None
        usual = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        if not usual:
            return
        one = self.chance.choice(usual)
        place = usual.index(one)
        value = self.made(hints.get(one.name, type(one.default)), 0)
        named = [keyword for keyword in part.keywords if keyword.arg == one.name]
        if place < len(part.args) and not any(isinstance(inner, ast.Starred) for inner in part.args):
            part.args[place] = value
        elif named and one.default is not one.empty and self.chance.random() < 0.4:
            part.keywords.remove(named[0])
        elif named:
            named[0].value = value
        elif one.kind is not one.POSITIONAL_ONLY:
            part.keywords.append(ast.keyword(one.name, value))

    def resolved(self, function):
        """The object that a call calls. Raises `Unmade` if that is unknown without another call."""
        text = ast.unparse(function)
        try:
            names = self.calls.names_in(text)
            return eval(text, {**{name: getattr(self.calls.module, name) for name in names}, **self.calls.given})
        except Exception:  # a constructor of the project may raise anything
            raise Unmade(f"`{text}` is not known") from None

    def made(self, hint, depth):
        """An expression of a type."""
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            return self.made(self.chance.choice(inner), depth)
        if origin is typing.Annotated:
            return self.made(inner[0], depth)
        if origin is typing.Literal:
            return ast.Constant(self.chance.choice(inner))
        if hint is None or hint is type(None):
            return ast.Constant(None)
        if hint in SIMPLE:
            return ast.Constant(self.constant(SIMPLE[hint], ast.Constant(SIMPLE[hint])))
        if depth > 3:
            raise Unmade("too deep")
        kind = getattr(origin or hint, "__name__", "")
        if isinstance(hint, type) and self.calls.home(kind) and origin is None:
            return self.made_object(hint, depth)
        return self.made_container(kind, inner, depth)

    def made_container(self, kind, inner, depth):
        some = range(self.chance.choice((0, 1, 2, 3)))
        if kind in DICTS:
            pair = inner or (str, int)
            keys, values = ([self.made(one, depth + 1) for _ in some] for one in pair)
            return ast.Dict(keys, values)
        if kind in LISTS:
            return ast.List([self.made((inner or (int,))[0], depth + 1) for _ in some], ast.Load())
        if kind == "tuple":
            kinds = [inner[0] for _ in some] if len(inner) == 2 and inner[1] is ... else inner
            return ast.Tuple([self.made(one, depth + 1) for one in kinds], ast.Load())
        if kind in ("set", "frozenset", "Set", "AbstractSet"):
            parts = [self.made((inner or (int,))[0], depth + 1) for _ in range(self.chance.choice((1, 2)))]
            return ast.Set(parts)
        raise Unmade(f"no value of `{kind}` is known")

    def made_object(self, kind, depth):
        """A member of an enumeration, or a new object with its required arguments and sometimes more."""
        name = ast.Name(kind.__name__, ast.Load())
        if issubclass(kind, enum.Enum):
            return ast.Attribute(name, self.chance.choice(list(kind)).name, ast.Load())
        hints = hints_of(kind)
        try:
            parameters = inspect.signature(kind).parameters.values()
        except (TypeError, ValueError):
            raise Unmade(f"what `{kind.__name__}` takes is not known") from None
        given = []
        for one in parameters:
            usual = one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
            if usual and (one.default is one.empty or self.chance.random() < 0.4):
                given.append(ast.keyword(one.name, self.made(hints.get(one.name, str), depth + 1)))
        return ast.Call(name, [], given)


def parts_of(part):
    """In how many ways a part can be made shorter."""
    if isinstance(part, ast.Constant):
        return (2 + part.value.count(" ") if len(part.value) > 1 else 0) if isinstance(part.value, str) else 0
    if isinstance(part, (ast.List, ast.Tuple)):
        return len(part.elts)
    if isinstance(part, ast.Dict):
        return len(part.keys)
    return len(part.keywords) if isinstance(part, ast.Call) else 0


def cut(part, number):
    """Make a part shorter in place, in one of those ways."""
    if isinstance(part, ast.Constant):
        half, words = len(part.value) // 2, part.value.split(" ")
        whole = [part.value[:half], part.value[half:]]
        part.value = whole[number] if number < 2 else " ".join(words[: number - 2] + words[number - 1 :])
    elif isinstance(part, ast.Dict):
        part.keys.pop(number)
        part.values.pop(number)
    elif isinstance(part, ast.Call):
        part.keywords.pop(number)
    else:
        part.elts.pop(number)


class Plain(ast.NodeTransformer):
    """Turns negative numbers into one constant."""

    def visit_UnaryOp(self, part):
        inner = part.operand
        is_number = isinstance(inner, ast.Constant) and type(inner.value) in (int, float)
        return ast.Constant(-inner.value) if isinstance(part.op, ast.USub) and is_number else part


def parsed(text):
    return Plain().visit(ast.parse(text, mode="eval"))


SPOTS = (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Call)
SIMPLE = {bool: True, int: 3, float: 1.5, str: "a", typing.Any: 1, object: 1}


def hints_of(target):
    """The types of the parameters by name; empty if one of them is unknown at run time."""
    function = target.__init__ if isinstance(target, type) else target
    try:
        return typing.get_type_hints(function)
    except Exception:  # a name that only a type checker sees
        return {}


def pools(changes):
    """Numbers and texts of the function: its constants, module constants that it names, examples of its docstring."""
    function = changes.live[0]
    skipped = ignored_parts(changes.definition)
    found = []
    for part in ast.walk(changes.definition):
        if isinstance(part, ast.Constant) and id(part) not in skipped:
            found += plain_values(part.value)
        elif isinstance(part, ast.Name):
            found += plain_values(function.__globals__.get(part.id))
    numbers = [one for one in found if type(one) in (int, float) and abs(one) < 10**9]
    examples = re.findall(r"`([^`\n]{1,40})`|\"([^\"\n]{1,40})\"", function.__doc__ or "")
    texts = [one for one in found if isinstance(one, str) and 0 < len(one) <= 40]
    texts += [one for pair in examples for one in pair if one]
    return once([*numbers, *NUMBERS]), once([one for one in texts if is_plain(one)])


def is_plain(text):
    """Whether a reader would believe the text as an input: no pattern, no template."""
    return not set("%{}\\()[]*^$|<>~`") & set(text) and text.isprintable()


def plain_values(value, depth=0):
    """Numbers and texts in a value and in its containers."""
    if type(value) in (int, float, str):
        return [value]
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return [inner for member in value for inner in plain_values(member.value, depth + 1)]
    if depth < 2 and isinstance(value, dict):
        return [inner for pair in list(value.items())[:8] for one in pair for inner in plain_values(one, depth + 1)]
    if depth < 2 and isinstance(value, (list, tuple, set, frozenset)):
        return [inner for one in list(value)[:8] for inner in plain_values(one, depth + 1)]
    return []


def once(values):
    return list(dict.fromkeys(values))[:MOST_POOL]
