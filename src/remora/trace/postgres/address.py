"""The URL of a Postgres store: which database, and which schema of it holds the streams."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from remora.errors import ConfigError
from remora.events import digest

SCHEMES = ("postgres", "postgresql")
DEFAULT_SCHEMA = "remora"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,47}", re.ASCII)
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SECRET = ("password", "sslpassword")


@dataclass(frozen=True)
class Address:
    """A parsed URL. As text it has no password."""

    url: str = field(repr=False)
    """What the driver connects to: the URL without our own parameters, with its password."""
    schema: str
    shown: str
    """The URL without its password, for messages."""
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.shown

    @property
    def digest(self) -> str:
        """Names the store in the cache: equal for every password."""
        return digest(self.shown.encode()).removeprefix("sha256:")[:32]


def is_store_url(text: str) -> bool:
    """Whether the text is the URL of a Postgres store, not a path."""
    return text.partition("://")[0].lower() in SCHEMES and "://" in text


def parse_address(url: str) -> Address:
    """Parse `postgres://USER@HOST/DATABASE?schema=NAME`. Raises `ConfigError`, without repeating a password."""
    parts = _split(url)
    password, port = unquote(parts.password or ""), parts.port
    given = parse_qsl(parts.query, keep_blank_values=True)
    schema = next((value for name, value in given if name == "schema"), DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema):
        raise ConfigError(
            f"The trace store's schema {schema[:60]!r} is not valid: expected lower-case letters, digits and `_`"
        )
    rest = [(name, value) for name, value in given if name != "schema"]
    user = f"{quote(unquote(parts.username), safe='')}@" if parts.username else ""
    host = (f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or "") + (
        f":{port}" if port else ""
    )
    plain = [(name, value) for name, value in rest if name not in _SECRET]
    query = urlencode([*plain, *([("schema", schema)] if schema != DEFAULT_SCHEMA else [])], safe="/")
    return Address(
        url=f"postgresql://{parts.netloc}{parts.path}" + (f"?{urlencode(rest)}" if rest else ""),
        schema=schema,
        shown=f"postgres://{user}{host}{parts.path}" + (f"?{query}" if query else ""),
        password=password or next((value for name, value in rest if name == "password"), ""),
    )


def _split(url: str) -> SplitResult:
    """The parts of the URL. Raises `ConfigError`, which quotes nothing of it: any part may be one of a password."""
    escape = "Write special characters of a password as `%2F`, `%23`, `%3F`, `%40`, `%25`, or leave it to `~/.pgpass`"
    try:
        parts = urlsplit(url)
        wrong = "its port is not a number below 65536" if _has_bad_port(parts) else ""
    except ValueError:
        raise ConfigError(
            "The URL of the trace store is not valid: expected `postgres://USER@HOST/DATABASE`", hint=escape
        ) from None
    if parts.scheme.lower() not in SCHEMES:
        raise ConfigError("The trace store is not a URL: expected `postgres://USER@HOST/DATABASE`")
    late = "@" in parts.path or ("@" in parts.query and "@" not in parts.netloc)
    if late or parts.fragment or _BROKEN_ESCAPE.search(url):
        wrong = "a `/`, `?`, `#` or `%` before the `@` is not escaped"
    elif not parts.netloc and not parts.path.strip("/"):
        wrong = "it names neither a host nor a database: expected `postgres://USER@HOST/DATABASE`"
    if wrong:
        raise ConfigError(f"The URL of the trace store is not valid: {wrong}", hint=escape)
    return parts


def _has_bad_port(parts: SplitResult) -> bool:
    try:
        return parts.port == 0
    except ValueError:
        return True


def without_password(url: str) -> str:
    """The URL for messages. One that cannot be parsed is left out."""
    try:
        return parse_address(url).shown
    except ConfigError:
        return "postgres://…"
