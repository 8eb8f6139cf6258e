"""The process of the embedded model: started by path, imports nothing of ours, ends with its parent.

It reads one line of JSON from stdin (with the key, which so appears in no process list), and writes one to stdout when
the server listens. After that, the end of stdin means that it should exit.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Any

PR_SET_PDEATHSIG = 1
NGRAM_SIZE, DRAFT_TOKENS = 6, 12
"""Speculative decoding with n-grams: tokens that must match, and tokens to draft."""


def main() -> None:
    """Serve until stdin ends."""
    answer_fd = os.dup(1)
    os.dup2(2, 1)  # output of native code must not be mistaken for our answer
    _die_with_parent()
    settings = json.loads(sys.stdin.readline())
    if os.getppid() != settings["parent"]:
        os._exit(1)  # the parent died before `PR_SET_PDEATHSIG` was set
    sys.path[:] = settings["paths"]
    try:
        server = _serve(settings)
    except BaseException as error:  # noqa: BLE001 - reported to the parent, whatever native code raises
        _answer(answer_fd, {"error": f"{type(error).__name__}: {error}"})
        os._exit(1)
    _answer(answer_fd, {"url": server.listening_address})
    sys.stdin.read()
    os._exit(0)  # do not wait for native threads


def _serve(settings: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["gguf"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings["key"]]
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["context"] * settings["slots"]
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.special = settings["special"]
    params.fit_params = False
    params.ui = False
    params.verbosity = 1
    params.cache_ram_mib = 256
    # Speculative decoding with n-grams: most of an answer is in the prompt already, as a candidate. Drafted tokens are
    # verified at once, and the output is the same.
    params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
    params.speculative.ngram_simple.size_n, params.speculative.ngram_simple.size_m = NGRAM_SIZE, DRAFT_TOKENS
    if settings["adapters"]:
        params.lora_adapters = [_adapter(xllamacpp, path) for path in settings["adapters"]]
    return xllamacpp.Server(params)


def _adapter(library: Any, path: str) -> Any:
    """Load an adapter that is inactive until a request names it."""
    return library.CommonAdapterLoraInfo(path, 0.0)


def _die_with_parent() -> None:
    """Ask the kernel to kill us with the parent, even when stuck in native code. On other systems, stdin ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _answer(handle: int, what: dict[str, str]) -> None:
    os.write(handle, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    main()
