"""Connecting to Postgres, and what its errors mean for us."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from remora.errors import ConfigError, MissingExtra, StoreUnreachable
from remora.trace.postgres.schema import check_version, found_version, in_schema, migrate

if TYPE_CHECKING:
    import psycopg

    from remora.trace.postgres.address import Address

CONNECT_S = 10
_SETTINGS = (
    "SELECT set_config('synchronous_commit', 'on', false), set_config('client_min_messages', 'warning', false), "
    "set_config('idle_in_transaction_session_timeout', '5s', false)"
)
"""The last one: a transaction whose client vanished must not hold its rows."""
_PASSING = frozenset({"25006", "40001", "40P01", "53300", "55P03", "57P01", "57P02", "57P03", "57014", "25P03"})
"""Errors of a server that restarts, fails over or is crowded. Other errors of the same statement would come again."""
_CREDENTIALS = "Check user, database and password; a password can also stand in `~/.pgpass`"
POOLED = "A pooler shares sessions between clients: connect directly, or set its `pool_mode = session`"
NO_RIGHT = "42501"
_HINTS = {
    NO_RIGHT: "Its owner grants rights with `remora store init URL --writer ROLE --reader ROLE`",
    "42704": "Create the role first: `CREATE ROLE name LOGIN`",
    "28000": _CREDENTIALS,
    "28P01": _CREDENTIALS,
    "3D000": _CREDENTIALS,
    "26000": POOLED,  # a prepared statement of this session is not there
    "42P05": POOLED,  # or one of another session is
}
_REFUSED = re.compile(r"FATAL:\s+(.+)")
"""A refused connection has no SQLSTATE in the driver, only the server's words."""
_PASSES = re.compile("starting up|shutting down|recovery|too many|remaining connection slots|terminating")
_FULL = ("53100", "53200", "53400")


def driver() -> Any:
    """The module `psycopg`. Raises `MissingExtra`."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtra("psycopg, which talks to Postgres,", extra="postgres") from error
    return psycopg


def connect(address: Address, *, create: bool = False) -> psycopg.Connection[Any]:
    """A connection in autocommit mode to a store of the right version. Raises `ConfigError` or `TraceError`.

    With `create`, a database without a store gets one, if the role may create a schema.
    """
    connection = connect_bare(address)
    try:
        version = found_version(connection, address.schema)
        if version == 0 and create and _may_create(connection, address.schema):
            version = migrate(connection, address.schema)[1]
        check_version(version, address)
    except BaseException as error:
        connection.close()
        if isinstance(error, driver().Error):
            raise store_error(error, address) from error
        raise
    return connection


def connect_bare(address: Address) -> psycopg.Connection[Any]:
    """A connection to the database, whatever is in it. Raises `TraceError`."""
    pg = driver()
    try:
        connection: psycopg.Connection[Any] = pg.connect(
            address.url, autocommit=True, connect_timeout=CONNECT_S, **_OPTIONS
        )
        try:
            connection.execute(_SETTINGS)
        except pg.Error:
            connection.close()
            raise
    except pg.Error as error:
        raise store_error(error, address) from error
    return connection


async def connect_async(address: Address) -> psycopg.AsyncConnection[Any]:
    """Like `connect_bare`, for an event loop. Raises `psycopg.Error`."""
    connection: psycopg.AsyncConnection[Any] = await driver().AsyncConnection.connect(
        address.url, autocommit=True, connect_timeout=CONNECT_S, **_OPTIONS
    )
    try:
        await connection.execute(_SETTINGS)
    except BaseException:
        await connection.close()
        raise
    return connection


_OPTIONS = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "application_name": "remora",
    "client_encoding": "UTF8",
}


class Held:
    """At most one open connection. Closes it when it is no longer referenced."""

    def __init__(self) -> None:
        self._open: list[psycopg.Connection[Any]] = []
        weakref.finalize(self, _close_all, self._open)

    def get(self, connect: Callable[[], psycopg.Connection[Any]]) -> psycopg.Connection[Any]:
        """The open connection, or a new one."""
        if not self._open or self._open[0].closed:
            self._open[:] = [connect()]
        return self._open[0]

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def close(self) -> None:
        """Close the connection, if there is one."""
        _close_all(self._open)


def _close_all(connections: list[psycopg.Connection[Any]]) -> None:
    while connections:
        connections.pop().close()


def _may_create(connection: psycopg.Connection[Any], schema: str) -> bool:
    row = connection.execute(
        "SELECT CASE WHEN to_regnamespace(%s) IS NULL THEN has_database_privilege(current_database(), 'CREATE') "
        "ELSE has_schema_privilege(%s, 'CREATE') END",
        [schema, schema],
    ).fetchone()
    return bool(row and row[0])


def is_passing(error: BaseException) -> bool:
    """Whether the same statement may succeed on another connection, or a little later."""
    pg = driver()
    if not isinstance(error, pg.Error):
        return isinstance(error, OSError | TimeoutError)
    state = error.sqlstate
    if state is None:
        return isinstance(error, pg.OperationalError | pg.InterfaceError)  # the connection was lost
    return state in _PASSING or state.startswith("08")


def reason(error: BaseException) -> str:
    """What went wrong, in words, without the statement's values."""
    state = getattr(error, "sqlstate", None)
    if state in _FULL:
        return "the database's disk is full" if state == "53100" else "the database is out of memory or over a limit"
    if isinstance(error, TimeoutError):
        return "the database did not answer in time"
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def store_error(error: BaseException, address: Address, hint: str = "") -> StoreUnreachable | ConfigError:
    """An error for users: what happened, and what to look at. `hint` says what to do about a right that is missing."""
    state = getattr(error, "sqlstate", None)
    said = reason(error)
    for secret in {address.password, quote(address.password, safe="")} - {""}:
        said = said.replace(secret, "[password]")
    if state is None and isinstance(error, driver().ProgrammingError):  # the driver cannot read the URL
        return ConfigError(f"The URL of the trace store at {address} is not valid: {said}")
    if state in _HINTS:
        hint = hint if hint and state == NO_RIGHT else _HINTS[state]
        return ConfigError(f"The trace store at {address} refused: {said}", hint=hint)
    refused = _REFUSED.search(said)
    if refused and not _PASSES.search(said):
        return ConfigError(f"The server of {address} refused: {refused[1]}", hint=_CREDENTIALS)
    return StoreUnreachable(
        f"The trace store at {address} cannot be used: {said}", hint="Is the server running and reachable?"
    )


def query(sql: str, schema: str) -> bytes:
    """A statement of our own with the schema's name for each `@`."""
    return in_schema(sql, schema)
