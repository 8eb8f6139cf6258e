"""The second migration: the index of a Postgres store. It is derived from the records and can be rebuilt.

Readers bring it up to date before they ask (`update_index`), so appends pay nothing for it. It takes the same parts of
an event as the SQLite index of a state folder. The functions that parse never fail: what is not plain JSON has no text.
"""

from __future__ import annotations

INDEX = r"""
CREATE TABLE @.index_streams (
    stream bigint PRIMARY KEY,
    records bigint NOT NULL,
    run_id text NOT NULL,
    agent_id text NOT NULL,
    operation text NOT NULL,
    node_id text NOT NULL,
    started text COLLATE "C" NOT NULL,
    outcome text NOT NULL DEFAULT '',
    changes bigint NOT NULL DEFAULT 0,
    name text NOT NULL DEFAULT '',
    goal text NOT NULL DEFAULT '',
    ended text NOT NULL DEFAULT '',
    turns bigint NOT NULL DEFAULT 0,
    tokens bigint NOT NULL DEFAULT 0,
    model text NOT NULL DEFAULT '',
    verdict text NOT NULL DEFAULT '',
    sort_key text COLLATE "C" NOT NULL
);
CREATE INDEX ON @.index_streams (sort_key);
CREATE INDEX ON @.index_streams (run_id);

CREATE TABLE @.index_events (
    stream bigint NOT NULL,
    seq bigint NOT NULL,
    ts text COLLATE "C" NOT NULL,
    type text NOT NULL,
    turn bigint,
    tool text,
    outcome text,
    run_id text NOT NULL,
    operation text NOT NULL,
    node_id text NOT NULL,
    words tsvector,
    PRIMARY KEY (stream, seq)
);
CREATE INDEX ON @.index_events USING gin (words);

CREATE TABLE @.pruned_streams (
    stream_id text COLLATE "C" PRIMARY KEY,
    pruned timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The functions that parse have no search path of their own, so that the server can inline them. `update_index`, which
-- runs with the owner's rights, has one.
-- Bytes as text: as UTF-8 where they are, else only the ASCII among them.
CREATE FUNCTION @.as_text(p_data bytea) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN convert_from(p_data, 'UTF8');
EXCEPTION WHEN OTHERS THEN
    RETURN regexp_replace(encode(p_data, 'escape'), '\\[0-7]{3}', ' ', 'g');
END $$;

CREATE FUNCTION @.as_json(p_line bytea) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN replace(convert_from(p_line, 'UTF8'), '\u0000', '\ufffd')::jsonb;
EXCEPTION WHEN OTHERS THEN
    RETURN '{}'::jsonb;
END $$;

-- A value, if it is a string.
CREATE FUNCTION @.as_string(p_value jsonb) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN jsonb_typeof(p_value) = 'string' THEN p_value #>> '{}' END
$$;

-- Words are runs of letters and digits. Everything else in ASCII divides them.
CREATE FUNCTION @.divided(p_text text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(lower(p_text), '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+', ' ', 'g')
$$;

-- The order of recording: the id, or an id made of the time for another name.
CREATE FUNCTION @.sort_key(p_name text, p_ts text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    letters text := '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
    ms bigint;
BEGIN
    IF p_name ~ '^[0-7][0-9A-HJKMNP-TV-Z]{25}$' THEN
        RETURN p_name;
    END IF;
    ms := greatest(floor(extract(epoch FROM p_ts::timestamptz) * 1000)::bigint, 0);
    RETURN (
        SELECT string_agg(substr(letters, ((ms >> (45 - 5 * k)) & 31)::integer + 1, 1), '' ORDER BY k)
        FROM generate_series(0, 9) AS places (k)
    ) || repeat('0', 16);
EXCEPTION WHEN OTHERS THEN
    RETURN '';
END $$;

CREATE FUNCTION @.raw_text(p_data jsonb) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN p_data ? 'raw' AND p_data -> 'raw' <> 'null' THEN
            left(coalesce(@.as_string(p_data -> 'raw'), (p_data -> 'raw')::text), 4096)
        WHEN p_data #>> '{raw_ref,encoding}' IN ('utf-8', 'json', 'exact-json')
                AND p_data #>> '{raw_ref,blob}' ~ '^sha256:[0-9a-f]{64}$' THEN
            (SELECT left(@.as_text(substring(b.data FROM 1 FOR 16384)), 4096) FROM @.blob_parts b
             WHERE b.digest = decode(right(p_data #>> '{raw_ref,blob}', 64), 'hex') AND b.part = 0)
    END
$$;

CREATE FUNCTION @.event_words(p_data jsonb) RETURNS tsvector
LANGUAGE sql STABLE AS $$
    SELECT to_tsvector('simple', @.divided(nullif(string_agg(left(part, 4096), ' '), '')))
    FROM (VALUES
        (@.as_string(p_data -> 'goal')), (@.as_string(p_data -> 'text')), (@.as_string(p_data -> 'message')),
        (@.as_string(p_data -> 'summary')), (@.as_string(p_data -> 'reason')),
        (@.as_string(p_data #> '{result,summary}')), (@.as_string(p_data #> '{delta,action,summary}')),
        (@.as_string(p_data #> '{delta,error,set}')), (@.raw_text(p_data))
    ) AS texts (part)
$$;

CREATE FUNCTION @.update_index(p_limit integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    added bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('remora index'), hashtext('@'));
    CREATE TEMPORARY TABLE new_events ON COMMIT DROP AS
        SELECT r.stream, r.seq, s.stream_id, @.as_json(r.line) AS line
        FROM @.streams s
        LEFT JOIN @.index_streams i ON i.stream = s.id
        JOIN @.records r ON r.stream = s.id AND r.seq >= coalesce(i.records, 0) AND r.seq < s.records
        WHERE s.records > coalesce(i.records, 0)
        ORDER BY r.stream, r.seq LIMIT p_limit;
    SELECT count(*) INTO added FROM new_events;
    IF added = 0 THEN
        DROP TABLE new_events;
        RETURN 0;
    END IF;
    INSERT INTO @.index_events
        SELECT n.stream, n.seq,
            coalesce(@.as_string(line -> 'ts'), ''), coalesce(@.as_string(line -> 'type'), ''),
            CASE WHEN line ->> 'turn' ~ '^[0-9]{1,18}$' THEN (line ->> 'turn')::bigint
                 WHEN NOT line ? 'turn' THEN 0 END,
            @.as_string(line #> '{data,tool}'), @.as_string(line #> '{data,outcome}'),
            coalesce(@.as_string(line -> 'run_id'), ''), coalesce(@.as_string(line -> 'operation'), ''),
            coalesce(@.as_string(line -> 'node_id'), ''),
            @.event_words(line -> 'data')
        FROM new_events n;
    INSERT INTO @.index_streams AS i
        (stream, records, run_id, agent_id, operation, node_id, started, outcome, changes, name, goal, model, sort_key)
        SELECT n.stream, 0, coalesce(@.as_string(line -> 'run_id'), ''), coalesce(@.as_string(line -> 'agent_id'), ''),
            coalesce(@.as_string(line -> 'operation'), ''), coalesce(@.as_string(line -> 'node_id'), ''),
            coalesce(@.as_string(line -> 'ts'), ''), '', 0,
            left(coalesce(@.as_string(line #> '{data,name}'), @.as_string(line #> '{data,parent,title}'), ''), 200),
            left(coalesce(@.as_string(line #> '{data,goal}'), ''), 200),
            left(coalesce(nullif(@.as_string(line #> '{data,model,model}'), ''),
                nullif(@.as_string(line #> '{data,model,policy}'), ''), @.as_string(line #> '{data,policy}'), ''), 200),
            @.sort_key(split_part(stream_id, '/', 2), coalesce(@.as_string(line -> 'ts'), ''))
        FROM new_events n WHERE n.seq = 0;
    UPDATE @.index_streams i SET
        records = i.records + n.added,
        changes = i.changes + n.changes,
        outcome = coalesce(n.outcome, i.outcome),
        verdict = coalesce(n.verdict, i.verdict),
        ended = n.ended,
        turns = greatest(i.turns, n.turns),
        tokens = least(i.tokens + n.tokens, 9223372036854775807)
    FROM (
        SELECT e.stream, count(*) AS added,
            count(*) FILTER (WHERE jsonb_typeof(line #> '{data,files}') = 'array'
                             AND line #> '{data,files}' <> '[]') AS changes,
            (array_agg(coalesce(@.as_string(line #> '{data,outcome}'), 'success') ORDER BY e.seq DESC)
             FILTER (WHERE line ->> 'type' IN ('agent_end', 'run_end')))[1] AS outcome,
            (array_agg(left(coalesce(@.as_string(line #> '{data,verdict}'), ''), 200) ORDER BY e.seq DESC)
             FILTER (WHERE line ->> 'type' IN ('agent_end', 'run_end')))[1] AS verdict,
            (array_agg(coalesce(@.as_string(line -> 'ts'), '') ORDER BY e.seq DESC))[1] AS ended,
            coalesce(max(CASE WHEN line ->> 'turn' ~ '^[0-9]{1,18}$' THEN (line ->> 'turn')::bigint END), 0) AS turns,
            coalesce(sum(CASE WHEN line ->> 'type' = 'model_request'
                AND jsonb_typeof(line #> '{data,tokens,total}') = 'number'
                AND line #>> '{data,tokens,total}' ~ '^[0-9]{1,15}$'
                THEN (line #>> '{data,tokens,total}')::bigint END), 0)::bigint AS tokens
        FROM new_events e GROUP BY e.stream
    ) n WHERE i.stream = n.stream;
    DROP TABLE new_events;
    RETURN added;
END $$;

CREATE FUNCTION @.forget_index() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM @.index_events;
    DELETE FROM @.index_streams
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA @ FROM PUBLIC;
"""
