"""Mutation testing: change a function in one place at a time, while tests run."""

import ast
import contextlib
import copy
import functools
import gc
import importlib
import os
import re
import types

FLIPS = {
    "Lt": "GtE", "GtE": "Lt", "Gt": "LtE", "LtE": "Gt", "Eq": "NotEq", "NotEq": "Eq", "In": "NotIn", "NotIn": "In",
    "Is": "IsNot", "IsNot": "Is", "And": "Or", "Or": "And", "Add": "Sub", "Sub": "Add", "Mult": "Add", "Div": "Mult",
    "FloorDiv": "Mult", "Mod": "Mult", "Pow": "Mult", "LShift": "RShift", "RShift": "LShift", "BitAnd": "BitOr",
    "BitOr": "BitAnd",
}  # fmt: skip
EDGES = {"Lt": "LtE", "LtE": "Lt", "Gt": "GtE", "GtE": "Gt"}
TWINS = {"lower": "upper", "upper": "lower", "min": "max", "max": "min", "any": "all", "all": "any", "lstrip": "rstrip",
         "rstrip": "lstrip", "startswith": "endswith", "endswith": "startswith"}  # fmt: skip
EMPTY = 1
"""The number of the change that empties the body."""
SAYING = r"(?i)\bprint$|\blog(?:ger|ging)?\b|\bwarn(?:ings?)?\b"
"""Calls that only say something: no result depends on them."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Changes:
    """The function as it is (number 0), with an empty body (1), and with one place changed (from 2 on)."""

    def __init__(self, spec):
        self.spec, self.module = spec, own_module(spec)
        tree = parsed(self.module)
        self.definition = defined(tree, spec)
        made = changed_codes(self.module, tree, spec) if self.definition else []
        self.live = functions_like(self.module, made[0][2]) if made else []
        fit = len(self.live[0].__code__.co_freevars) if self.live else 0
        self.kinds = [one for one in made if self.live and len(one[2].co_freevars) == fit]
        self.edges = {number for number, one in enumerate(self.kinds) if one[3] == "edge"}
        """The changes of what a comparison compares with: `<` for `<=`, another limit."""
        self.guards = self.edges | {number for number, one in enumerate(self.kinds) if one[3] == "guard"}
        """The changes of what decides about an error: these, another condition, no error, another one."""
        self.caches = project_caches()

    @contextlib.contextmanager
    def made(self, number):
        """Change the function that way inside the `with` block."""
        originals = [one.__code__ for one in self.live]
        for cache in self.caches:
            cache.cache_clear()
        for one in self.live:
            one.__code__ = self.kinds[number][2] if number else one.__code__
        try:
            yield
        finally:
            for one, code in zip(self.live, originals, strict=True):
                one.__code__ = code

    @contextlib.contextmanager
    def watched(self, hook):
        """Call the builtin `hook` with the parameters at the start of each call, inside the `with` block."""
        tree = parsed(self.module)
        twin = defined(tree, self.spec)
        twin.body.insert(0, ast.parse(f"{hook}(locals())").body[0])
        code = code_of(self.module, tree, twin)
        originals = [one.__code__ for one in self.live]
        for one in self.live:
            one.__code__ = code if len(code.co_freevars) == len(one.__code__.co_freevars) else one.__code__
        try:
            yield
        finally:
            for one, was in zip(self.live, originals, strict=True):
                one.__code__ = was


def project_caches():
    """The caches of the project's own functions: they would return results of the unchanged code."""
    caches = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]
    files = [getattr(getattr(one, "__wrapped__", None), "__code__", None) for one in caches]
    here = os.getcwd() + os.sep
    return [
        one
        for one, code in zip(caches, files, strict=True)
        if code is None or os.path.abspath(code.co_filename).startswith(here)
    ]


def own_module(spec):
    """The module under test. Raises `ImportError` if its name leads to another file."""
    module = importlib.import_module(spec["module"])
    if os.path.realpath(module.__file__) != os.path.realpath(spec["file"]):
        raise ImportError(f"`{spec['module']}` is another file here: {module.__file__}")
    return module


