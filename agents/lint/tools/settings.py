"""Which linter the project uses, with which settings, and what that means for ruff.

A project's own linter decides what is an error. Without ruff settings, ruff's own defaults would be somebody else's
taste, so only the rules that pyflakes and pycodestyle share with every linter are on.
"""

import re
import tomllib

from remora.scripts import external


@external
async def read_file(path: str) -> str: ...


CLASSIC = ["E4", "E7", "E9", "F"]
"""Errors that nearly every linter reports: pyflakes, and the part of pycodestyle that is not about layout."""
PROVEN = ["W605", "B006", "B015"]
"""Mistakes that count where no rules are selected: an escape that Python will refuse, and those of `mistakes.py`."""
TASTE = ["E401", "E402", "E701", "E702", "E703", "E712", "E713", "E714", "E721", "E731", "E741", "F541"]
"""Rules of these about layout, order, names and comparisons: off where no linter is set up, nobody asked for them."""
FLAKE8 = [*CLASSIC, "E501", "E502", "W605"]
"""Of flake8, without layout: where it runs there is none to mend, and elsewhere nobody wants changes of white space."""
FLAKE8_OFF = ["E121", "E123", "E126", "E226", "E24", "E704", "W503", "W504"]
"""What flake8 ignores unless its settings name `ignore`."""
PYLINT = {
    "unused-import": "F401", "unused-variable": "F841", "singleton-comparison": "E711", "bare-except": "E722",
    "multiple-imports": "E401", "wrong-import-position": "E402", "multiple-statements": "E701",
    "unnecessary-lambda-assignment": "E731", "unidiomatic-typecheck": "E721", "undefined-variable": "F821",
    "wildcard-import": "F403", "function-redefined": "F811", "reimported": "F811", "line-too-long": "E501",
    "f-string-without-interpolation": "F541", "self-assigning-variable": "PLW0127",
}  # fmt: skip
"""pylint's names for errors that ruff reports by a code."""
OTHER_TOOLS = r"#\s*(?:pylint:\s*disable|pyright:\s*ignore|nosec)"
"""Comments by which a person has told another tool that a line is meant to be so."""
FOUND = {}
"""The settings by folder: several runs of ruff in one call need them once."""


async def find_settings(file):
    """The flags for ruff, codes that are off, and the words for a reader, from the settings nearest to a file."""
    folder = file.rpartition("/")[0]
    if folder not in FOUND:
        FOUND[folder] = await read_settings(file)
    return FOUND[folder]


async def read_settings(file):
    parts = file.split("/")[:-1]
    places = ["/".join(parts[:depth]) for depth in range(len(parts), -1, -1)]
    version = []
    if not any([await has_version(place) for place in places]):
        found = [await old_version(place) for place in places]
        version = [f"--target-version={name}" for name in found if name][:1]
    for place in places:
        for name in (".ruff.toml", "ruff.toml", "pyproject.toml"):
            table = await read_ruff(join(place, name))
            if table is not None:
                return {**from_ruff(join(place, name), table, version), "place": place}
    for place in places:
        for name in (".flake8", "setup.cfg", "tox.ini"):
            found = read_ini(await read_text(join(place, name)))
            if found.get("flake8") or (name == ".flake8" and found):
                return {**from_flake8(join(place, name), found.get("flake8", {}), version, place), "place": place}
    for place in places:
        found = await from_others(place, version)
        if found:
            return {**found, "place": place}
    return plain(version, "no linter settings: errors that every linter reports", off=TASTE, linter=False)


def join(folder, name):
    return f"{folder}/{name}" if folder else name


async def read_text(path):
    """A file's text; empty if it is not there."""
    try:
        return await read_file(path)
    except (FileNotFoundError, PermissionError, ValueError, OSError):
        return ""


async def read_toml(path):
    try:
        return tomllib.loads(await read_text(path))
    except ValueError:
        return {}


async def read_ruff(path):
    """The settings for ruff in a file; None if it has none or does not exist."""
    text = await read_text(path)
    if not text:
        return None
    try:
        found = tomllib.loads(text)
    except ValueError:
        return {} if not path.endswith("pyproject.toml") else None
    return found.get("tool", {}).get("ruff") if path.endswith("pyproject.toml") else found


