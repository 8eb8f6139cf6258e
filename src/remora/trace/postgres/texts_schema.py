"""The fourth migration: the index of a store has the text that the index of a folder has.

Before it, the beginning of a raw value was taken from `jsonb`, which orders keys anew, and a text whose beginning ended
within a character had only its ASCII. The index is built again.
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

TRUNCATE @.index_events, @.index_streams;
"""
