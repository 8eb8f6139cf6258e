"""Whether an error comes from a `raise` or an `assert` of the project: then somebody wanted it."""

import ast
import functools
import os

HERE = os.getcwd() + os.sep
OTHERS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}.venv{os.sep}")


def is_deliberate(error):
    """Whether the project raises an error itself, and not the first time that it handles another one."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    path = os.path.abspath(trace.tb_frame.f_code.co_filename)
    is_own = path.startswith(HERE) and not any(other in path for other in OTHERS)
    return is_own and trace.tb_lineno in raising_lines(path)


@functools.cache
def raising_lines(path):
    """The lines of a file in which it raises an error."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    parts = [part for part in ast.walk(tree) if isinstance(part, ast.Raise) and part.exc]
    return frozenset(line for part in parts for line in range(part.lineno, part.end_lineno + 1))
