"""The pinned packages, and how their files are fetched: by name from a registry, checked by their digest."""

from __future__ import annotations

import hashlib
import html
import re
import tarfile
import urllib.error
import urllib.parse
import urllib.request
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from remora.errors import ConfigError
from remora.validation import parse_yaml, validate

INDEX = "https://pypi.org/simple"
TIMEOUT_S = 60.0
MAX_BYTES = 64 * 1024 * 1024
"""Most bytes of one source distribution."""


class Package(BaseModel):
    """One pinned source distribution."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    file: str = Field(pattern=r"^[A-Za-z0-9._-]+\.tar\.gz$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    code: tuple[str, ...]
    """Files and folders that agents work on."""
    tests: tuple[str, ...] = ()
    """Its tests, if they are not among `code`. The lint agent works on them too."""
    source: str = "."
    """The folder that must be on Python's path."""
    requires: tuple[str, ...] = ()
    """Packages that its tests need beside pytest."""
    seen: bool = False
    """Whether earlier versions of the agents were judged on it."""

    @property
    def version(self) -> str:
        """Its version, from the name of its file."""
        return self.file.removesuffix(".tar.gz").rpartition("-")[2]


class _Listed(BaseModel):
    packages: tuple[Package, ...]


def read_pinned(path: Path | None = None) -> tuple[Package, ...]:
    """The packages of a YAML file; by default those that ship with the lab. Raises `ConfigError`."""
    name = str(path) if path else "packages.yaml"
    text = path.read_text(encoding="utf-8") if path else files(__package__).joinpath(name).read_text(encoding="utf-8")
    return validate(_Listed, {"packages": parse_yaml(text, name)}, name).packages


def select(packages: tuple[Package, ...], names: list[str]) -> tuple[Package, ...]:
    """The packages with these names; all without names. Raises `ConfigError` for an unknown one."""
    known = {package.name: package for package in packages}
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(f"There is no package `{unknown[0]}` in this bench: expected one of {', '.join(known)}")
    return tuple(known[name] for name in names) if names else packages


def fetch(package: Package, cache: Path, index: str = INDEX) -> Path:
    """The package's file in `cache`, fetched from the registry if it is not there. Raises `ConfigError`."""
    path = cache / package.file
    if not path.exists():
        data = _download(package, cache, index)
        cache.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != package.sha256:
        raise ConfigError(
            f"`{path}` is not the pinned file: its SHA-256 is {found}, expected {package.sha256}",
            hint="Delete it, and it is fetched again",
        )
    return path


def _download(package: Package, cache: Path, index: str) -> bytes:
    page_url = f"{index.rstrip('/')}/{package.name}/"
    try:
        page = _read(page_url).decode(errors="replace")
        links = re.findall(r'href="([^"]+)"[^>]*>\s*([^<]+?)\s*<', page)
        found = [href for href, name in links if name == package.file]
        if not found:
            raise ConfigError(f"`{page_url}` does not list `{package.file}`")
        return _read(urllib.parse.urljoin(page_url, html.unescape(found[0]).partition("#")[0]))
    except (urllib.error.URLError, OSError) as error:
        raise ConfigError(
            f"`{package.file}` cannot be fetched from `{page_url}`: {error}",
            hint=f"Name another registry with `--index URL`, or put the file into `{cache}`",
        ) from error


def _read(url: str) -> bytes:
    if not url.startswith(("https://", "http://", "file://")):
        raise ConfigError(f"`{url[:200]}` is not a web address")
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310 - the scheme was checked
        data: bytes = answer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ConfigError(f"`{url[:200]}` is larger than {MAX_BYTES:,} bytes")
    return data


def unpack(archive: Path, into: Path) -> Path:
    """Unpack a source distribution, without links out of its folder. Returns the folder of the project."""
    with tarfile.open(archive) as tar:
        tar.extractall(into, filter="data")
    (root,) = [each for each in into.iterdir() if each.is_dir()]
    return root
