"""`python -m remora`: the command, where its script is not on the path."""

import sys
from pathlib import Path

# `-m` puts the current folder first, which may be somebody else's repository. `python -P` never does.
if not sys.flags.safe_path and sys.path and Path(sys.path[0]) != Path(__file__).parents[1]:
    del sys.path[0]

from remora.cli import main

main()
