"""Examples that the project gives of a function, in docstrings and documents: what it promises in its own words.

An example counts if the code does what it shows: a call after `>>>` with its output below, `f(1)  # 2` in a block of
Python, `assert f(1) == 2`, or `f(1) -> 2` on a line of its own. Variables of the example are written out.
"""

import ast
import doctest
import os
import re
import textwrap

from .calls import limited
from .exchange import SPEC

DOCUMENTS = (".md", ".rst", ".txt", "")
"""Endings of documents; a README may have none."""
FOLDERS = ("", "docs", "doc", "docs/source", "doc/source")
MOST_TEXT = 200_000
LONGEST = 90
"""Characters of a call, and of what it gives: more cannot be checked by eye."""
MOST, SECONDS = 40, 0.5
"""Examples of a function, and time for one of them."""
FENCE = re.compile(r"(?ms)^([ \t]*)(```|~~~)[ \t]*(\w*)[^\n]*\n(.*?)^[ \t]*\2[ \t]*$")
BLOCK = re.compile(
    r"(?m)^[ \t]*\.\. (?:code|code-block|sourcecode)::[ \t]*\w*[ \t]*\n(?:[ \t]*:[^\n]*\n)*"
    r"((?:[ \t]*\n|[ \t]+[^\n]*\n?)+)"
)
PYTHON = ("", "py", "python", "python3", "pycon", "pycon3", "ipython")
LEADS = r"(?i)^(?:=+>|-+>|==+|>>>|→|#|returns?:?|outputs?:?|prints?:?|gives:?|result:?)\s*"
"""How a comment begins that says what a line gives."""
INLINE = re.compile(
    r"^[ \t]*(?:[-*][ \t]+)?`{0,2}([\w.]+\(.*\))`{0,2}[ \t]*(?:->|=>|==+>?|→)[ \t]*`{0,2}(.+?)`{0,2}[ \t]*$"
)


class Example:
    """A call and what the project says that it gives: an expression, or the text that is shown."""

    def __init__(self, call, shown, where, printed=False):
        self.call, self.shown, self.where, self.printed = call, shown, where, printed


def examples(calls, module, name):
    """The examples of a function: the call, where it is shown, and the expected value, empty if the code differs."""
    found, tested = {}, in_tests()
    for where, text in documents(module):
        if name not in text or len(found) >= MOST:
            continue
        for one in read(text, where, module):
            is_tested = plain(one.call) in tested
            if names_it(one.call, name) and not is_tested and one.call not in found and len(one.call) <= LONGEST:
                found[one.call] = {"call": one.call, "expected": kept_promise(calls, one), "where": where}
    return list(found.values())


def in_tests():
    """What the project's tests say, also those that pytest does not collect."""
    found = []
    for folder, folders, files in os.walk("."):
        folders[:] = [one for one in folders if not one.startswith((".", "_remora"))]
        for name in files:
            path = os.path.join(folder, name)
            is_test = name.endswith(".py") and re.search(r"(?:^|[/_])tests?[/_.]", path.removeprefix("./"))
            if is_test and "_remora" not in name and os.path.getsize(path) <= MOST_TEXT:
                with open(path, encoding="utf-8", errors="replace") as file:
                    found.append(plain(file.read()))
    return "\n".join(found)


def plain(text):
    """Code without spaces and kinds of quotes."""
    return re.sub(r"\s", "", text).replace("'", '"')


def documents(module):
    """The docstrings of the module, then the documents of the project, each with where it is."""
    with open(module.__file__, encoding="utf-8", errors="replace") as file:
        source = file.read()
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [
        part.body[0].value.value for part in ast.walk(ast.parse(source)) if isinstance(part, owners) and has_text(part)
    ]
    # Some authors put the text of a module below its first import.
    texts += [part.value.value for part in ast.parse(source).body if is_text(part) and part.value.value not in texts]
    yield from (("docstring", text) for text in texts)
    for folder in FOLDERS:
        for path in sorted(os.listdir(folder or ".")) if os.path.isdir(folder or ".") else []:
            stem, ending = os.path.splitext(path)
            whole = os.path.join(folder, path)
            is_document = ending.lower() in DOCUMENTS and (folder or stem.lower().startswith(("readme", "usage")))
            if is_document and os.path.isfile(whole) and os.path.getsize(whole) <= MOST_TEXT:
                with open(whole, encoding="utf-8", errors="replace") as file:
                    yield whole, file.read()


def is_text(part):
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)


def has_text(part):
    return bool(part.body) and is_text(part.body[0])


def read(text, where, module):
    """The examples in a text, in order."""
    yield from prompted(text, where, module)
    blocks = [found[4] for found in FENCE.finditer(text) if found[3].lower() in PYTHON]
    blocks += [found[1] for found in BLOCK.finditer(text)]
    for block in blocks:
        if ">>>" not in block:
            yield from commented(textwrap.dedent(block), where, module)
    for part in re.split(r"\n[ \t]*\n", BLOCK.sub("\n\n", FENCE.sub("\n\n", text))):
        # Some documents hold Python as plain text.
        if f"{SPEC['name']}(" in part and "#" in part and ">>>" not in part:
            yield from commented(textwrap.dedent(part.strip("\n")), where, module)
    for line in text.split("\n"):
        if found := INLINE.match(line):
            yield from made(found[1], found[2], where, {}, module)


