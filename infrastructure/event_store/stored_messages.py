"""Old messages of long conversations, which stay in the log and are read from it on demand."""

from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from heapq import heappush, heapreplace
from typing import NamedTuple

from refold.application.conversation.entries import Entry, ScanResult, StoredRun, Words
from refold.application.conversation.loaded import entry_of
from refold.application.ports.conversation_log import LoggedEvent
from refold.domain.compaction.budget import live_messages
from refold.domain.conversation import Conversation
from refold.domain.events import (
    CompactionFailed,
    CompactionRequested,
    ConversationForked,
    ConversationLabelled,
    EditDecided,
    EditProposed,
    EventLost,
    MessageAppended,
    MessageErased,
)
from refold.domain.evolve import REMEMBERED
from refold.domain.frames import RequestFrameChanged
from refold.domain.notes import NotesFlushed
from refold.infrastructure.sqlite.sqlite_failures import look_twice

from .envelope import Envelope, Place
from .stream_reads import BATCH, StreamReader, unseal_row

_USER = b'"message":{"role":"user"'
_RESULT = b'"tool_result"'
_POSITION = b'{"position":'
_LETTERS = bytes(c if chr(c).isalpha() and c < 128 else 32 for c in bytes(range(256)).lower())
_APOSTROPHE = b"'"


class MessageReader:
    """The ``StoredMessages`` of one stream."""

    def __init__(self, reader: StreamReader, thread_id: str) -> None:
        self._reader = reader
        self._thread_id = thread_id

    def read(self, start: int, stop: int) -> Iterator[Entry]:
        """Yield the messages from position ``start`` up to ``stop``."""
        # The version of a message is at least the number of messages up to it.
        size = max(4, min(BATCH, stop - start + 4))
        for batch in self._reader.batches(self._thread_id, start + 1, None, size):
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

    def scan(self, start: int, stop: int, words: Words, most: int) -> ScanResult:
        """Search the stored messages. The words are looked for in the stored bytes: nothing is decoded."""
        digest, best = sha256(), list[tuple[float, int]]()
        for name, envelope in self._envelopes(start + 1):
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
        return ScanResult(digest.hexdigest(), frozenset(position for _, position in best))

    def _envelopes(self, first: int) -> Iterator[tuple[str, Envelope]]:
        """Yield the names and checked envelopes of the events from version ``first`` on."""
        after = first - 1
        while found := look_twice(partial(self._unseal_rows, after), self._reader.forget):
            yield from found
            after += len(found)

    def _unseal_rows(self, after: int) -> list[tuple[str, Envelope]]:
        stream, mapper = self._thread_id, self._reader.mapper
        return [
            (name, unseal_row(mapper, Place(stream, version, name), state))
            for version, name, state in self._reader.recorder.rows_of(stream, after, BATCH)
        ]


def _position(payload: bytes) -> int | None:
    if not payload.startswith(_POSITION):
        return None
    number = payload[len(_POSITION) : payload.find(b",", len(_POSITION))]
    return int(number) if number.isdigit() else None


def _score(payload: bytes, words: Words) -> float:
    """Score the payload by its words. Model output and tool results score zero."""
    if _USER not in payload or _RESULT in payload:
        return 0.0
    said = words.promises.keys() & payload.translate(_LETTERS, _APOSTROPHE).split()
    best = max([words.promises[word] for word in said], default=0.0)
    if payload.isascii():
        return best
    return max(best, *(promise for word, promise in words.others if word in payload))


MOST_HELD = REMEMBERED + REMEMBERED // 4
"""Maximum number of messages kept in memory for a conversation that exceeds every context window.

Cuts are only made among the newest messages that the state remembers, and these are kept.
"""
LARGEST_WINDOW = 1_200_000
"""Maximum tokens of a context window of any model. Messages that fit it are kept in memory, however many
they are.
"""
MOST_DECISIONS = 64
"""Maximum number of decisions to search for one that changes what is shown."""
HARMLESS = (
    CompactionRequested,
    CompactionFailed,
    ConversationForked,
    ConversationLabelled,
    EditDecided,
    EditProposed,
    NotesFlushed,
    RequestFrameChanged,
)
"""Events that change nothing that is shown."""


class Stored(NamedTuple):
    """The messages that stay in the log, and the version from which on events are read."""

    run: StoredRun
    first: int


def stored_run(reader: StreamReader, thread_id: str, state: Conversation) -> Stored | None:
    """Return the older messages that can stay in the log, or None if they must be read.

    They can stay if no decision up to this state changes how they are shown.
    """
    others = state.version - live_messages(state)
    if not state.older_live or state.live_tokens < LARGEST_WINDOW or others > MOST_DECISIONS:
        return None

    from refold.application.conversation.stream_places import StreamPlaces

    places = StreamPlaces(partial(reader.read, thread_id), state.version, state.length)
    decided = [*places.decisions_after(0)] if others else []
    first = state.version - REMEMBERED + 1
    if len(decided) < others or not all(_is_harmless(one, first) for one in decided):
        return None
    count = first - 1 - sum(1 for one in decided if one.version < first)
    return Stored(StoredRun(0, count, count, MessageReader(reader, thread_id), {}), first)


def _is_harmless(decided: LoggedEvent, first: int) -> bool:
    """Return whether a decision changes none of the messages before version ``first``, which are not read."""
    if decided.version >= first and isinstance(decided.event, MessageErased):
        return True  # The event contains the new size of what is left of the message.
    return isinstance(decided.event, HARMLESS)
