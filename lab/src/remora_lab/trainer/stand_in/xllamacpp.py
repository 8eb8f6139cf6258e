"""Stands in for llama.cpp where a suite is measured on a GPU: the embedded model's child gets the address of a server.

Put this folder at the front of `PYTHONPATH`. `~/.remora-torch.json` names the servers (`remora_lab.trainer.serve`) by
`MODEL.gguf` or `MODEL.gguf+ADAPTER.gguf`. Everything else of Remora runs as it is.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class common_speculative_type:  # noqa: N801 - the name in llama.cpp
    """Draft types; a server of torch has none."""

    COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE = 0


class CommonParams(SimpleNamespace):
    """Settings, all of them accepted."""

    def __init__(self) -> None:
        super().__init__(
            model=SimpleNamespace(),
            cpuparams=SimpleNamespace(),
            cpuparams_batch=SimpleNamespace(),
            speculative=SimpleNamespace(ngram_simple=SimpleNamespace()),
            lora_adapters=[],
        )


def CommonAdapterLoraInfo(path: str, _scale: float) -> str:  # noqa: N802 - the name in llama.cpp
    """The adapter, by its path."""
    return path


class Server:
    """A server that runs already. Raises `KeyError` if none is named for the model and its adapter."""

    def __init__(self, params: Any) -> None:
        named = "+".join(Path(path).name for path in (params.model.path, *params.lora_adapters))
        self.listening_address = json.loads(Path.home().joinpath(".remora-torch.json").read_text())[named]
