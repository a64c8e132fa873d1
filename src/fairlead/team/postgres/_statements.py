"""The SQL statements of the relay. Each is one round trip, and notifies the hosts that its change concerns.

`%b` passes a value in binary form, which avoids encoding bytes as text.
"""

from __future__ import annotations

from typing import Final

NOW: Final = "extract(epoch FROM clock_timestamp())::float8"
HOST_CHANNEL: Final = "fairlead_host_"
"""The prefix of the name of a host's channel. The host's id follows."""
TEAM_CHANNEL: Final = "fairlead_team"
LEASE_CHANNEL: Final = "fairlead_leases"
PACKETS_NOTICE: Final = "parcels:"
PROGRESS_NOTICE: Final = "progress:"
"""`…_NOTICE`: the prefixes of a notification to a host, which say what it is about. The id of the sender follows.

Older versions send only the id.
"""

# -- connecting -------------------------------------------------------------------------------------------

FOUND_TEAM: Final = f"""
INSERT INTO fairlead.team (id, founded) VALUES (%s, {NOW}) ON CONFLICT DO NOTHING RETURNING id
"""
READ_TEAM: Final = "SELECT id FROM fairlead.team"
READ_HOST: Final = "SELECT name, key, boot FROM fairlead.hosts WHERE id = %s FOR UPDATE"
ADD_HOST: Final = f"""
INSERT INTO fairlead.hosts (id, name, key, version, boot, joined, seen) VALUES (%s, %s, %s, %s, %s, {NOW}, {NOW})
"""
RENEW_HOST: Final = f"UPDATE fairlead.hosts SET version = %s, boot = %s, seen = {NOW} WHERE id = %s"
IS_REMOVED: Final = "SELECT 1 FROM fairlead.certificates WHERE host = %s AND verdict = 'removed' LIMIT 1"
TOUCH: Final = f"UPDATE fairlead.hosts SET seen = {NOW} WHERE id = %s"
READ_CLOCK: Final = f"SELECT {NOW}"

# -- packets ----------------------------------------------------------------------------------------------

PUSH: Final = f"""
WITH given AS (
    SELECT * FROM unnest(%b::text[], %b::int8[], %b::text[], %b::bytea[], %b::bytea[])
        AS given (target, seq, kind, body, signature)
), stored AS (
    INSERT INTO fairlead.parcels (origin, target, seq, kind, body, signature, at)
    SELECT %b::text, given.target, given.seq, given.kind, given.body, given.signature, {NOW}
    FROM given LEFT JOIN fairlead.progress ON progress.origin = %b::text AND progress.target = given.target
    WHERE given.seq > coalesce(progress.seq, 0)
    ON CONFLICT DO NOTHING
    RETURNING target
)
SELECT pg_notify('{HOST_CHANNEL}' || target, '{PACKETS_NOTICE}' || %b::text)
FROM (SELECT DISTINCT target FROM stored) AS targets
"""
MISSING: Final = """
SELECT seq FROM generate_series(%b::int8, %b::int8) AS numbers (seq)
WHERE seq > coalesce((SELECT seq FROM fairlead.progress WHERE origin = %b::text AND target = %b::text), 0)
    AND NOT EXISTS (
        SELECT FROM fairlead.parcels WHERE target = %b::text AND origin = %b::text AND parcels.seq = numbers.seq
    )
ORDER BY seq
"""
PULL: Final = """
SELECT origin, seq, kind, body, signature FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY origin, seq) AS total FROM (
        SELECT origin, seq, kind, body, signature FROM fairlead.parcels
        WHERE target = %b::text AND origin <> ALL (%b::text[]) ORDER BY origin, seq LIMIT %b::int8
    ) AS waiting
) AS measured
WHERE total <= %b::int8 OR total = octet_length(body)
ORDER BY origin, seq
"""
"""The last value limits the total bytes of the bodies. The first packet is returned even if it is larger."""
ACKNOWLEDGE: Final = f"""
WITH given AS (SELECT * FROM unnest(%b::text[], %b::int8[]) AS given (origin, seq)
), recorded AS (
    INSERT INTO fairlead.progress (origin, target, seq) SELECT origin, %b::text, seq FROM given
    ON CONFLICT (origin, target) DO UPDATE SET seq = excluded.seq WHERE progress.seq < excluded.seq
), removed AS (
    DELETE FROM fairlead.parcels USING given
    WHERE parcels.target = %b::text AND parcels.origin = given.origin AND parcels.seq <= given.seq
)
SELECT pg_notify('{HOST_CHANNEL}' || origin, '{PROGRESS_NOTICE}' || %b::text) FROM given
"""
REFUSE: Final = "DELETE FROM fairlead.parcels WHERE target = %s AND origin = %s AND seq <= %s"
PROGRESS: Final = "SELECT target, seq FROM fairlead.progress WHERE origin = %s"