def plain(version, words, select=CLASSIC, off=(), only=(), length=0, files=(), root="", linter=True):
    more = [code for code in PROVEN if not code.startswith(tuple(select))]
    flags = [f"--select={','.join([*select, *more])}", *version, *([f"--line-length={length}"] if length else [])]
    return {
        "flags": flags, "off": list(off), "only": list(only), "files": list(files),
        "words": words, "root": root, "linter": linter, "chosen": False, "more": more,
    }  # fmt: skip


def from_ruff(path, table, version):
    """The project's own ruff settings. If they select no rules, those that every version of ruff has on.

    The rules of the installed version stay on, so that a `noqa` for one of them is not reported as needless.
    """
    lint = table.get("lint", {})
    own = {key: lint.get(key, table.get(key)) for key in ("select", "extend-select", "ignore", "extend-ignore")}
    version = [] if "target-version" in table else version
    words = [f"{key} {' '.join(str(code) for code in own[key])}"[:80] for key in own if own[key]]
    words += [f"line-length {table['line-length']}"] if "line-length" in table else []
    told = f"{', '.join(words) or 'default rules'} ({path})"
    off = [str(code) for key in ("ignore", "extend-ignore") for code in own[key] or []]
    if own["select"] or "extend" in table:
        empty = {"off": [], "only": [], "files": [], "root": "", "linter": True, "chosen": True, "more": []}
        return {"flags": version, "words": told, "turned_off": off, **empty}
    more = [str(code) for code in own["extend-select"] or [] if re.fullmatch(r"[A-Z]{1,10}[0-9]{0,5}", str(code))]
    found = plain(version, told, [*CLASSIC, *more], off)
    own = {"only": [*CLASSIC, *more, *PROVEN], "turned_off": off}
    return {**found, **own, "flags": [*version, *[f"--extend-select={code}" for code in found["more"]]]}


def from_flake8(path, table, version, root):
    """What flake8 would report, as far as ruff knows the rules."""
    ignore = codes(table.get("ignore", "")) if "ignore" in table else FLAKE8_OFF
    off = [*ignore, *codes(table.get("extend-ignore", table.get("extend_ignore", "")))]
    only = codes(table.get("select", ""))
    only = [*only, *codes(table.get("extend-select", table.get("extend_select", "")))] if only else []
    length = table.get("max-line-length", table.get("max_line_length", "79")).split("#")[0].strip()
    files = [
        (pattern.strip(), codes(listed))
        for pattern, listed in re.findall(r"([^\s:,][^:\n]*):([^\n:]+)", table.get("per-file-ignores", ""))
    ]
    excluded = re.split(r"[\s,]+", table.get("exclude", "") + " " + table.get("extend-exclude", ""))
    files += [(pattern.strip("/"), ["E", "W", "F"]) for pattern in excluded if pattern]
    number = int(length) if re.fullmatch(r"\d{1,3}", length) else 79
    told = f"flake8, line length {number}" + (f", ignore {' '.join(off)}"[:60] if off != FLAKE8_OFF else "")
    return plain(version, f"{told} ({path})", FLAKE8, off, only, number, files, root)


async def from_others(place, version):
    """Settings for pylint, pycodestyle or black: what is off, and the line length."""
    toml = (await read_toml(join(place, "pyproject.toml"))).get("tool", {})
    pylint = toml.get("pylint") or None
    off, name = [], ""
    if pylint:
        name, listed = "pylint (pyproject.toml)", [pylint.get("disable", [])]
        listed += [part.get("disable", []) for part in pylint.values() if type(part) is dict]
        off = [one for part in listed for one in (part if type(part) is list else str(part).split(","))]
    for file in (".pylintrc", "pylintrc"):
        found = read_ini(await read_text(join(place, file)))
        if found and not name:
            name = f"pylint ({file})"
            off = [one for part in found.values() for one in re.split(r"[\s,]+", part.get("disable", ""))]
    for file in ("setup.cfg", "tox.ini"):
        found = read_ini(await read_text(join(place, file)))
        table = found.get("pycodestyle") or found.get("pep8")
        if table and not name:
            return from_flake8(join(place, file), table, version, place)
    if name:
        return plain(version, name, CLASSIC, [*TASTE, *[PYLINT[one.strip()] for one in off if one.strip() in PYLINT]])
    if "black" in toml:
        told = f"black, line length {toml['black'].get('line-length', 88)} (pyproject.toml)"
        return plain(version, told, off=TASTE, linter=False)
    return None