def prompted(text, where, module):
    """The examples after `>>>`, with their output below."""
    plain = re.sub(r"(?m)^[ \t]*(?:```|~~~)[^\n]*$", "", text)
    known = {}
    for part in re.split(r"\n[ \t]*\n(?![ \t]*>>>)", plain) if broken(plain) else [plain]:
        try:
            parsed = doctest.DocTestParser().get_examples(part)
        except ValueError:
            continue
        for one in parsed:
            if one.exc_msg:
                yield from raising(one, where, known, module)
            else:
                yield from made(one.source.strip(), one.want.strip("\n"), where, known, module)


def broken(text):
    """Whether doctest cannot read a text as a whole."""
    try:
        doctest.DocTestParser().get_examples(text)
    except ValueError:
        return True
    return False


def raising(one, where, known, module):
    """An example that shows an error."""
    kind = one.exc_msg.partition(":")[0].strip().split(".")[-1]
    for call in whole_calls(one.source.strip(), known, module):
        yield Example(call, f"raises {kind}", where)


def commented(block, where, module):
    """The examples of a block of Python whose comments say what a line gives; and its assertions."""
    try:
        statements = ast.parse(block).body
    except (SyntaxError, ValueError):
        return
    lines, known = block.split("\n"), {}
    ends = [one.lineno for one in statements[1:]] + [len(lines) + 1]
    for one, following in zip(statements, ends, strict=True):
        after = [lines[one.end_lineno - 1].encode()[one.end_col_offset :].decode(errors="replace")]
        after += lines[one.end_lineno : following - 1]
        comments = [line.strip().lstrip("#") for line in after if line.strip().startswith("#")]
        if isinstance(one, ast.Assert):
            if (
                isinstance(one.test, ast.Compare)
                and len(one.test.ops) == 1
                and isinstance(one.test.ops[0], (ast.Eq, ast.Is))
            ):
                yield from made(ast.unparse(one.test.left), ast.unparse(one.test.comparators[0]), where, known, module)
            continue
        said = re.sub(LEADS, "", comments[0].strip()) if comments else ""
        yield from made(ast.unparse(one), said, where, known, module)


def made(source, shown, where, known, module):
    """An example of one statement, unless it only sets a variable, which later ones may use."""
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError):
        return
    if len(statements) != 1:
        return
    one = statements[0]
    if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
        known[one.targets[0].id] = Plain(known, module).visit(one.value)
        return
    if isinstance(one, (ast.AugAssign, ast.Delete, ast.For, ast.With)):
        known.clear()
    printed = is_print(one)
    for call in whole_calls(source, known, module):
        if shown:
            yield Example(call, shown, where, printed)


def is_print(one):
    """Whether a statement prints one value."""
    call = one.value if isinstance(one, ast.Expr) else None
    named = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"
    return named and len(call.args) == 1 and not call.keywords


def whole_calls(source, known, module):
    """The expression of a statement with names of this module, and variables written out; none if it is no call."""
    try:
        one = ast.parse(source).body[0]
    except (SyntaxError, ValueError, IndexError):
        return
    if (isinstance(one, ast.Expr) and not ast.unparse(one).startswith("print(")) or is_print(one):
        value = one.value.args[0] if is_print(one) else one.value
        yield ast.unparse(Plain(known, module).visit(ast.parse(ast.unparse(value), mode="eval")))


class Plain(ast.NodeTransformer):
    """Writes `module.name` as `name`, and a variable as what it was set to."""

    def __init__(self, known, module):
        self.known, self.module = known, module

    def visit_Name(self, part):
        return self.known.get(part.id, part) if not hasattr(self.module, part.id) else part

    def visit_Attribute(self, part):
        inner = part.value
        text = ast.unparse(inner)
        is_module = text not in self.known and text.split(".")[-1] in [*SPEC["module"].split("."), "self"]
        if is_module and not hasattr(self.module, text) and hasattr(self.module, part.attr):
            return ast.Name(part.attr, ast.Load())
        return self.generic_visit(part)


def names_it(call, name):
    """Whether an expression calls the function."""
    tree = ast.parse(call, mode="eval")
    found = [ast.unparse(part.func).split(".")[-1] for part in ast.walk(tree) if isinstance(part, ast.Call)]
    return name in found or (name == "__init__" and SPEC["names"][-2:-1] == found[-1:])


def kept_promise(calls, one):
    """What the example shows as an expression that a test can hold; empty if the code does not do it."""
    try:
        with limited(SECONDS):
            value = calls.call(one.call)[0]
    except Exception as error:  # what the code raises may be what is shown
        return one.shown if one.shown == f"raises {type(error).__name__}" else ""
    text = calls.written(value, LONGEST)[0]
    if text is None or one.shown.startswith("raises "):
        return ""
    shown = one.shown if one.printed else one.shown.strip()
    if isinstance(value, str) and value in (shown, "\n".join(line.strip() for line in shown.split("\n"))):
        return text
    try:
        wanted = ast.literal_eval(shown)
    except (SyntaxError, ValueError, TypeError):
        return text if " ".join(shown.split()) == " ".join(repr(value).split()) else ""
    return text if wanted == value and type(wanted) is type(value) else ""
