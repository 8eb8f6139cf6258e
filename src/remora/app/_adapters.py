"""Selects the adapter (LoRA) that the embedded model uses: one for all operations, or one for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from remora.config import ServerConfig
from remora.ports import Policy
from remora.subagent import SubagentDefinition

if TYPE_CHECKING:
    from remora.inference import Adapter, AdapterFile, EmbeddedPolicy

SCALE = 1.0
_DEFAULT = ""


@dataclass(frozen=True)
class Adapters:
    """The adapters of one server by operation. The empty name holds the default."""

    by_operation: Mapping[str, AdapterFile | None]
    base: str
    """Digest of the weights that they are applied to."""

    @classmethod
    def of(cls, server: ServerConfig, base: str) -> Adapters:
        """Read the adapters that the settings name. Raises `ConfigError` for a file that is not an adapter."""
        named = {_DEFAULT: server.adapter, **server.adapters}
        return cls({operation: _read(name, base) for operation, name in named.items()}, base)

    @property
    def paths(self) -> list[Path]:
        """The files without duplicates. The server numbers them in this order."""
        return list(dict.fromkeys(file.path for file in self.by_operation.values() if file))

    def for_operation(self, operation: str) -> Adapter | None:
        """The adapter of an operation, with its number on the server."""
        from remora.inference import Adapter

        file = self.by_operation.get(operation, self.by_operation[_DEFAULT])
        return Adapter(self.paths.index(file.path), SCALE) if file else None

    def choose_policy(self, policy: EmbeddedPolicy) -> Callable[[SubagentDefinition], Policy]:
        """A function from an agent's definition to the policy with its adapter. `policy` uses the default adapter."""

        @cache
        def with_adapter(name: str) -> Policy:
            return policy.using(self.for_operation(name)) if name in self.by_operation else policy

        return lambda definition: with_adapter(definition.name)

    def describe(self) -> dict[str, Any]:
        """Describe the adapters for the stream: the default one, and those of single operations."""
        described = {name: self._describe_file(file) if file else {} for name, file in self.by_operation.items()}
        default = described.pop(_DEFAULT)
        return ({"adapter": default} if default else {}) | ({"adapters": described} if described else {})

    def _describe_file(self, file: AdapterFile) -> dict[str, Any]:
        described = file.record(SCALE)
        return described if file.fits(self.base) else described | {"trained_on": file.base}


def _read(name: Literal["bundled", "requests", "none"] | Path | None, base: str) -> AdapterFile | None:
    """Read an adapter, if one is set. Those of the package are used only with the weights that they were trained on."""
    from remora.inference import bundled_adapter, read_adapter

    if name == "none" or name is None:
        return None
    if name in ("bundled", "requests"):
        return bundled_adapter("requests" if name == "requests" else "decide", base)
    return read_adapter(Path(name))
