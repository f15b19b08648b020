"""Reads the live messages of a long conversation from the log, whenever they are wanted."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from heapq import heappush, heapreplace

from refold.application.projections.entries import Entry, Looked, Words, entry_of
from refold.domain.events import EventLost, MessageAppended

from .stored.envelope import Envelope
from .stored.mapper import RecordedEvent

BATCH = 1_000
"""Events that are in memory at once."""

Batches = Callable[[str, int, int | None, int], Iterator[list[RecordedEvent]]]
"""Reads the events of a stream from one version to another, so many at once."""
Envelopes = Callable[[str, int], Iterator[tuple[str, Envelope]]]
"""Reads names and envelopes of the events of a stream from a version on."""

_USER = b'"message":{"role":"user"'
_RESULT = b'"tool_result"'
_POSITION = b'{"position":'
_LETTERS = bytes(c if chr(c).isalpha() and c < 128 else 32 for c in bytes(range(256)).lower())
_APOSTROPHE = b"'"


class MessageReader:
    """``StoredMessages`` of one stream."""

    def __init__(self, thread_id: str, batches: Batches, envelopes: Envelopes) -> None:
        self._thread_id = thread_id
        self._batches = batches
        self._envelopes = envelopes

    def read(self, start: int, stop: int) -> Iterator[Entry]:
        """See ``StoredMessages``."""
        # A message never has a smaller version than the number of messages up to it.
        size = max(4, min(BATCH, stop - start + 4))
        for batch in self._batches(self._thread_id, start + 1, None, size):
            for recorded in batch:
                match recorded.event:
                    case MessageAppended(position=position) as event if position >= start:
                        if position >= stop:
                            return
                        yield entry_of(event)
                    case EventLost(position=int(position)) if position >= stop:
                        return
                    case _:
                        pass

    def look_through(self, start: int, stop: int, words: Words, most: int) -> Looked:
        """See ``StoredMessages``. The words are looked for in the stored bytes: nothing is decoded."""
        digest, best = sha256(), list[tuple[float, int]]()
        for name, envelope in self._envelopes(self._thread_id, start + 1):
            if name != "message_appended":
                continue
            position = _position(envelope.payload)
            if position is None or position < start:
                continue
            if position >= stop:
                break
            digest.update(envelope.digest.encode("ascii"))
            score = _score(envelope.payload, words)
            if score and len(best) < most:
                heappush(best, (score, position))
            elif score and (score, position) > best[0]:
                heapreplace(best, (score, position))
        return Looked(digest.hexdigest(), frozenset(position for _, position in best))


def _position(payload: bytes) -> int | None:
    if not payload.startswith(_POSITION):
        return None
    number = payload[len(_POSITION) : payload.find(b",", len(_POSITION))]
    return int(number) if number.isdigit() else None


def _score(payload: bytes, words: Words) -> float:
    """What the words of a message promise; what models say and tools return promises nothing."""
    if _USER not in payload or _RESULT in payload:
        return 0.0
    said = words.promises.keys() & payload.translate(_LETTERS, _APOSTROPHE).split()
    best = max([words.promises[word] for word in said], default=0.0)
    if payload.isascii():
        return best
    return max(best, *(promise for word, promise in words.others if word in payload))
