"""`python -m remora.hub HANDLE ROOT STATE_DIR [EXCLUDE…]`: the daemon. People use `remora hub start`."""

import os
import sys

if os.fork():
    os._exit(0)  # detach, so that the caller need not wait for the daemon

from remora.hub._daemon import main

sys.exit(main(sys.argv[1:]))
