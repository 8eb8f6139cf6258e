"""The fourth migration: the index of a store has the text that the index of a folder has.

Before it, the beginning of a raw value was taken from `jsonb`, which orders keys anew, a text whose beginning ended
within a character had only its ASCII, and only ASCII divided words in some locales. The index is built again, which
a person can now do at any time.
"""

from __future__ import annotations

TEXTS = r"""
-- Bytes as text: as UTF-8 where they are, also if the last character is cut; else only the ASCII among them.
CREATE OR REPLACE FUNCTION @.as_text(p_data bytea) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    FOR cut IN 0..3 LOOP
        BEGIN
            RETURN convert_from(substring(p_data FROM 1 FOR length(p_data) - cut), 'UTF8');
        EXCEPTION WHEN OTHERS THEN
            NULL;
        END;
    END LOOP;
    RETURN regexp_replace(encode(p_data, 'escape'), '\\[0-7]{3}', ' ', 'g');
END $$;

-- A line, with a raw value that is no text as the beginning of its JSON: `jsonb` would order its keys anew.
CREATE OR REPLACE FUNCTION @.as_json(p_line bytea) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    said text;
    found jsonb;
BEGIN
    said := replace(convert_from(p_line, 'UTF8'), '\u0000', '\ufffd');
    found := said::jsonb;
    IF jsonb_typeof(found #> '{data,raw}') NOT IN ('string', 'null') THEN
        found := jsonb_set(found, '{data,raw}', to_jsonb(left((said::json #> '{data,raw}')::text, 4096)));
    END IF;
    RETURN found;
EXCEPTION WHEN OTHERS THEN
    RETURN '{}'::jsonb;
END $$;

-- Words are runs of letters and digits, as SQLite has them: quotes, dashes, arrows, lines and symbols divide them too.
CREATE OR REPLACE FUNCTION @.divided(p_text text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(lower(p_text), '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\xd7\xf7'
        '\u2000-\u206f\u20a0-\u20cf\u2190-\u245f\u2500-\u2775\u2794-\u2bff\u3000-\u3004\u3008-\u3020\ufeff-\uff0f'
        '\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]+', ' ', 'g')
$$;

-- It waits for whoever fills the index, whose events would otherwise stay when their stream is forgotten.
CREATE OR REPLACE FUNCTION @.forget_index() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('remora index'), hashtext('@'));
    DELETE FROM @.index_events;
    DELETE FROM @.index_streams;
END $$;

TRUNCATE @.index_events, @.index_streams;
"""
