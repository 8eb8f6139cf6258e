"""The embedded model's own process: started by path, imports nothing of ours, ends with the one who started it.

One line of JSON comes in on stdin (the key is in it, so that it stands in no list of processes), one goes out on stdout
when the server listens. After that stdin only says, by its end, that nobody needs us any more.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Any

PR_SET_PDEATHSIG = 1
GUESSED_AFTER, GUESSED = 6, 12
"""Tokens that must agree before some are guessed, and how many are."""


def main() -> None:
    """Serve until stdin ends."""
    told = os.dup(1)
    os.dup2(2, 1)  # what native code prints must not be taken for our answer
    _die_with_parent()
    wanted = json.loads(sys.stdin.readline())
    if os.getppid() != wanted["parent"]:
        os._exit(1)  # it was gone before the system knew that we go with it
    sys.path[:] = wanted["paths"]
    try:
        server = _serve(wanted)
    except BaseException as error:  # noqa: BLE001 - told to the parent, whatever native code raises
        _tell(told, {"error": f"{type(error).__name__}: {error}"})
        os._exit(1)
    _tell(told, {"url": server.listening_address})
    sys.stdin.read()
    os._exit(0)  # native threads are not waited for


def _serve(wanted: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = wanted["gguf"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [wanted["key"]]
    params.n_parallel = wanted["slots"]
    params.n_ctx = wanted["context"] * wanted["slots"]
    params.cpuparams.n_threads = wanted["threads"]
    params.cpuparams_batch.n_threads = wanted["threads"]
    params.fit_params = False
    params.ui = False
    params.verbosity = 1
    params.cache_ram_mib = 256
    # Most of an answer stands in the prompt already, as a candidate: what follows the same tokens there is guessed and
    # checked at once. What comes out is the same.
    params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
    params.speculative.ngram_simple.size_n, params.speculative.ngram_simple.size_m = GUESSED_AFTER, GUESSED
    if wanted["adapters"]:
        params.lora_adapters = [_adapter(xllamacpp, path) for path in wanted["adapters"]]
    return xllamacpp.Server(params)


def _adapter(library: Any, path: str) -> Any:
    """An adapter that does nothing until a request names it."""
    return library.CommonAdapterLoraInfo(path, 0.0)


def _die_with_parent() -> None:
    """Also when it is killed, and we are stuck in native code: the system does it. Elsewhere than on Linux, stdin."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _tell(handle: int, what: dict[str, str]) -> None:
    os.write(handle, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    main()