def functions_like(module, code):
    """Every function object that was made from the same lines: a decorator may hold one."""
    return [
        one
        for one in gc.get_objects()
        if isinstance(one, types.FunctionType)
        and one.__code__.co_filename == module.__file__
        and (one.__code__.co_name, one.__code__.co_firstlineno) == (code.co_name, code.co_firstlineno)
    ]


def parsed(module):
    """The syntax tree of a module's file."""
    with open(module.__file__, "rb") as file:
        return ast.parse(file.read())


def changed_codes(module, tree, spec):
    """A label, a line, the code of each change, and what it is a part of; the unchanged code comes first."""
    found = defined(tree, spec)
    made = [("", 0, code_of(module, tree, found), "")]
    empty = copy.deepcopy(tree)
    twin = defined(empty, spec)
    twin.body.insert(0, ast.Return(None))
    made.append(("empty body", 0, code_of(module, empty, twin), ""))
    spots = places(found)
    step = max(1, -(-len(spots) // spec["most"]))
    for line, index, how in spots[::step]:
        changed = copy.deepcopy(tree)
        twin = defined(changed, spec)
        part = list(ast.walk(ast.Module(twin.body, [])))[index]
        about = around(twin, part) if how == "constant" else part
        old, part_of = shown(about), role(twin, part, about, how)
        text = copy.copy(part) if how == "constant" and isinstance(part.value, str) else None
        change(part, how)
        new = shown(about).replace("not not ", "")
        said = f"{old} becomes {new}"
        said = f"{old} raises another error" if how == "error" else f"{old} is left out" if how == "left out" else said
        said = f"{shown(text)} becomes another text" if text else said
        made.append((f"line {line}: {said}", line, code_of(module, changed, twin), part_of))
    return [one for one in made if one[2] is not None]


def role(function, part, about, how):
    """What a change is a part of: an `edge`, a `guard` that decides about an error, or nothing of them."""
    if how == "edge" or (how == "constant" and isinstance(about, ast.Compare)):
        return "" if is_tolerance(part) else "edge"
    is_guard = how in ("error", "left out", "comparison", "sign") or isinstance(about, ast.BoolOp)
    return "guard" if is_guard and not only_chooses_values(function, part) else ""


def is_tolerance(part):
    """Whether a number is a fraction, such as what two results may differ by: nobody adds one to `1e-9`."""
    return isinstance(part, ast.Constant) and isinstance(part.value, float) and 0 < part.value < 1


def only_chooses_values(function, part):
    """Whether a part is in a condition on which only plain values depend, where nothing is raised."""
    if any(isinstance(one, ast.Raise) for one in ast.walk(function)):
        return False  # it may raise because of the value
    for one in [each for each in ast.walk(function) if isinstance(each, ast.If)]:
        if any(inner is part for inner in ast.walk(one.test)):
            return all(is_plain_assignment(each) for each in [*one.body, *one.orelse])
    return False


def is_plain_assignment(part):
    """Whether a statement assigns a value without a call that could raise an error."""
    is_assignment = isinstance(part, (ast.Assign, ast.AugAssign, ast.AnnAssign))
    return is_assignment and not any(isinstance(one, ast.Call) for one in ast.walk(part))


def around(function, part):
    """The expression that a constant is part of, if it is short: `0` alone says little."""
    outer = [one for one in ast.walk(function) if any(inner is part for inner in ast.iter_child_nodes(one))]
    is_small = bool(outer) and isinstance(outer[0], ast.expr) and "…" not in shown(outer[0])
    return outer[0] if is_small and not isinstance(outer[0], ast.JoinedStr) else part


def shown(part):
    """The code of a part in backticks, short."""
    text = ast.unparse(part)
    return (
        f"`{text}`"
        if len(text) <= 40 and "`" not in text and "\n" not in text
        else f"`{text[:30]}…`".replace("\n", " ")
    )


def defined(tree, spec):
    """The definition with this dotted name that begins at this line; None without one."""
    here = [tree]
    for name in spec["names"]:
        here = [one for outer in here for one in ast.walk(outer) if isinstance(one, DEFINITIONS) and one.name == name]
    mine = [one for one in here if first_line(one) == spec["first"]]
    return mine[0] if mine else None


def first_line(definition):
    """The first line of a definition, decorators included."""
    return min([definition.lineno, *(mark.lineno for mark in definition.decorator_list)])


def places(function):
    """Every place in the body that can be changed, in order of the text."""
    skipped = ignored_parts(function)
    found = []
    for index, part in enumerate(ast.walk(ast.Module(function.body, []))):
        if id(part) not in skipped:
            found += [(getattr(part, "lineno", 0), index, how) for how in ways(part)]
    return sorted(found)


def ignored_parts(function):
    """The parts that no result depends on: error messages, annotations, docstrings."""
    skipped = set()
    for part in ast.walk(function):
        if isinstance(part, (ast.Raise, ast.Assert)):
            skipped.update(id(inner) for inner in ast.walk(part) if inner is not part)
        if isinstance(part, ast.AnnAssign):
            skipped.update(id(inner) for inner in ast.walk(part.annotation))
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
            skipped.add(id(part.value))
    return skipped


def ways(part):
    """How a part can be changed."""
    if isinstance(part, (ast.BinOp, ast.AugAssign, ast.BoolOp)):
        return ["operator"] if type(part.op).__name__ in FLIPS else []
    if isinstance(part, ast.Compare):
        kind = type(part.ops[0]).__name__
        return ["comparison"] * (kind in FLIPS) + ["edge"] * (kind in EDGES)
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, (ast.Not, ast.USub)):
        return ["sign"]
    if isinstance(part, ast.Constant) and isinstance(part.value, (bool, int, float, str)):
        # A change inside a pattern or a template is noticed only by inputs that nobody would write.
        is_pattern = isinstance(part.value, str) and (set("%{}\\()[]*^$|") & set(part.value) or len(part.value) > 30)
        return [] if is_pattern else ["constant"]
    if isinstance(part, ast.Raise) and part.exc:
        return ["error"]
    if isinstance(part, ast.Return) and part.value and not is_none(part.value):
        return ["return"]
    if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
        return [] if re.search(SAYING, ast.unparse(part.value.func)) else ["left out"]
    if (isinstance(part, ast.Attribute) and part.attr in TWINS) or (isinstance(part, ast.Name) and part.id in TWINS):
        return ["name"]
    return []


def is_none(value):
    """Whether an expression is `None`."""
    return isinstance(value, ast.Constant) and value.value is None


def change(part, how):
    """Change the part in place."""
    if how == "operator":
        part.op = getattr(ast, FLIPS[type(part.op).__name__])()
    elif how == "comparison":
        part.ops[0] = getattr(ast, FLIPS[type(part.ops[0]).__name__])()
    elif how == "edge":
        part.ops[0] = getattr(ast, EDGES[type(part.ops[0]).__name__])()
    elif how == "sign":
        part.op = ast.UAdd() if isinstance(part.op, ast.USub) else ast.Not()
        part.operand = part.operand if isinstance(part.op, ast.UAdd) else ast.UnaryOp(ast.Not(), part.operand)
    elif how == "error":
        part.exc = ast.Call(ast.Name("NotImplementedError", ast.Load()), [], [])
    elif how in ("return", "left out"):
        part.value = ast.Constant(None)
    elif how == "name" and isinstance(part, ast.Attribute):
        part.attr = TWINS[part.attr]
    elif how == "name":
        part.id = TWINS[part.id]
    elif isinstance(part.value, bool):
        part.value = not part.value
    else:
        part.value = part.value + "?" if isinstance(part.value, str) else part.value + 1


def code_of(module, tree, function):
    """The compiled function of a changed tree; None if the tree does not compile."""
    ast.fix_missing_locations(tree)
    try:
        whole = compile(tree, module.__file__, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    waiting = [whole]
    while waiting:
        code = waiting.pop()
        if code.co_name == function.name and code.co_firstlineno == first_line(function):
            return code
        waiting += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
    return None
