"""Making a store, and describing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from remora.trace.postgres.connection import connect_bare, driver, query, store_error
from remora.trace.postgres.schema import VERSION, check_version, found_version, grant, migrate

if TYPE_CHECKING:
    from remora.trace.postgres.address import Address


@dataclass(frozen=True)
class StoreStatus:
    """One store."""

    url: str
    """Without the password."""
    version: int
    expected: int
    server: str
    role: str
    streams: int = 0
    open_streams: int = 0
    """Streams that a live writer holds."""
    records: int = 0
    bytes: int = 0
    blobs: int = 0
    blob_bytes: int = 0
    not_indexed: int = 0
    """Records that the next search indexes."""
    writers: tuple[str, ...] = ()
    """Writers whose lease has not run out."""
    problems: tuple[str, ...] = field(default=())
    """Settings of the server that weaken a promise."""


def init_store(address: Address, *, writers: Sequence[str] = (), readers: Sequence[str] = ()) -> tuple[int, int]:
    """Make a store or bring it up to date, and give roles their rights. Returns the version before and after."""
    connection = connect_bare(address)
    try:
        versions = migrate(connection, address.schema)
        for role in readers:
            grant(connection, address.schema, role, write=False)
        for role in writers:
            grant(connection, address.schema, role, write=True)
    except driver().Error as error:
        hint = "Connect as the store's owner. A role that makes one needs `GRANT CREATE ON DATABASE … TO …`"
        raise store_error(error, address, hint) from error
    finally:
        connection.close()
    check_version(versions[1], address)
    return versions


def store_status(address: Address) -> StoreStatus:
    """What a store holds. Raises `ConfigError` if there is none."""
    connection = connect_bare(address)
    schema = address.schema
    try:
        version = found_version(connection, schema)
        row = connection.execute("SELECT current_setting('server_version'), current_user").fetchone()
        server, role = row or ("", "")
        if version == 0:
            check_version(version, address)
        if version != VERSION:
            return StoreStatus(str(address), version, VERSION, server, role)
        row = connection.execute(query(_COUNTS, schema)).fetchone()
        counts = dict(zip(_COUNTED, row or (), strict=False))
        alive = connection.execute(query(_WRITERS, schema)).fetchall()
        weak = connection.execute("SELECT name FROM pg_settings WHERE name = ANY(%s) AND setting = 'off'", [_NEEDED])
        problems = [f"`{name}` is off: a crash of the server can lose acknowledged events" for (name,) in weak]
    except driver().Error as error:
        raise store_error(error, address) from error
    finally:
        connection.close()
    labels = tuple(label for (label,) in alive)
    bare = StoreStatus(str(address), version, VERSION, server, role, writers=labels, problems=tuple(problems))
    return replace(bare, **counts)


_COUNTED = ("streams", "open_streams", "records", "bytes", "blobs", "blob_bytes", "not_indexed")
_NEEDED = ["fsync", "full_page_writes"]
_WRITERS = "SELECT label FROM @.writers WHERE lease_until > clock_timestamp() ORDER BY id LIMIT 20"
_COUNTS = """
SELECT count(*),
    count(*) FILTER (WHERE w.lease_until > clock_timestamp()),
    coalesce(sum(t.records), 0)::bigint,
    coalesce(sum(t.bytes), 0)::bigint,
    (SELECT count(*) FROM @.blobs WHERE NOT pruned),
    (SELECT coalesce(sum(size), 0)::bigint FROM @.blobs WHERE NOT pruned),
    coalesce(sum(t.records - coalesce(i.records, 0)), 0)::bigint
FROM @.streams t
LEFT JOIN @.writers w ON w.id = t.writer
LEFT JOIN @.index_streams i ON i.stream = t.id
WHERE t.records > 0
"""
