"""Reading some events of a stream: those that are missing are damage, unless they were never stored."""

from collections.abc import Callable, Sequence

from refold.application.errors import LogDamaged
from refold.application.event_log import LoggedEvent

from .stored.mapper import RecordedEvent


def whole(
    thread_id: str,
    wanted: Sequence[int],
    read: Callable[[], Sequence[RecordedEvent]],
    head: Callable[[], int],
) -> Sequence[LoggedEvent]:
    """The events with these versions up to the ``head`` of the stream, as ``read`` gives them.

    Raises:
        LogDamaged: one of them is missing.
    """
    lacking: int | None = None
    while True:
        found = read()
        there = {event.originator_version for event in found}
        missing = next((version for version in wanted if version not in there), None)
        if missing is None or missing > head():
            return [event.logged() for event in found]
        if missing == lacking:
            raise LogDamaged(thread_id, missing, "the event is missing")
        # Another process may have appended it after the reading and before the look at the head.
        lacking = missing
