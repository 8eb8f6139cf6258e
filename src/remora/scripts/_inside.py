"""What stands around a script inside its sandbox: nothing leaves before it was looked at in there.

Monty copies whatever a script returns or hands to a host function into our process, each shared part again: a list of
a thousand times the same text, small inside, took gigabytes here (1.4.0). So a first feed defines a check that runs in
the sandbox, under its limits, and every way out goes through it: each host function is called by a function of its own
that checks the arguments, and the last expression of the script is handed to the check.

The names in between carry a random part, so that a script can neither call a host function past the check nor replace
it; what could tell a script its own names (`locals`, `eval`, `exec`) is taken away. The check keeps the builtins it
needs as its own, so that redefining them changes nothing.
"""

from __future__ import annotations

import ast
import secrets
from functools import lru_cache

from remora.scripts._values import CONTAINER, ENTRY, MAX_DEPTH, MAX_INT, MAX_OUT, VALUE

SCRIPT_FEED = "<python-input-1>"
"""How Monty names the script itself: the second feed of its session."""
REFUSED = "not plain: "
"""How an error begins that the check raised about a result."""
FORBIDDEN = ("locals", "eval", "exec")

_CHECK = """
def {check}_make(type=type, len=len, str=str, int=int, float=float, bool=bool, list=list, tuple=tuple, dict=dict,
                 enumerate=enumerate, TypeError=TypeError):
    def check(value, begin=""):
        room = {max_out}
        todo = [("$", value, 1)]
        while todo:
            place, part, depth = todo.pop()
            kind = type(part)
            room -= {value}
            if kind is str:
                room -= len(part)
            elif kind is int:
                if not -{max_int} <= part < {max_int}:
                    raise TypeError(f"{{begin}}{{place}}: an integer of more than 64 bits")
            elif kind is list or kind is tuple or kind is dict:
                room -= {container} + {entry} * len(part)
                if depth > {max_depth}:
                    raise TypeError(f"{{begin}}{{place}}: nested deeper than {max_depth}")
                if room < 0:
                    raise TypeError(f"{{begin}}{{place}}: larger than {max_mb} MB in all")
                if kind is dict:
                    for key, item in part.items():
                        if type(key) is not str:
                            kind = str(type(key))[8:-2]
                            raise TypeError(f"{{begin}}{{place}}: key {{str(key)[:40]}} is a `{{kind}}`: expected text")
                        room -= len(key)
                        todo.append((f"{{place}}.{{key[:80]}}"[:120], item, depth + 1))
                else:
                    for number, item in enumerate(part):
                        todo.append((f"{{place}}[{{number}}]"[:120], item, depth + 1))
            elif not (part is None or kind is bool or kind is float):
                raise TypeError(f"{{begin}}{{place}}: a `{{str(kind)[8:-2]}}` is not a JSON value")
            if room < 0:
                raise TypeError(f"{{begin}}{{place}}: larger than {max_mb} MB in all")
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
    """The names of one pool's sandboxes, which no script can know."""

    def __init__(self) -> None:
        self._secret = f"_{secrets.token_hex(12)}"
        self.around = lru_cache(maxsize=64)(self._around)
        self.before = lru_cache(maxsize=64)(self._before)

    def hidden(self, name: str) -> str:
        """What the host function `name` is called where only its own caller looks."""
        return f"{self._secret}_{name}"

    def _before(self, names: tuple[str, ...]) -> str:
        """The first feed: the check, and a checking caller for every host function in `names`."""
        check = _CHECK.format(
            check=self._secret,
            gone=" = ".join(FORBIDDEN),
            value=VALUE,
            container=CONTAINER,
            entry=ENTRY,
            max_out=MAX_OUT,
            max_mb=MAX_OUT // 1024 // 1024,
            max_depth=MAX_DEPTH,
            max_int=MAX_INT,
        )
        callers = (_CALL.format(check=self._secret, name=name, hidden=self.hidden(name)) for name in names)
        return check + "".join(callers)

    def _around(self, source: str) -> str:
        """The second feed: the script, its last expression handed to the check. No line moves."""
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
        return None  # Monty will say what is wrong with it, as the script's own error.
    return body[-1] if body and isinstance(body[-1], ast.Expr) else None
