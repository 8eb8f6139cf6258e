"""Imports that look unused and are there on purpose, by what stands in their own file."""

import re

from remora.scripts.shared.places import is_in_tests

STANDARD = """
    abc argparse array ast asyncio base64 binascii bisect calendar cProfile cmath codecs collections configparser
    contextlib copy csv ctypes dataclasses datetime decimal difflib dis email enum errno fnmatch fractions functools
    gc getpass glob gzip hashlib heapq hmac html http importlib inspect io ipaddress itertools json keyword linecache
    locale logging math mimetypes numbers operator os pathlib pdb pickle pkgutil platform pprint queue random re
    secrets select shlex shutil signal socket sqlite3 ssl stat statistics string struct subprocess sys tarfile
    tempfile textwrap threading time timeit token tokenize traceback types typing unicodedata unittest urllib uuid
    warnings weakref xml zipfile zlib
"""
"""Modules of the standard library: to import one does nothing else, and cannot fail."""
EFFECTS = (
    r"(?:readline|rlcompleter|setuptools|Cython|_strptime|antigravity|encodings|faulthandler|dotenv|gevent"
    r"|mpl_toolkits|seaborn|win32\w*|pythoncom|pkg_resources|pytest_\w+)\b"
)
"""Modules whose import does something that others see."""
BY_NAME = r"\b(?:globals|locals|vars|eval|exec)\(|\b(?:yacc\.yacc|lex\.lex)\("
"""Calls that look up the names of a module: what is imported there may be used without being named."""
SAID = (
    r"(?i)export|compat|backward|public|\bapi\b|convenien|side.?effect|regist|keep|need|used (?:by|in)|do not|don't"
    r"|noinspection|noqa|\bpath\b"
)
"""Words of a comment that say why an import is there."""
CODE = r"\s*(?:async\s+def|def|class|for|while|with|return|raise|assert|[\w.\[\]]+\s*(?:[-+|]?=|\(|\[))"
"""Lines that do more than import."""


def facts_of(whole):
    """What is the same for all imports of a file."""
    text = "".join(whole)
    heads = "\n".join(part.partition("(")[2].partition(")")[0] for part in text.split("def ")[1:])
    notes = "\n".join(line.partition("# type:")[2] for line in whole if "# type:" in line)
    said = "".join(line for line in whole if re.search(r"[\"'`#]|^\s*(?:>>>|\.\.\.)", line))
    # Line by line: a search through all of a large file goes beyond the interpreter's limit of backtracking.
    looks_up = any(re.search(BY_NAME, line) for line in whole if "(" in line)
    return {"said": said, "heads": heads, "notes": notes, "looks_up": looks_up, "is_facade": is_facade(whole)}


def is_on_purpose(file, whole, error, name, source, facts):
    """Whether an unused import is likely to be there on purpose."""
    row, module = error["location"]["row"], file.rpartition("/")[2]
    if module == "conftest.py" or "compat" in module or re.search(r"import\b.*#", whole[row - 1]):
        return True  # fixtures; a module that exists to be imported from; a comment that says what the import is for
    is_package = module == "__init__.py" and not is_leftover(whole, row, name)
    if error["code"] == "F401" and (is_package or "find_spec" in error["message"]):
        return True  # a package's names; a `try` that asks whether a module is there
    if facts["looks_up"] or has_word(facts["heads"], name):
        return True  # something looks its names up; a fixture that tests take by its name
    if error["fix"] and any((edit["content"] or "").strip() == "pass" for edit in error["fix"]["edits"]):
        return True  # all that a block does: its effect, or that it fails, is what counts
    if is_alternative(whole, row):
        return True  # one of two ways to get a name, for another Python or another installation
    if error["code"] == "F811":
        return is_quoted(facts["said"], name)
    # Another name of the statement imports setuptools all the same, and its names do nothing by themselves.
    spare = source.startswith("setuptools.") and keeps_another(error) and not is_announced(whole, row)
    effect = is_for_effect(file, whole, row, name, source) and not spare
    return effect or is_quoted(facts["said"], name) or facts["is_facade"]


