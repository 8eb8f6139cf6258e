"""Which adapter the embedded model is asked with: one for all operations, or another for some."""

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
_FOR_ALL = ""


@dataclass(frozen=True)
class Adapters:
    """The adapters of one server, by operation; the one for all others under the empty name."""

    by_operation: Mapping[str, AdapterFile | None]
    base: str
    """Digest of the weights that they are used with."""

    @classmethod
    def of(cls, server: ServerConfig, base: str) -> Adapters:
        """Those that the settings name for weights of the digest `base`. Raises `ConfigError` for what is none."""
        named = {_FOR_ALL: server.adapter, **server.adapters}
        return cls({operation: _file(name, base) for operation, name in named.items()}, base)

    @property
    def paths(self) -> list[Path]:
        """Each file once, in the order in which the server numbers them."""
        return list(dict.fromkeys(file.path for file in self.by_operation.values() if file))

    def numbered(self, operation: str) -> Adapter | None:
        """The adapter for this operation, by its number."""
        from remora.inference import Adapter

        file = self.by_operation.get(operation, self.by_operation[_FOR_ALL])
        return Adapter(self.paths.index(file.path), SCALE) if file else None

    def chosen(self, policy: EmbeddedPolicy) -> Callable[[SubagentDefinition], Policy]:
        """For an agent, the policy with its adapter; `policy` has the one for all others."""

        @cache
        def of_operation(name: str) -> Policy:
            return policy.using(self.numbered(name)) if name in self.by_operation else policy

        return lambda definition: of_operation(definition.name)

    def told(self) -> dict[str, Any]:
        """What streams say: the adapter for all, and those for single operations."""
        told = {name: self._said(file) if file else {} for name, file in self.by_operation.items()}
        own = told.pop(_FOR_ALL)
        return ({"adapter": own} if own else {}) | ({"adapters": told} if told else {})

    def _said(self, file: AdapterFile) -> dict[str, Any]:
        own = file.told(SCALE)
        return own if _fits(file, self.base) else own | {"trained_on": file.base}


def _file(name: Literal["bundled", "none"] | Path | None, base: str) -> AdapterFile | None:
    """The file, if there is to be one. The bundled one is used only for the weights that it was trained on."""
    from remora.inference import bundled_adapter, read_adapter

    if name == "none" or name is None:
        return None
    if name != "bundled":
        return read_adapter(Path(name))
    path = bundled_adapter()
    found = read_adapter(path) if path else None
    return found if found and _fits(found, base) else None


def _fits(file: AdapterFile, base: str) -> bool:
    """Whether it was trained on these weights, as far as it says."""
    return _bare(file.base) in ("", _bare(base))


def _bare(digest: str) -> str:
    return digest.removeprefix("sha256:")