# -- the registry -----------------------------------------------------------------------------------------

HOSTS: Final = "SELECT id, name, key, seen, version FROM fairlead.hosts ORDER BY joined, id"
CERTIFICATES: Final = """
SELECT host, name, key, verdict, by, at, signature FROM fairlead.certificates ORDER BY id
"""
ADD_CERTIFICATE: Final = f"""
WITH added AS (
    INSERT INTO fairlead.certificates (host, name, key, verdict, by, at, signature)
    VALUES (%b::text, %b::text, %b::bytea, %b::text, %b::text, %b::float8, %b::bytea)
    ON CONFLICT DO NOTHING RETURNING id
)
SELECT pg_notify('{TEAM_CHANNEL}', %b::text) FROM added
"""
PUBLISH: Final = f"""
WITH published AS (
    INSERT INTO fairlead.snapshots (host, kind, version, body, signature, at)
    VALUES (%b::text, %b::text, %b::int8, %b::bytea, %b::bytea, {NOW})
    ON CONFLICT (host, kind) DO UPDATE
    SET version = excluded.version, body = excluded.body, signature = excluded.signature, at = excluded.at
    WHERE snapshots.version < excluded.version
    RETURNING host
)
SELECT pg_notify('{TEAM_CHANNEL}', host) FROM published
"""
SNAPSHOTS: Final = """
SELECT snapshots.host, snapshots.kind, snapshots.version, body, signature, at FROM fairlead.snapshots
LEFT JOIN unnest(%b::text[], %b::text[], %b::int8[]) AS known (host, kind, version)
    ON known.host = snapshots.host AND known.kind = snapshots.kind
WHERE snapshots.host <> %b::text AND snapshots.version > coalesce(known.version, -1)
ORDER BY snapshots.host, snapshots.kind
"""
DELETE_HOST: Final = f"""
WITH deleted_host AS (DELETE FROM fairlead.hosts WHERE id = %b::text),
    deleted_snapshots AS (DELETE FROM fairlead.snapshots WHERE host = %b::text),
    deleted_packets AS (DELETE FROM fairlead.parcels WHERE target = %b::text),
    deleted_progress AS (DELETE FROM fairlead.progress WHERE target = %b::text OR origin = %b::text)
SELECT pg_notify('{TEAM_CHANNEL}', %b::text)
"""
AGES: Final = f"SELECT id, greatest(0, {NOW} - seen) FROM fairlead.hosts"

# -- its size ---------------------------------------------------------------------------------------------

PRUNE_PACKETS: Final = """
DELETE FROM fairlead.parcels WHERE (target, origin, seq) IN (
    SELECT target, origin, seq FROM fairlead.parcels
    WHERE target IN (SELECT id FROM fairlead.hosts WHERE seen < %(before)s) LIMIT %(step)s
)
"""
LOAD: Final = f"""
SELECT (SELECT count(*) FROM fairlead.parcels),
    (SELECT coalesce(greatest(0, {NOW} - min(at)), 0) FROM fairlead.parcels),
    (SELECT count(*) FROM fairlead.events),
    (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::int8 FROM pg_class
        WHERE relnamespace = 'fairlead'::regnamespace AND relkind = 'r')
"""
