"""Reads the live messages of a long conversation from the log, whenever they are wanted."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from heapq import heappush, heapreplace
from typing import NamedTuple

from refold.application.conversation.stream_places import ReadEvents, StreamPlaces
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.projections.entries import (
    Entry,
    LongEntries,
    Looked,
    StoredMessages,
    StoredRun,
    Words,
    entry_of,
)
from refold.application.projections.window import Window
from refold.domain.compaction.archiving import live_messages
from refold.domain.conversation import Conversation
from refold.domain.events import (
    CompactionFailed,
    CompactionRequested,
    ConversationForked,
    ConversationLabelled,
    EventLost,
    MessageAppended,
    MessageErased,
)
from refold.domain.evolve import REMEMBERED
from refold.domain.frames import RequestFrameChanged
from refold.domain.notes import NotesFlushed

from .envelope import Envelope
from .mapper import RecordedEvent

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


MOST_HELD = REMEMBERED + REMEMBERED // 4
"""More of the newest messages than so many are not held in memory, once they are larger than any window.
Every cut lies among the newest that the state remembers."""
LARGEST_WINDOW = 1_200_000
"""Tokens. No model reads more at once; what fits it is held in memory, however many messages it has."""
MOST_DECISIONS = 64
"""Among more decisions than so many nobody looks for one that changes what is shown."""
HARMLESS = (
    CompactionRequested,
    CompactionFailed,
    ConversationForked,
    ConversationLabelled,
    NotesFlushed,
    RequestFrameChanged,
)
"""Events that change nothing that is shown."""


class Stored(NamedTuple):
    """What stays in the log, and the version from which on the others are read."""

    run: StoredRun
    first: int


def stored_run(state: Conversation, read: ReadEvents, log: StoredMessages) -> Stored | None:
    """All but the newest messages, if they can stay in the log: nothing that was decided up to this state
    changes how they are shown. None: they must be read.
    """
    others = state.version - live_messages(state)
    if not state.older_live or state.live_tokens < LARGEST_WINDOW or others > MOST_DECISIONS:
        return None
    places = StreamPlaces(read, state.version, state.length)
    decided = [*places.decisions_after(0)] if others else []
    first = state.version - REMEMBERED + 1
    if len(decided) < others or not all(_is_harmless(one, first) for one in decided):
        return None
    count = first - 1 - sum(1 for one in decided if one.version < first)
    return Stored(StoredRun(0, count, count, log, {}), first)


def _is_harmless(decided: LoggedEvent, first: int) -> bool:
    """Whether a decision changes nothing of what is not read, from version ``first`` on all being read."""
    if decided.version >= first and isinstance(decided.event, MessageErased):
        return True  # It brings the measure of what is left of the message.
    return isinstance(decided.event, HARMLESS)


def trimmed(window: Window, state: Conversation, log: StoredMessages) -> Window:
    """The window with only the newest messages in memory, where no model could read all of them."""
    entries = window.entries
    held = entries.newest if isinstance(entries, LongEntries) else entries
    if len(held) < MOST_HELD or state.live_tokens < LARGEST_WINDOW:
        return window
    return window.shelved(REMEMBERED, log)
