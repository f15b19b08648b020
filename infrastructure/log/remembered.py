"""The streams that were used last, kept in memory."""

import threading
from collections import OrderedDict
from collections.abc import Iterable

from .loading import Stream

CAPACITY = 64
"""How many conversations are kept; the least recently used are dropped first."""


class RememberedStreams:
    """Loaded conversations by their names; what is kept may be behind the log. Threads may share it."""

    def __init__(self) -> None:
        self._streams: OrderedDict[str, Stream] = OrderedDict()
        self._threads = threading.Lock()

    def find(self, thread_id: str) -> Stream | None:
        """The conversation as it was when it was last put here."""
        return self._streams.get(thread_id)

    def put(self, thread_id: str, stream: Stream) -> None:
        """Remember it as it is now."""
        with self._threads:
            self._streams[thread_id] = stream
            self._streams.move_to_end(thread_id)
            if len(self._streams) > CAPACITY:
                self._streams.popitem(last=False)

    def forget(self, thread_ids: Iterable[str]) -> None:
        """Remember these no more."""
        with self._threads:
            for thread_id in thread_ids:
                self._streams.pop(thread_id, None)

    def clear(self) -> None:
        """Remember none."""
        self._streams.clear()
