"""Scripts that mean harm, each run in its own sandbox; a line of JSON for each says what became of it.

A process of its own, so that its memory is what the scripts made of it: `python bombs.py CANARY_FILE MARKER_FILE`.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from remora.errors import ToolError, ToolLimitExceeded
from remora.scripts import PERMISSIVE, STRICT, Limits, ScriptPool

SHARED = "x = [0] * 1000\nx = [x] * 1000\nx = [x] * 1000\nx"

BOMBS = {
    "loop": "while True: pass\n1",
    "loop in a function": "def f():\n    while True: pass\nf()",
    "loop that catches all": "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n1",
    "loop in finally": "try:\n    1 / 0\nfinally:\n    while True: pass\n1",
    "loop in a comprehension": "[x for x in range(10 ** 12) if x < 0]",
    "sum of a huge range": "sum(range(10 ** 12))",
    "sleep": "import time\nwhile True: time.sleep(1000)\n1",
    "async sleep": "import asyncio\nwhile True: await asyncio.sleep(1000)\n1",
    "endless await": "async def f():\n    while True: await g()\nasync def g(): pass\nawait f()",
    "huge integer": "10 ** 10 ** 9",
    "huge shift": "1 << 10 ** 10",
    "huge product": "x = 10 ** 100000\nfor i in range(10 ** 6): x = x * x\n1",
    "huge factorial": "import math\nmath.factorial(10 ** 8)",
    "long decimal": "import decimal\ndecimal.Decimal(10) ** decimal.Decimal(10 ** 9)",
    "integer as text": "str(10 ** 300000)",
    "huge text": "'a' * 10 ** 9",
    "huge bytes": "b'a' * 10 ** 9",
    "growing text": "x = 'a'\nwhile True: x = x + x\n1",
    "joined text": "','.join(['a' * 1000] * 10 ** 6)",
    "replaced text": "'a' * 100 and ('a' * 1000000).replace('a', 'b' * 1000)",
    "padded text": "'{:>1000000000}'.format(1)",
    "padded f-string": "f'{1:>1000000000}'",
    "percent": "'%1000000000d' % 1",
    "center": "'a'.center(10 ** 9)",
    "zfill": "'1'.zfill(10 ** 9)",
    "huge list": "[0] * 10 ** 9",
    "growing list": "x = []\nwhile True: x.append('a' * 1000)\n1",
    "list of a huge range": "list(range(10 ** 9))",
    "growing dict": "x = {}\ni = 0\nwhile True:\n    x[i] = i\n    i += 1\n1",
    "growing set": "x = set()\ni = 0\nwhile True:\n    x.add(i)\n    i += 1\n1",
    "products": "import itertools\nlist(itertools.product(range(1000), repeat=5))",
    "closures": "f = lambda: 0\nwhile True: f = (lambda g: lambda: g())(f)\n1",
    "recursion": "def f(): return f()\nf()",
    "mutual recursion": "def f(): return g()\ndef g(): return f()\nf()",
    "deep repr": "x = []\nfor i in range(100000): x = [x]\nrepr(x)",
    "deep comparison": "x = []\ny = []\nfor i in range(100000):\n    x = [x]\n    y = [y]\nx == y",
    "deep json": "import json\njson.loads('[' * 1000000)",
    "regex": "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
    "regex alternation": "import re\nre.match('(a|a|b)*c', 'a' * 100000)",
    "regex backtracking": "import re\nre.sub('(x+x+)+y', '', 'x' * 5000)",
    "huge regex": "import re\nre.compile('(a{1000}){1000}')",
    "endless printing": "while True: print('x' * 1000)\n1",
    "one huge print": "print('x' * 6000000)\nwhile True: pass\n1",
    "huge error": "raise ValueError('x' * 7000000)",
    "sorted with a loop": "def f(x):\n    while True: pass\nsorted([1, 2], key=f)",
    "hostile equality": "class A:\n    def __eq__(self, o):\n        while True: pass\nA() in [1]",
    "hostile text": "class A:\n    def __str__(self):\n        while True: pass\nstr(A())",
    "shared lists": SHARED,
    "shared dicts": "x = {}\nfor i in range(100): x = {'a': x, 'b': x}\nx",
    "shared text": "x = 'a' * 3000000\n[x] * 1000",
    "shared keys": "x = 'a' * 1000000\n[{x: 1}] * 1000",
    "list in itself": "x = []\nx.append(x)\nx",
    "shared text to the host": "x = 'a' * 3000000\nawait host([x] * 1000)",
    "shared lists to the host": "x = [0] * 1000\nx = [x] * 1000\nx = [x] * 1000\nawait host(x)",
    "shared dicts to the host": "x = {}\nfor i in range(60): x = {'a': x, 'b': x}\nawait host(value=x)",
    "endless host calls": "while True: await host(1)\n1",
    "many host calls at once": "import asyncio\nawait asyncio.gather(*[host(1) for i in range(5000)])",
    "check replaced by name": "def type(x): return int\ndef len(x): return 0\n" + SHARED,
    "check found by locals": "for n in list(locals()): exec(n + ' = lambda v, b=0: v')\n" + SHARED,
    "check found by eval": "eval('locals()')",
    "check found by except": "try:\n    await host({1})\nexcept TypeError as e:\n    r = dir(e)\nr",
}
"""Must all end as typed errors; what they do to time and memory is counted."""

LARGE = {
    "large text": "'x' * 30000000",
    "large text of wide characters": "'\U0001f600' * 7000000",
    "large text in a dict": "{'a': ['x' * 30000000]}",
    "large text to the host": "await host('x' * 30000000)",
    "large text to the host by name": "await host(value={'a': 'x' * 30000000})",
    "large print": "print('x' * 20000000)\n1 / 0",
}
"""Within the largest limits of a script, and too much for us: must not enter our process at all."""

HARMLESS = ("regex", "regex alternation", "regex backtracking")
"""Bombs elsewhere; here the engine of regular expressions is linear, so they end by themselves."""

ESCAPES = {
    "open": "open(CANARY).read()",
    "open to write": "open(MARKER, 'w').write('x')",
    "pathlib read": "import pathlib\npathlib.Path(CANARY).read_text()",
    "pathlib write": "import pathlib\npathlib.Path(MARKER).write_text('x')",
    "pathlib touch": "import pathlib\npathlib.Path(MARKER).touch()",
    "listing": "import os\nos.listdir('/')",
    "environment": "import os\nos.environ['REMORA_CANARY']",
    "getenv": "import os\nos.getenv('REMORA_CANARY') + ''",
    "system": "import os\nos.system('touch ' + MARKER)",
    "rename": "import os\nos.rename(CANARY, MARKER)",
    "remove": "import os\nos.remove(CANARY)",
    "subprocess": "import subprocess\nsubprocess.run(['touch', MARKER])",
    "socket": "import socket\nsocket.socket()",
    "urllib": "import urllib.request\nurllib.request.urlopen('http://127.0.0.1/')",
    "ctypes": "import ctypes\nctypes.CDLL(None)",
    "importlib": "import importlib\nimportlib.import_module('os')",
    "dunder import": "__import__('os').system('touch ' + MARKER)",
    "builtins": "__builtins__['open'](CANARY).read()",
    "builtins module": "import builtins\nbuiltins.open(CANARY).read()",
    "subclasses": "().__class__.__bases__[0].__subclasses__()",
    "mro": "''.__class__.__mro__[-1].__subclasses__()",
    "globals of a function": "(lambda: 0).__globals__['__builtins__']",
    "code of a function": "(lambda: 0).__code__.co_consts",
    "closure": "host.__closure__",
    "frame": "import sys\nsys._getframe()",
    "modules": "import sys\nsys.modules['os']",
    "traceback": "try:\n    1 / 0\nexcept Exception as e:\n    e.__traceback__.tb_frame.f_globals\n1",
    "generator frame": "(x for x in [1]).gi_frame",
    "format": "'{0.__class__.__init__.__globals__}'.format(host)",
    "getattr": "getattr(getattr((), '__class__'), '__base__')",
    "type": "type('A', (), {})()",
    "pickle": "import pickle\npickle.loads(b'')",
    "eval": 'eval("open(CANARY).read()")',
    "exec": 'exec("open(CANARY).read()")',
    "compile": "compile('1', 'a', 'eval')",
    "mangled host": "await host.__call__.__globals__['open'](CANARY)",
    "input": "input()",
    "breakpoint": "breakpoint()",
    "absolute in the workspace": "await host(CANARY).__class__",
    "thread": "import threading\nthreading.Thread(target=print).start()",
    "asyncio": "import asyncio\nawait asyncio.create_subprocess_exec('touch', MARKER)",
    "multiprocessing": "import multiprocessing\n1",
    "signal": "import signal\nsignal.alarm(1)",
    "gc": "import gc\ngc.get_objects()",
    "inspect": "import inspect\ninspect.stack()",
    "weakref": "import weakref\n1",
    "mount": "open('/proc/self/environ').read()",
}
"""Must all end as typed errors, and neither show the canary nor leave the marker."""


async def host(*args: Any, **kwargs: Any) -> int:
    return len(args) + len(kwargs)


def tell(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")


def peak_kb() -> int:
    """The most memory this process ever had. (`ru_maxrss` also counts what its parent had at the fork.)"""
    return int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1])  # type: ignore[index]


async def attempt(pool: ScriptPool, name: str, source: str, limits: Limits = STRICT) -> dict[str, Any]:
    began = time.monotonic()
    told: dict[str, Any] = {"name": name, "ended": "value"}
    try:
        done = await pool.run(name, source, inputs={}, externals={"host": host}, limits=limits)
        told["value"] = repr(done.value)[:200]
    except ToolLimitExceeded as error:
        told |= {"ended": "limit", "limit": error.limit}
    except ToolError as error:
        told |= {"ended": "error", "message": error.message[:200]}
    return told | {"seconds": time.monotonic() - began, "peak_kb": peak_kb()}


async def main(canary: str, marker: str) -> None:
    async with ScriptPool(max_processes=1) as pool:
        await attempt(pool, "warm", "await host(['x' * 100000, {'a': 1}])")
        tell({"name": "", "peak_kb": peak_kb()})
        for name, source in LARGE.items():
            tell(await attempt(pool, name, source, PERMISSIVE))
        for name, source in BOMBS.items():
            told = await attempt(pool, name, source)
            if told["seconds"] > STRICT.seconds + 1.5:
                # A busy machine is not a script that got away: only what is late again counts.
                told = await attempt(pool, name, source)
            tell(told)
        for name, source in ESCAPES.items():
            text = source.replace("CANARY", repr(canary)).replace("MARKER", repr(marker))
            tell(await attempt(pool, name, text))
        assert (await pool.run("after", "1 + 1", inputs={}, externals={})).value == 2


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