async def has_version(place):
    """Whether ruff itself finds the oldest Python that the project supports."""
    return bool((await read_toml(join(place, "pyproject.toml"))).get("project", {}).get("requires-python"))


async def old_version(place):
    """The oldest Python that `setup.cfg`, `setup.py` or poetry's settings allow, as ruff names it; empty if unknown."""
    cfg = read_ini(await read_text(join(place, "setup.cfg")))
    said = cfg.get("options", {}).get("python_requires", "")
    if not said:
        found = re.findall(r"python_requires\s*=\s*[\"']([^\"']+)", await read_text(join(place, "setup.py")))
        said = found[0] if found else ""
    if not said:
        poetry = (await read_toml(join(place, "pyproject.toml"))).get("tool", {}).get("poetry", {})
        said = str(poetry.get("dependencies", {}).get("python", ""))
    found = re.findall(r"(?:>=|~=|\^|==|>)\s*(\d)\.(\d+)", said)
    if not found:
        return ""
    return f"py3{max(7, int(found[0][1]))}" if found[0][0] == "3" else "py37"


def read_ini(text):
    """The sections of an INI file: for each, its values by key. Continued lines are joined by a newline."""
    sections, section, key = {}, None, ""
    for line in re.split(r"\r\n|\r|\n", text):
        head = re.fullmatch(r"\[([^\]]+)\]\s*", line)
        item = re.match(r"([A-Za-z][\w.-]*)\s*[=:]\s*(.*)$", line)
        if head:
            section, key = sections.setdefault(head.group(1).strip().lower(), {}), ""
        elif section is None or line.lstrip().startswith(("#", ";")):
            continue
        elif item and not line[:1].isspace():
            key = item.group(1).strip().lower()
            section[key] = item.group(2).strip()
        elif key and line.strip():
            section[key] = section[key] + "\n" + line.strip()
    return sections


def codes(text):
    """The rule codes in a setting, without comments."""
    listed = re.sub(r"#[^\n]*", " ", text)
    return [word for word in re.split(r"[\s,]+", listed) if re.fullmatch(r"[A-Z]{1,5}[0-9]{0,4}", word)]


def without_linter(settings):
    """The settings of a project that runs no linter, with what these settings turn off."""
    select = f"--select={','.join([*CLASSIC, *PROVEN])}"
    return {
        **settings,
        **({"flags": [select, *settings["flags"]], "more": PROVEN} if "turned_off" in settings else {}),
        "only": [*CLASSIC, *PROVEN],
        "off": [*settings["off"], *settings.get("turned_off", []), *TASTE],
        "linter": False,
        "chosen": False,
    }


def is_off(code, file, settings):
    """Whether the project's settings turn a rule off for a file."""
    if settings["only"] and not is_among(code, settings["only"]):
        return True
    if is_among(code, settings["off"]):
        return True
    own = file[len(settings["root"]) :].lstrip("/")
    return any(fits(pattern, own) and is_among(code, listed) for pattern, listed in settings["files"] if listed)


def is_among(code, listed):
    """Whether a rule is one of these, or of a group of them: `F` is pyflakes, and not FURB, FLY or FA."""
    kind = re.findall(r"^[A-Z]*", code)[0]
    return any(code.startswith(one) and (one == "PL" or re.findall(r"^[A-Z]*", one)[0] == kind) for one in listed)


def fits(pattern, path):
    """Whether a pattern of flake8 names this file, a folder above it, or its name."""
    wanted = pattern.removeprefix("./").removeprefix("*/")
    expression = re.escape(wanted).replace(r"\*", ".*").replace(r"\?", ".")
    parts = path.split("/")
    names = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)] + parts
    return any(re.fullmatch(expression, name) for name in names)