def keeps_another(error):
    """Whether the fix of an unused import leaves other names of its statement."""
    return bool(error["fix"]) and any("import" in (edit["content"] or "") for edit in error["fix"]["edits"])


def is_leftover(whole, row, name):
    """Whether a package with code imports a module of the standard library that its `__all__` does not name."""
    text = "".join(whole)
    listed = re.search(r"(?ms)^__all__\s*=\s*[\[(].*?[\])]", text)
    is_alone = re.fullmatch(r"import (\w+)", whole[row - 1].rstrip()) and name in STANDARD.split()
    return bool(is_alone and listed and re.search(r"(?m)^(?:def|class) ", text)) and not has_word(listed.group(0), name)


def is_for_effect(file, whole, row, name, source):
    """Whether the import itself does something: it registers, it may fail, it gives pytest more tests."""
    if re.match(EFFECTS, source) or is_announced(whole, row) or is_collected(file, name, source):
        return True
    if is_top_level(whole, row):
        return False
    # Inside a function or class, an import of other code is there for its effect, or to see that it works.
    in_class = bool(re.match(r"\s*class\b", (headers_around(whole, row) or [""])[0]))
    return in_class or source.split(".")[0] not in STANDARD.split()


def is_collected(file, name, source):
    """Whether an import into a file of tests is a class or function that the runner then finds there."""
    return is_in_tests(file) and bool(re.match(r"[Tt]est", name)) and not source.startswith("unittest")


def is_announced(whole, row):
    """Whether the comment right above an import says what it is for."""
    row = import_row(whole, row) - 1
    while row and whole[row - 1].lstrip().startswith("#"):
        if re.search(SAID, whole[row - 1]):
            return True
        row -= 1
    return False


def is_quoted(text, name):
    """Whether a string or comment in the file uses what is imported: its name, in backquotes, in an example or code."""
    if not name:
        return False
    word = re.escape(name)
    said = rf"(?m)[\"']{word}[\"']|`[~!\w.]*\b{word}(?:\(\))?`|^\s*(?:>>>|\.\.\.)\s.*\b{word}\b|#.*\b{word}[.(]"
    return bool(re.search(said, text))


def is_facade(whole):
    """Whether a file only imports names from elsewhere: they are for those who import it."""
    given = [line for line in whole if re.match(r"\s*from\s", line)]
    return len(given) > 1 and not any(re.match(CODE, line) for line in whole)


def has_word(text, name):
    """Whether a text has a name."""
    return bool(name) and bool(re.search(rf"\b{re.escape(name)}\b", text))


def is_alternative(whole, row):
    """Whether an import is part of a `try`, a `with`, or a branch for one Python: there it may fail or be replaced."""
    around = headers_around(whole, row)
    chosen = r"\s*(?:try|except|with|async\s+with|elif|else)\b|\s*if\b.*(?:version|\bPY|platform|os\.name)"
    return bool(around) and bool(re.match(chosen, around[0]))


def is_top_level(whole, row):
    """Whether an import runs with its module: no `def` or `class` is around it."""
    return not any(re.match(r"\s*(?:async\s+def|def|class)\b", line) for line in headers_around(whole, row))


def import_row(whole, row):
    """The first row of the import around a row."""
    while row > 1 and not re.match(r"\s*(?:from|import)\b", whole[row - 1]):
        row -= 1
    return row


def headers_around(whole, row):
    """The lines above an import with less indentation each, the nearest first."""
    row = import_row(whole, row)
    found, depth = [], len(whole[row - 1]) - len(whole[row - 1].lstrip())
    for line in whole[: row - 1][::-1]:
        own = len(line) - len(line.lstrip())
        if line.strip() and own < depth and not line.lstrip().startswith(("#", ")")):
            found.append(line)
            depth = own
    return found
