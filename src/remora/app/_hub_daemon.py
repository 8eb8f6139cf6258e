"""The Hub's daemon as `remora hub start` runs it: it leaves out files that hold the environment's secrets."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the daemon in a process of its own, which is nobody's child."""
    if os.fork():
        os._exit(0)
    from remora.app._hub import hiding
    from remora.app._project import environment_secrets
    from remora.hub._daemon import main as watch

    return watch(sys.argv[1:], hiding(environment_secrets(os.environ)))


if __name__ == "__main__":
    sys.exit(main())
