"""The code around a script inside its sandbox: every value is checked in there before it leaves.

Monty copies what a script returns, or passes to a host function, into our process before we can check it: 30 MB of text
took 60 MB here (1.4.0, 64 MB limit). So our code runs before the script, with a check that runs inside. Every value
that leaves passes it: a wrapper around each host function checks the arguments, and the last expression of the script
is wrapped in the check.

Internal names have a random part, so that a script can neither bypass the check nor replace it. Functions that could
reveal names (`locals`, `eval`, `exec`) are removed. The check binds the builtins it needs, so redefining them has no
effect.

Walking a value takes about half a microsecond per part inside. So a value with many parts is first written as JSON by
Monty's own `dumps`, which is ten times faster: the length of the text bounds the size of the value. What the text does
not show (types of keys, size of integers, depth) is checked on our side, where the value is known to be small. The text
counts against the script's memory limit meanwhile.
"""

from __future__ import annotations

import ast
import secrets
from functools import lru_cache

from remora.scripts._values import CONTAINER, ENTRY, MAX_DEPTH, MAX_INT, MAX_OUT, VALUE

REFUSED = "not plain: "
"""The prefix of an error that the check raised about a result."""
MANY = 256
"""Number of parts above which a value is measured as JSON text before it is walked."""
FORBIDDEN = ("locals", "eval", "exec")

_CHECK = """
def {check}_make(type=type, len=len, str=str, int=int, float=float, bool=bool, list=list, tuple=tuple, dict=dict,
                 enumerate=enumerate, TypeError=TypeError, ValueError=ValueError, RecursionError=RecursionError,
                 none=type(None)):
    from json import dumps

    def is_light(value):
        try:
            text = dumps(value)
        except (TypeError, ValueError, RecursionError):
            return False
        opened = text.count("[") + text.count("{{")
        parts = opened + text.count(",") + 1
        return len(text) + {container} * opened + ({value} + {entry}) * parts <= {max_out}

    def is_plain(value):
        room = {max_out}
        todo = [[value]]
        depth = 0
        parts = 0
        while todo:
            depth += 1
            if depth > {max_depth} + 1:
                return False
            if parts > {many}:
                if is_light(value):
                    return True
                parts = -{max_out}
            deeper = []
            for part in todo:
                for item in part:
                    kind = type(item)
                    if kind is str:
                        room -= {value} + len(item)
                    elif kind is int:
                        if not -{max_int} <= item < {max_int}:
                            return False
                        room -= {value}
                    elif kind is list or kind is tuple:
                        room -= {around} + {entry} * len(item)
                        parts += len(item)
                        deeper.append(item)
                    elif kind is dict:
                        room -= {around} + {entry} * len(item)
                        for key in item:
                            if type(key) is not str:
                                return False
                            room -= len(key)
                        parts += len(item)
                        deeper.append(item.values())
                    elif kind is bool or kind is float or kind is none:
                        room -= {value}
                    else:
                        return False
                    if room < 0:
                        return False
            todo = deeper
        return True

    def why_not(value):
        room = {max_out} - {value}
        todo = [("$", value, 1)]
        while todo:
            place, part, depth = todo.pop()
            kind = type(part)
            if kind is str:
                room -= len(part)
            elif kind is int and not -{max_int} <= part < {max_int}:
                return f"{{place}}: an integer of more than 64 bits"
            elif kind is list or kind is tuple or kind is dict:
                room -= {container} + ({value} + {entry}) * len(part)
                if depth > {max_depth}:
                    return f"{{place}}: nested deeper than {max_depth}"
                for key, item in part.items() if kind is dict else enumerate(part):
                    if kind is dict and type(key) is not str:
                        return f"{{place}}: key {{str(key)[:40]}} is a `{{str(type(key))[8:-2]}}`: expected text"
                    step = f".{{key}}" if kind is dict else f"[{{key}}]"
                    todo.append(((place + step)[:120], item, depth + 1))
                    if room < 0:
                        break
            elif kind is not int and kind is not bool and kind is not float and kind is not none:
                return f"{{place}}: a `{{str(kind)[8:-2]}}` is not a JSON value"
            if room < 0:
                break
        return f"{{place}}: larger than {max_mb} MB in all"

    def check(value, begin=""):
        if not is_plain(value):
            raise TypeError(begin + why_not(value))
        return value
    return check
{check} = {check}_make()
{gone} = None
"""

_CALL = """
def {check}_call(check={check}):
    async def {name}(*args, **kwargs):
        check([args, kwargs])
        return await {hidden}(*args, **kwargs)
    return {name}
{name} = {check}_call()
"""


class Surroundings:
    """The secret names in the sandboxes of one pool."""

    def __init__(self) -> None:
        self._secret = f"_{secrets.token_hex(12)}"
        self._around = lru_cache(maxsize=64)(self._wrap_result)
        self._before = lru_cache(maxsize=64)(self._callers)

    def around(self, source: str, names: tuple[str, ...]) -> tuple[str, int]:
        """The script with the code around it, and the number of lines before it."""
        before = self._before(names)
        return before + self._around(source), before.count("\n")

    def hidden(self, name: str) -> str:
        """The secret name of the host function `name`, which only its wrapper uses."""
        return f"{self._secret}_{name}"

    def _callers(self, names: tuple[str, ...]) -> str:
        """The code before a script: the check, and a checking wrapper for every host function in `names`."""
        check = _CHECK.format(
            check=self._secret,
            gone=" = ".join(FORBIDDEN),
            value=VALUE,
            container=CONTAINER,
            around=CONTAINER + VALUE,
            entry=ENTRY,
            max_out=MAX_OUT,
            max_mb=MAX_OUT // 1024 // 1024,
            max_depth=MAX_DEPTH,
            max_int=MAX_INT,
            many=MANY,
        )
        callers = (_CALL.format(check=self._secret, name=name, hidden=self.hidden(name)) for name in names)
        return check + "".join(callers)

    def _wrap_result(self, source: str) -> str:
        """The script, with its last expression wrapped in the check. No line moves."""
        last = _last_expression(source)
        if last is None:
            return source
        lines = source.encode().split(b"\n")
        _insert(lines, last.end_lineno or 1, last.end_col_offset or 0, f'), "{REFUSED}")'.encode())
        _insert(lines, last.lineno, last.col_offset, f"{self._secret}((".encode())
        return b"\n".join(lines).decode()


def _insert(lines: list[bytes], line: int, column: int, text: bytes) -> None:
    lines[line - 1] = lines[line - 1][:column] + text + lines[line - 1][column:]


def _last_expression(source: str) -> ast.Expr | None:
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # Monty reports it as an error of the script.
    return body[-1] if body and isinstance(body[-1], ast.Expr) else None
