"""Checking a whole log: every digest, every link, every gap, and the index of keys."""

from collections.abc import Iterator

from eventsourcing.persistence import StoredEvent

from refold.application.event_log import Damage
from refold.domain.events import MessageAppended

from .codec import CodecError, NewerShape
from .envelope import EnvelopeError
from .mapper import EventMapper, RecordedEvent, link_of
from .sqlite import Head, LogRecorder

BATCH = 1_000
LOG = "log"


def check_rows(recorder: LogRecorder, mapper: EventMapper) -> Iterator[Damage]:
    """Everything that is wrong with the stored events, in the order of the log."""
    heads: dict[str, Head] = {}
    keys: set[tuple[str, str, int]] = set()
    unread: set[tuple[str, int]] = set()
    after, rows = 0, recorder.select_notifications(0, BATCH, inclusive_of_start=False)
    while rows:
        for row in rows:
            stream = str(row.originator_id)
            before = heads.get(stream, Head())
            heads[stream] = Head(row.originator_version, link_of(row))
            recorded, damage = _opened(mapper, row)
            if row.originator_version != before.version + 1:
                detail = f"event {row.originator_version} follows event {before.version}"
                yield Damage(LOG, stream, before.version + 1, "gap", detail)
            elif recorded is not None and recorded.previous != before.link:
                detail = "it does not follow the event before"
                yield Damage(LOG, stream, row.originator_version, "chain", detail)
            if damage is not None:
                unread.add((stream, row.originator_version))
                yield damage
            match recorded:
                case RecordedEvent(event=MessageAppended(key=str(key))):
                    keys.add((stream, key, row.originator_version))
                case _:
                    pass
        after = rows[-1].id
        rows = recorder.select_notifications(after, BATCH, inclusive_of_start=False)
    yield from _check_keys(recorder, keys, unread)


def _opened(mapper: EventMapper, row: StoredEvent) -> tuple[RecordedEvent | None, Damage | None]:
    place = (LOG, str(row.originator_id), row.originator_version)
    try:
        return mapper.to_domain_event(row), None
    except EnvelopeError as error:
        return None, Damage(*place, "digest", str(error))
    except NewerShape as error:
        return None, Damage(*place, "newer", str(error))
    except CodecError as error:
        return None, Damage(*place, "unreadable", str(error))


def _check_keys(
    recorder: LogRecorder, expected: set[tuple[str, str, int]], unread: set[tuple[str, int]]
) -> Iterator[Damage]:
    stored = {k for k in recorder.all_keys() if (k[0], k[2]) not in unread}
    for stream, key, version in sorted(stored - expected):
        detail = f"the index of keys knows the message {key!r} here, the log does not"
        yield Damage(LOG, stream, version, "missing", detail)
    for stream, key, version in sorted(expected - stored):
        detail = f"the key {key!r} of this message is not in the index of keys"
        yield Damage(LOG, stream, version, "keys", detail)
