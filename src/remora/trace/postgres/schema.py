"""The tables and functions of a Postgres store, in numbered migrations, and the rights of its roles.

Records are kept as the bytes of their lines, so a stream in Postgres has the same chain and the same head as in a file.

    owner     owns the schema; migrates it, deletes what retention names
    writer    may call the functions that open a stream and append to it; may change or delete nothing
    reader    may read, and may bring the index up to date

Writers have no right on the tables but to read them. The functions run with the owner's rights and check everything:
the epoch, the position, and that nothing follows a seal.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from remora.errors import ConfigError
from remora.trace.postgres.checks_schema import CHECKS
from remora.trace.postgres.index_schema import INDEX
from remora.trace.postgres.texts_schema import TEXTS

if TYPE_CHECKING:
    import psycopg

    from remora.trace.postgres.address import Address

LOCKED, FENCED, SEALED, MISPLACED, GONE = "RM001", "RM002", "RM003", "RM004", "RM005"
"""SQLSTATEs of our own functions."""
OWN_STATES = "RM"
"""How they all begin."""

_STREAMS: str = """
CREATE TABLE @.writers (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    label text NOT NULL,
    role name NOT NULL DEFAULT session_user,
    started timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until timestamptz NOT NULL
);

CREATE TABLE @.streams (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream_id text COLLATE "C" NOT NULL UNIQUE
        CHECK (stream_id ~ '^(traces|runs)/[0-9A-Za-z][0-9A-Za-z_-]{0,63}$'),
    epoch bigint NOT NULL DEFAULT 0,
    writer integer,
    records bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    head bytea,
    sealed boolean NOT NULL DEFAULT false,
    changed timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

CREATE TABLE @.records (
    stream bigint NOT NULL,
    seq bigint NOT NULL,
    epoch bigint NOT NULL,
    line bytea NOT NULL,
    PRIMARY KEY (stream, seq)
);

-- Lines stay in the row, compressed where that helps: a second table for them would double the work of an append.
ALTER TABLE @.records ALTER COLUMN line SET STORAGE MAIN;
DO $$ BEGIN
    ALTER TABLE @.records ALTER COLUMN line SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL;  -- this server was built without it
END $$;

CREATE TABLE @.blobs (
    digest bytea PRIMARY KEY CHECK (length(digest) = 32),
    size bigint NOT NULL,
    pruned boolean NOT NULL DEFAULT false,
    stored timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE @.blob_parts (
    digest bytea NOT NULL,
    part integer NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (digest, part)
);

-- A writer is a process. It holds an advisory lock as long as its connection lives, and a lease that it renews.
CREATE FUNCTION @.enter(p_label text, p_lease interval) RETURNS integer
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO @.writers (label, lease_until) VALUES (left(p_label, 200), clock_timestamp() + p_lease) RETURNING id
$$;

CREATE FUNCTION @.renew(p_writer integer, p_lease interval) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE @.writers SET lease_until = clock_timestamp() + p_lease WHERE id = p_writer
$$;

CREATE FUNCTION @.is_alive(p_writer integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF pg_try_advisory_xact_lock(hashtext('@'), p_writer) THEN
        RETURN false;  -- its connection is gone
    END IF;
    RETURN coalesce((SELECT lease_until > clock_timestamp() FROM @.writers WHERE id = p_writer), false);
END $$;

CREATE FUNCTION @.open_stream(p_stream_id text, p_writer integer)
RETURNS TABLE (stream bigint, epoch bigint, records bigint, head bytea, sealed boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    held @.streams;
BEGIN
    INSERT INTO @.streams (stream_id) VALUES (p_stream_id) ON CONFLICT (stream_id) DO NOTHING;
    SELECT * INTO STRICT held FROM @.streams s WHERE s.stream_id = p_stream_id FOR UPDATE;
    IF NOT held.sealed THEN
        IF held.writer IS NOT NULL AND held.writer <> p_writer AND @.is_alive(held.writer) THEN
            RAISE EXCEPTION 'another writer has the stream: %',
                (SELECT w.label FROM @.writers w WHERE w.id = held.writer) USING ERRCODE = 'RM001';
        END IF;
        held.epoch := held.epoch + 1;
        UPDATE @.streams s SET epoch = held.epoch, writer = p_writer WHERE s.id = held.id;
    END IF;
    RETURN QUERY SELECT held.id, held.epoch, held.records, held.head, held.sealed;
END $$;

CREATE FUNCTION @.append(
    p_stream bigint, p_epoch bigint, p_first bigint, p_prev bytea, p_lines bytea[], p_seals boolean, p_sync boolean
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held @.streams;
    added integer := array_length(p_lines, 1);
BEGIN
    IF NOT p_sync THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    UPDATE @.streams s SET
        records = p_first + added, head = sha256(p_lines[added]), sealed = p_seals, changed = clock_timestamp(),
        bytes = s.bytes + added + (SELECT sum(length(line)) FROM unnest(p_lines) AS l (line))
    WHERE s.id = p_stream AND s.epoch = p_epoch AND s.records = p_first AND s.head IS NOT DISTINCT FROM p_prev
        AND NOT s.sealed;
    IF FOUND THEN
        INSERT INTO @.records (stream, seq, epoch, line)
            SELECT p_stream, p_first + place - 1, p_epoch, line FROM unnest(p_lines) WITH ORDINALITY AS l (line, place);
        RETURN true;
    END IF;
    SELECT * INTO held FROM @.streams s WHERE s.id = p_stream;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the stream was deleted' USING ERRCODE = 'RM005';
    ELSIF held.epoch <> p_epoch THEN
        RAISE EXCEPTION 'epoch % was followed by epoch %', p_epoch, held.epoch USING ERRCODE = 'RM002';
    ELSIF held.records = p_first + added AND held.head = sha256(p_lines[added]) THEN
        RETURN false;  -- an earlier attempt was committed, but its answer was lost
    ELSIF held.sealed THEN
        RAISE EXCEPTION 'the stream is sealed' USING ERRCODE = 'RM003';
    END IF;
    RAISE EXCEPTION 'the stream has % records: expected %', held.records, p_first USING ERRCODE = 'RM004';
END $$;

-- The appends of many streams in one statement: one answer and one sync for all of them. If one of them cannot be
-- appended, none is, and the writer appends them one by one to see which.
CREATE FUNCTION @.append_all(
    p_streams bigint[], p_epochs bigint[], p_firsts bigint[], p_prevs bytea[], p_nexts bigint[], p_sizes bigint[],
    p_lasts integer[], p_seals boolean[], p_line_streams bigint[], p_line_seqs bigint[], p_line_epochs bigint[],
    p_lines bytea[], p_sync boolean
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    moved bigint;
BEGIN
    IF NOT p_sync THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    UPDATE @.streams s SET
        records = a.next, bytes = s.bytes + a.size, head = sha256(p_lines[a.last]), sealed = a.seals,
        changed = clock_timestamp()
    FROM unnest(p_streams, p_epochs, p_firsts, p_prevs, p_nexts, p_sizes, p_lasts, p_seals)
        AS a (stream, epoch, first, prev, next, size, last, seals)
    WHERE s.id = a.stream AND s.epoch = a.epoch AND s.records = a.first AND s.head IS NOT DISTINCT FROM a.prev
        AND NOT s.sealed;
    GET DIAGNOSTICS moved = ROW_COUNT;
    IF moved <> array_length(p_streams, 1) THEN
        RAISE EXCEPTION 'only % of % streams can be appended to', moved, array_length(p_streams, 1)
            USING ERRCODE = 'RM006';
    END IF;
    INSERT INTO @.records (stream, seq, epoch, line)
        SELECT * FROM unnest(p_line_streams, p_line_seqs, p_line_epochs, p_lines);
END $$;

CREATE FUNCTION @.close_stream(p_stream bigint, p_epoch bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE @.streams SET writer = NULL WHERE id = p_stream AND epoch = p_epoch
$$;

-- A blob's parts are complete when its row exists: both are written in one transaction.
CREATE FUNCTION @.put_part(p_digest bytea, p_part integer, p_data bytea) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO @.blob_parts (digest, part, data) VALUES (p_digest, p_part, p_data) ON CONFLICT DO NOTHING
$$;

CREATE FUNCTION @.put_blob(p_digest bytea, p_size bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO @.blobs (digest, size) VALUES (p_digest, p_size)
    ON CONFLICT (digest) DO UPDATE SET stored = clock_timestamp(), pruned = false
$$;

-- Whether the blob is there; then it also counts as just stored, so that a prune keeps it.
CREATE FUNCTION @.touch_blob(p_digest bytea) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE @.blobs SET stored = clock_timestamp() WHERE digest = p_digest AND NOT pruned RETURNING true
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA @ FROM PUBLIC;
"""

MIGRATIONS: tuple[str, ...] = (_STREAMS, INDEX, CHECKS, TEXTS)
"""In order. A released one is never changed."""
VERSION = len(MIGRATIONS)
_PLACE = re.compile("(?<!@)@(?!@)")

_WRITER: tuple[str, ...] = (
    "enter(text, interval)",
    "renew(integer, interval)",
    "open_stream(text, integer)",
    "append(bigint, bigint, bigint, bytea, bytea[], boolean, boolean)",
    "append_all(bigint[], bigint[], bigint[], bytea[], bigint[], bigint[], integer[], boolean[], bigint[], bigint[], "
    "bigint[], bytea[], boolean)",
    "close_stream(bigint, bigint)",
    "put_part(bytea, integer, bytea)",
    "put_blob(bytea, bigint)",
    "touch_blob(bytea)",
)
_READER: tuple[str, ...] = ("update_index(integer)", "divided(text)")


@lru_cache(maxsize=256)
def in_schema(sql: str, schema: str) -> bytes:
    """The statement with each single `@` replaced by the schema, whose name was checked when the URL was parsed."""
    return _PLACE.sub(schema, sql).encode()


def found_version(connection: psycopg.Connection[Any], schema: str) -> int:
    """The version of the store; 0 if there is none."""
    there = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [f"{schema}.migrations"]).fetchone()
    if not there or not there[0]:
        return 0
    row = connection.execute(in_schema("SELECT coalesce(max(version), 0) FROM @.migrations", schema)).fetchone()
    return int(row[0]) if row else 0


def check_version(version: int, address: Address) -> None:
    """Raises `ConfigError` unless this Remora can use a store of this version."""
    if version == 0:
        raise ConfigError(f"There is no trace store at {address}", hint="Create one: `remora store init URL`")
    if version < VERSION:
        raise ConfigError(
            f"The trace store at {address} has version {version}: expected {VERSION}",
            hint="Its owner brings it up to date: `remora store init URL`",
        )
    if version > VERSION:
        raise ConfigError(
            f"The trace store at {address} has version {version}: this Remora supports versions up to {VERSION}",
            hint="Update Remora to use it",
        )


def migrate(connection: psycopg.Connection[Any], schema: str) -> tuple[int, int]:
    """Bring the schema up to date in one transaction. Returns the version before and after. Safe to repeat."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('remora migrations'), hashtext(%s))", [schema])
        before = found_version(connection, schema)
        if before == 0:
            _check_encoding(connection)
            connection.execute(in_schema("CREATE SCHEMA IF NOT EXISTS @", schema))
            connection.execute(
                in_schema(
                    "CREATE TABLE @.migrations (version integer PRIMARY KEY, applied timestamptz DEFAULT now())", schema
                )
            )
        for version, sql in enumerate(MIGRATIONS[before:], start=before + 1):
            connection.execute(in_schema(sql, schema))
            connection.execute(in_schema("INSERT INTO @.migrations (version) VALUES (%s)", schema), [version])
        if 0 < before < VERSION:
            _grant_again(connection, schema)
        return before, max(before, VERSION)


def _check_encoding(connection: psycopg.Connection[Any]) -> None:
    """Raises `ConfigError` if the database cannot hold every character that the index has."""
    row = connection.execute("SELECT current_setting('server_encoding'), current_database()").fetchone()
    encoding, database = row or ("", "")
    if encoding != "UTF8":
        raise ConfigError(
            f"The database `{database}` has the encoding `{encoding}`: expected `UTF8`",
            hint="Create another one: `CREATE DATABASE traces ENCODING 'UTF8' TEMPLATE template0`",
        )


def _grant_again(connection: psycopg.Connection[Any], schema: str) -> None:
    """Give roles their rights also on what a migration has added."""
    writers = {role for (role,) in connection.execute(in_schema(_WRITERS, schema)).fetchall()}
    readers = {role for (role,) in connection.execute(in_schema(_READERS, schema)).fetchall()}
    for role in sorted(readers | writers):
        grant(connection, schema, role, write=role in writers)


_WRITERS = """SELECT DISTINCT rolname FROM pg_proc, aclexplode(proacl) JOIN pg_roles r ON r.oid = grantee
    WHERE pronamespace = '@'::regnamespace AND proname = 'append' AND grantee <> proowner"""
_READERS = """SELECT DISTINCT rolname FROM pg_class c, aclexplode(relacl) JOIN pg_roles r ON r.oid = grantee
    WHERE c.oid = '@.records'::regclass AND grantee <> relowner"""


def grant(connection: psycopg.Connection[Any], schema: str, role: str, *, write: bool) -> None:
    """Give a role the rights of a reader; with `write`, also those of a writer. Neither can change or delete a row."""
    from psycopg import sql

    names = {"schema": sql.Identifier(schema), "role": sql.Identifier(role)}
    functions = (*_READER, *(_WRITER if write else ()))
    with connection.transaction():
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {schema} TO {role}").format(**names))
        connection.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}").format(**names))
        for function in functions:
            connection.execute(sql.SQL(f"GRANT EXECUTE ON FUNCTION {{schema}}.{function} TO {{role}}").format(**names))
