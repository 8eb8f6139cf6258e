"""`python -m remora.hub HANDLE ROOT STATE_DIR [EXCLUDE…]`: the daemon. People use `remora hub start`."""

import sys

from remora.hub._daemon import main

sys.exit(main(sys.argv[1:]))
