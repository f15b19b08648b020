"""Which stored events are not read every day: what lies before the live part of a conversation."""

from typing import NamedTuple

from refold.application.errors import LogDamaged
from refold.domain.conversation import Conversation
from refold.infrastructure.log.file.retries import retrying
from refold.infrastructure.log.file.sqlite import LogRecorder
from refold.infrastructure.log.loading import StreamLoader
from refold.infrastructure.log.snapshots import SnapshotStore
from refold.infrastructure.log.stored.envelope import is_place


class Old(NamedTuple):
    """What of a conversation is not read every day."""

    before: int
    """All versions below this one,"""
    in_use: frozenset[int]
    """but not these."""


def old_versions(
    recorder: LogRecorder, snapshots: SnapshotStore, loader: StreamLoader, keep: int
) -> dict[str, Old]:
    """Of each conversation what is not read every day, and not among the last ``keep`` events.

    Conversations that are damaged, or of which everything is read, are left out.
    """
    newest = _newest(recorder)
    found: dict[str, Old] = {}
    for stream, version in newest:
        known = snapshots.newest(stream, None)
        try:
            state = loader.load(stream).loaded.state if known is None else known.state
        except LogDamaged:
            continue
        if not state.older_live:
            found[stream] = Old(min(state.live_from, version + 1 - keep), _in_use(state))
    return found


def _in_use(state: Conversation) -> frozenset[int]:
    """What lies before the live part and is read with it all the same."""
    live = {version for m in state.live for version in (m.version, *m.offloads)}
    pins = {pin.version for pin in state.pins}
    summary = {state.summary.version} if state.summary else set[int]()
    # Of the event before the first, the link is read.
    return frozenset({*live, *pins, *summary, state.live_from - 1})


@retrying
def _newest(recorder: LogRecorder) -> list[tuple[str, int]]:
    with recorder.datastore.transaction(commit=False) as c:
        c.execute("SELECT originator_id, max(originator_version) FROM stored_events GROUP BY 1")
        rows = ((stream, version) for stream, version in c.fetchall())
        return [row for row in rows if is_place(*row, "")]
