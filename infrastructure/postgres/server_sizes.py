"""Ask a log on a server about itself: sizes of conversations and tables, and the names of its streams."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from refold.application.maintenance.maintenance_results import FileSize, Sizes
from refold.infrastructure.event_store.envelope import EnvelopeError, parse_frame
from refold.infrastructure.maintenance.log_keeper import (
    DAMAGED,
    MESSAGE,
    Group,
    frame_kind,
    sizes_of,
)

from .connections import Address, Store, from_text, lift_time_limits, to_text
from .failures import as_log_errors
from .sealing import open_state

SIZE = 500
"""Number of rows in memory at once."""

_ROWS = """
SELECT e.originator_id, e.originator_version, e.topic, e.state, k.key FROM {stored_events} e
LEFT JOIN {payload_keys} k ON k.originator_id = e.originator_id AND k.originator_version = e.originator_version
ORDER BY e.originator_id, e.originator_version
"""
_SNAPSHOTS = """
SELECT originator_id, count(*), coalesce(sum(length(state)), 0)::bigint FROM {stored_snapshots}
GROUP BY originator_id
"""
# The partitions of a table have no size of their own name: they are counted with it. A table that was dropped since
# the moment of the query, as a rebuild drops the tables that it replaces, has no size.
_TABLES = """
SELECT coalesce(parent.relname, t.relname), sum(pg_total_relation_size(t.oid))::bigint
FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace
LEFT JOIN pg_inherits i ON i.inhrelid = t.oid LEFT JOIN pg_class parent ON parent.oid = i.inhparent
WHERE n.nspname = %s AND t.relkind = 'r'
GROUP BY 1 HAVING sum(pg_total_relation_size(t.oid)) IS NOT NULL ORDER BY 2 DESC, 1
"""


def measure(store: Store) -> Sizes:
    """Measure the sizes of a log. Every event is read, because a sealed one does not say what it is."""
    with store.transaction() as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        lift_time_limits(connection)
        return sizes_of(_groups(store), _snapshots(store), {}, list(_tables(store)))


def _groups(store: Store) -> Sequence[Group]:
    counts: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for stored, version, name, sealed, key in store.stream(_ROWS, None, SIZE):
        stream = from_text(stored)
        state = open_state(stream, version, sealed, key)
        kind = frame_kind(state)
        count = counts[stream, name, kind]
        count[0] += 1
        count[1] += len(sealed)
        if name == MESSAGE and kind != DAMAGED:
            count[2] += _message_bytes(state)
    return [Group(*kind, *count) for kind, count in counts.items()]


def _message_bytes(state: bytes) -> int:
    """Return the size of a message as JSON; 0 if nothing is left of it."""
    try:
        message = json.loads(parse_frame(state).payload)["message"]
    except (EnvelopeError, ValueError, LookupError, TypeError):
        return 0
    compact = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return len(compact.encode("utf-8", "surrogatepass"))


def _snapshots(store: Store) -> Mapping[str, tuple[int, int]]:
    if store.is_replica:
        return {}  # A replica has no tables that are not in the write-ahead log.
    return {from_text(stream): (count, size) for stream, count, size in store.rows(_SNAPSHOTS)}


def _tables(store: Store) -> Iterator[FileSize]:
    schema = store.address.schema
    for name, size in store.rows(_TABLES, (schema,)):
        yield FileSize(name=name, path=Path(f"{schema}.{name}"), bytes=size)


# Each name is looked up in the index, so the time does not depend on the number of events.
_NAMES = """
WITH RECURSIVE names(name) AS (
    SELECT min(originator_id) FROM {stored_events} WHERE originator_id >= %s
    UNION ALL
    SELECT (SELECT min(originator_id) FROM {stored_events} WHERE originator_id > name)
    FROM names WHERE name IS NOT NULL
)
SELECT name FROM names WHERE name IS NOT NULL LIMIT %s
"""


def stream_names(address: Address, begin: str, most: int) -> Sequence[str]:
    """Return stream names in their order, from the first one that is not before ``begin``.

    Raises:
        LogError: the server cannot be used, or has no log.
    """
    with closing(Store(address)) as store, as_log_errors(address.shown):
        return [from_text(name) for (name,) in store.rows(_NAMES, (to_text(begin), most))]
