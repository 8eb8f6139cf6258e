"""The third migration: functions for writers that trust no argument.

Before it, a writer could give `append_all` lines of streams that the call did not check, and add parts to a blob that
was complete.
"""

from __future__ import annotations

CHECKS = r"""
-- The appends of many streams in one statement: one answer and one sync for all of them. If one of them cannot be
-- appended, none is, and the writer appends them one by one to see which. The lines fill exactly the positions that
-- were checked.
CREATE OR REPLACE FUNCTION @.append_all(
    p_streams bigint[], p_epochs bigint[], p_firsts bigint[], p_prevs bytea[], p_nexts bigint[], p_sizes bigint[],
    p_lasts integer[], p_seals boolean[], p_line_streams bigint[], p_line_seqs bigint[], p_line_epochs bigint[],
    p_lines bytea[], p_sync boolean
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    moved bigint;
    added bigint;
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
    IF moved <> cardinality(p_streams) THEN
        RAISE EXCEPTION 'only % of % streams can be appended to', moved, cardinality(p_streams)
            USING ERRCODE = 'RM006';
    END IF;
    INSERT INTO @.records (stream, seq, epoch, line)
        SELECT l.stream, l.seq, l.epoch, l.line
        FROM unnest(p_line_streams, p_line_seqs, p_line_epochs, p_lines) AS l (stream, seq, epoch, line)
        JOIN unnest(p_streams, p_epochs, p_firsts, p_nexts) AS a (stream, epoch, first, next)
            ON l.stream = a.stream AND l.epoch = a.epoch AND l.seq >= a.first AND l.seq < a.next;
    GET DIAGNOSTICS added = ROW_COUNT;
    IF added <> cardinality(p_lines)
        OR added <> (SELECT coalesce(sum(next - first), 0) FROM unnest(p_firsts, p_nexts) AS a (first, next)) THEN
        RAISE EXCEPTION 'a line belongs to no stream of the call' USING ERRCODE = 'RM006';
    END IF;
END $$;

-- A blob's parts are complete when its row exists: both are written in one transaction. Then no part is added.
CREATE OR REPLACE FUNCTION @.put_part(p_digest bytea, p_part integer, p_data bytea) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO @.blob_parts (digest, part, data)
        SELECT p_digest, p_part, p_data
        WHERE NOT EXISTS (SELECT FROM @.blobs b WHERE b.digest = p_digest AND NOT b.pruned)
    ON CONFLICT DO NOTHING
$$;

-- The bytes of a large blob are not put together here; readers check them.
CREATE OR REPLACE FUNCTION @.put_blob(p_digest bytea, p_size bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_size bigint;
BEGIN
    SELECT coalesce(sum(length(data)), 0) INTO found_size FROM @.blob_parts WHERE digest = p_digest;
    IF found_size <> p_size OR (p_size <= 64 * 1024 * 1024 AND p_digest <> (
        SELECT sha256(coalesce(string_agg(data, ''::bytea ORDER BY part), ''::bytea))
        FROM @.blob_parts WHERE digest = p_digest
    )) THEN
        RAISE EXCEPTION 'the parts of the blob are not those of its digest' USING ERRCODE = 'RM007';
    END IF;
    INSERT INTO @.blobs (digest, size) VALUES (p_digest, p_size)
    ON CONFLICT (digest) DO UPDATE SET stored = clock_timestamp(), pruned = false;
END $$;
"""
