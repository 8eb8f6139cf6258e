"""The Hub's daemon for `remora hub start`. It does not index files that contain secrets of the environment."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the daemon in a detached process: fork, and let the parent exit."""
    if os.fork():
        os._exit(0)
    from remora.app._hub import secret_filter
    from remora.app._project import environment_secrets
    from remora.hub._daemon import main as watch

    return watch(sys.argv[1:], secret_filter(environment_secrets(os.environ)))


if __name__ == "__main__":
    sys.exit(main())
