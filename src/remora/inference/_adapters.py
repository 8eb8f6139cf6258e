"""LoRA adapters for the embedded model: the bundled ones, and the metadata of any adapter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from remora.errors import ConfigError
from remora.gguf import read_pairs
from remora.inference._weights import sha256_of

BUNDLED = Path(__file__).with_name("adapters")
_PREFIXES = ("general.", "adapter.", "remora.")


@dataclass(frozen=True)
class AdapterFile:
    """A LoRA adapter on disk and what it was trained for. Metadata that a file lacks is empty."""

    path: Path
    sha256: str
    base: str = ""
    """Digest of the weights that it was trained on."""
    renderers: tuple[str, ...] = ()
    """Prompt renderer versions that it was trained on."""
    calling: str = ""

    def fits(self, weights: str) -> bool:
        """Whether it was trained on the weights with this digest. True if it does not say."""
        return self.base.removeprefix("sha256:") in ("", weights.removeprefix("sha256:"))

    def record(self, scale: float) -> dict[str, object]:
        """What a stream records about it."""
        own = {"file": self.path.name, "sha256": self.sha256, "scale": scale}
        return own | {"renderers": list(self.renderers)} if self.renderers else own


def bundled_adapter(name: Literal["decide", "requests"] = "decide", weights: str = "") -> AdapterFile | None:
    """The package's adapter for packets, or for what people ask for in a sentence, for the weights with this digest.

    Without a digest, the one for the default model.
    """
    paths = [BUNDLED / f"{name}.gguf", *sorted(BUNDLED.glob(f"{name}-*.gguf"))]
    files = (read_adapter(path) for path in paths if path.is_file())
    return next((file for file in files if not weights or file.fits(weights)), None)


def read_adapter(path: Path) -> AdapterFile:
    """Read an adapter's metadata. Raises `ConfigError` if `path` is not an adapter."""
    found = read_pairs(path, _PREFIXES)
    if found.get("general.type") != "adapter" or found.get("adapter.type") != "lora":
        raise ConfigError(
            f"`{path}` is not an adapter: its `general.type` is `{found.get('general.type', '')}`, expected `adapter`",
            hint="Use `server.gguf` for the weights of a whole model",
        )
    renderers = str(found.get("remora.renderer", ""))
    return AdapterFile(
        path,
        sha256_of(path),
        base=str(found.get("remora.base.sha256", "")),
        renderers=tuple(name for name in renderers.split(",") if name),
        calling=str(found.get("remora.calling", "")),
    )
