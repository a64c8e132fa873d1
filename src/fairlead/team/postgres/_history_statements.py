"""The SQL statements of the history. Ids are compared byte by byte (`COLLATE "C"`), as Python compares them."""

from __future__ import annotations

from typing import Final

APPEND: Final = """
WITH recorded AS (
    INSERT INTO fairlead.events (host, id, at, session, event, verdict, stage, text, body, signature)
    SELECT %(host)b::text, * FROM unnest(
        %(ids)b::text[], %(times)b::float8[], %(event_sessions)b::text[], %(kinds)b::text[], %(verdicts)b::text[],
        %(stages)b::int2[], %(texts)b::text[], %(bodies)b::bytea[], %(signatures)b::bytea[]
    )
    ON CONFLICT (host, id) DO UPDATE
    SET verdict = excluded.verdict, stage = excluded.stage, text = excluded.text, body = excluded.body,
        signature = excluded.signature, at = excluded.at, session = excluded.session, event = excluded.event
    WHERE events.stage < excluded.stage
), summarized AS (
    INSERT INTO fairlead.history (host, session, started, last, folder, version, body, signature)
    SELECT %(host)b::text, * FROM unnest(
        %(sessions)b::text[], %(started)b::float8[], %(last)b::float8[], %(folders)b::text[], %(versions)b::int8[],
        %(session_bodies)b::bytea[], %(session_signatures)b::bytea[]
    )
    ON CONFLICT (host, session) DO UPDATE
    SET started = excluded.started, last = excluded.last, folder = excluded.folder, version = excluded.version,
        body = excluded.body, signature = excluded.signature
    WHERE history.version < excluded.version
)
INSERT INTO fairlead.marks (host, segment, position) VALUES (%(host)b::text, %(segment)b::int8, %(position)b::int8)
ON CONFLICT (host) DO UPDATE SET segment = excluded.segment, position = excluded.position
"""
MARK: Final = "SELECT segment, position FROM fairlead.marks WHERE host = %b::text"

_SESSION: Final = "host, session, started, last, folder, version, body, signature"
_EVENT: Final = "host, id, at, session, event, verdict, stage, text, body, signature"
_IN_FOLDER: Final = """(%(folder)b::text = '' OR folder = %(folder)b::text
    OR starts_with(folder, rtrim(%(folder)b::text, '/') || '/'))"""

SESSIONS: Final = f"""
SELECT {_SESSION} FROM fairlead.history
WHERE host = ANY (%(hosts)b::text[]) AND last >= %(since)b::float8
    AND (%(until)b::float8 = 0 OR started < %(until)b::float8) AND {_IN_FOLDER}
    AND (last, session COLLATE "C", host COLLATE "C")
        < (%(before_time)b::float8, %(before_id)b::text, %(before_host)b::text)
ORDER BY last DESC, session COLLATE "C" DESC, host COLLATE "C" DESC LIMIT %(limit)b::int8
"""
FIND_SESSIONS: Final = f"""
SELECT {_SESSION} FROM fairlead.history
WHERE host = ANY (%b::text[]) AND starts_with(session, %b::text)
ORDER BY session = %b::text DESC, last DESC LIMIT %b::int8
"""
EVENTS: Final = f"""
SELECT {_EVENT} FROM fairlead.events
WHERE host = %(host)b::text AND session = %(session)b::text
    AND (at, id COLLATE "C") < (%(before_time)b::float8, %(before_id)b::text)
ORDER BY at DESC, id COLLATE "C" DESC LIMIT %(limit)b::int8
"""
SEARCH: Final = f"""
SELECT {_EVENT} FROM fairlead.events
WHERE host = ANY (%(hosts)b::text[]) AND at >= %(since)b::float8 AND at < %(until)b::float8
    AND text <> '' AND text ILIKE %(pattern)b::text
    AND (at, id COLLATE "C", host COLLATE "C")
        < (%(before_time)b::float8, %(before_id)b::text, %(before_host)b::text)
    AND (%(folder)b::text = '' OR EXISTS (
        SELECT FROM fairlead.history
        WHERE history.host = events.host AND history.session = events.session AND {_IN_FOLDER}
    ))
ORDER BY at DESC, id COLLATE "C" DESC, host COLLATE "C" DESC LIMIT %(limit)b::int8
"""
SESSIONS_OF: Final = f"""
SELECT {_SESSION} FROM fairlead.history
WHERE (host, session) IN (SELECT * FROM unnest(%b::text[], %b::text[]))
"""

_TOO_OLD: Final = """(host = %(host)s AND {time} < %(before)s
    OR {time} < %(before)s AND host IN (SELECT id FROM fairlead.hosts WHERE seen < %(before)s)
    OR host NOT IN (SELECT id FROM fairlead.hosts))"""
PRUNE: Final = (
    f"""
DELETE FROM fairlead.events WHERE (host, id) IN (
    SELECT host, id FROM fairlead.events WHERE {_TOO_OLD.format(time="at")} LIMIT %(step)s
)
""",
    f"""
DELETE FROM fairlead.history WHERE (host, session) IN (
    SELECT host, session FROM fairlead.history WHERE {_TOO_OLD.format(time="last")} LIMIT %(step)s
)
""",
    """
DELETE FROM fairlead.events WHERE (host, id) IN (
    SELECT host, id FROM fairlead.events WHERE host = %(host)s ORDER BY at DESC OFFSET %(max_events)s LIMIT %(step)s
)
""",
    "DELETE FROM fairlead.marks WHERE host NOT IN (SELECT id FROM fairlead.hosts)",
)
