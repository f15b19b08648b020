"""Checking a whole log: every digest, every link, every gap, and the index of keys."""

from collections.abc import Iterator
from typing import NamedTuple

from refold.application.event_log import Damage
from refold.domain.events import MessageAppended

from .codec import CodecError, NewerShape
from .envelope import GENESIS, EnvelopeError
from .mapper import EventMapper, link_of
from .sqlite import LogRecorder

BATCH = 1_000
LOG = "log"


class _Seen(NamedTuple):
    version: int = 0
    link: str = GENESIS
    length: int = 0


def check_rows(recorder: LogRecorder, mapper: EventMapper) -> Iterator[Damage]:
    """Everything that is wrong with the stored events, in the order of the log."""
    seen: dict[str, _Seen] = {}
    keys: dict[str, dict[str, int]] = {}
    after = 0
    while True:
        rows = recorder.select_notifications(after, BATCH, inclusive_of_start=False)
        for row in rows:
            thread_id = str(row.originator_id)
            before = seen.get(thread_id, _Seen())
            version = row.originator_version
            if version != before.version + 1:
                yield Damage(
                    LOG,
                    thread_id,
                    before.version + 1,
                    "gap",
                    f"event {version} follows event {before.version}",
                )
            length = before.length
            try:
                recorded = mapper.to_domain_event(row)
            except EnvelopeError as error:
                yield Damage(LOG, thread_id, version, "digest", str(error))
            except NewerShape as error:
                yield Damage(LOG, thread_id, version, "newer", str(error))
            except CodecError as error:
                yield Damage(LOG, thread_id, version, "unreadable", str(error))
            else:
                if version == before.version + 1 and recorded.previous != before.link:
                    yield Damage(
                        LOG, thread_id, version, "chain", "it does not follow the event before"
                    )
                if isinstance(recorded.event, MessageAppended):
                    length = recorded.event.position + 1
                    if recorded.event.key is not None:
                        keys.setdefault(thread_id, {})[recorded.event.key] = version
            seen[thread_id] = _Seen(version, link_of(row), length)
        if len(rows) < BATCH:
            break
        after = rows[-1].id
    for thread_id, expected in keys.items():
        if recorder.versions_of_keys(thread_id, list(expected)) != expected:
            yield Damage(
                LOG, thread_id, 0, "keys", "the index of message keys differs from the log"
            )
