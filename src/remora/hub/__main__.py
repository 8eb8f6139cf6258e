"""`python -m remora.hub HANDLE ROOT STATE_DIR [EXCLUDE…]`: the daemon. People use `remora hub start`."""

import os
import sys

if os.fork():
    os._exit(0)  # nobody's child: whoever started it need not wait for its end

from remora.hub._daemon import main

sys.exit(main(sys.argv[1:]))
