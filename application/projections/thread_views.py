"""Read models addressed by thread id, each reading the newest stream of the thread."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from refold.application.conversation.addresses import SEPARATOR, thread_of
from refold.application.conversation.thread_log import ThreadLog
from refold.application.ports.conversation_log import Damage
from refold.application.ports.read_models import (
    Beginning,
    CompactionRow,
    ConversationOrder,
    ConversationRow,
    ConversationsPage,
    ListedConversation,
    MessageRow,
    NoteRow,
    ReadModels,
    RequestSizesRow,
    SummaryRow,
    TopicSeen,
)
from refold.domain.value import replace

Row = TypeVar(
    "Row",
    MessageRow,
    SummaryRow,
    CompactionRow,
    RequestSizesRow,
    TopicSeen,
    NoteRow,
)
Listed = TypeVar("Listed", ConversationRow, ListedConversation)


class ThreadViews:
    """Read models that accept and return thread ids."""

    def __init__(self, views: ReadModels, log: ThreadLog) -> None:
        self._views = views
        self._log = log

    def conversations(self) -> Sequence[ConversationRow]:
        """Return all conversations."""
        return list(map(_address_by_thread, self._views.conversations()))

    def iter_conversations(self, prefix: str = "") -> Iterator[ConversationRow]:
        """Iterate over the conversations whose ids begin with a text, in the order of their ids."""
        return map(_address_by_thread, self._views.iter_conversations(prefix))

    def conversations_page(
        self, start: int, count: int, owner: str | None, order: ConversationOrder
    ) -> ConversationsPage:
        """Return a part of a sorted list of conversations."""
        page = self._views.conversations_page(start, count, owner, order)
        return replace(page, rows=tuple(map(_address_by_thread, page.rows)))

    def conversations_before(
        self, before: Beginning | None, count: int, owner: str | None
    ) -> Sequence[ConversationRow]:
        """Return the next conversations, the latest beginning first."""
        if before is not None:
            before = before._replace(thread_id=self._log.stream_of(before.thread_id))
        rows = self._views.conversations_before(before, count, owner)
        return list(map(_address_by_thread, rows))

    def conversations_of(self, owner: str) -> Sequence[ConversationRow]:
        """Return the conversations of one owner."""
        return list(map(_address_by_thread, self._views.conversations_of(owner)))

    def owned_conversations(self, owner: str | None = None) -> Collection[str]:
        """Return the conversations of this owner, or of all owners."""
        return frozenset(map(thread_of, self._views.owned_conversations(owner)))

    def has_others(self, thread_id: str, owner: str, start: int, stop: int) -> bool:
        """Return whether any message in a range belongs to someone other than the owner."""
        return self._views.has_others(self._log.stream_of(thread_id), owner, start, stop)

    def messages_of(self, owner: str) -> Mapping[str, frozenset[int]]:
        """Return the positions of messages that name this owner, by thread id."""
        found = self._views.messages_of(owner).items()
        # Every message of an earlier stream is erased.
        newest = ((thread_of(s), s, positions) for s, positions in found)
        return {t: positions for t, s, positions in newest if self._log.stream_of(t) == s}

    def owners_of(self, thread_id: str) -> Mapping[int, str]:
        """Return the owners of messages that name one, by position."""
        return self._views.owners_of(self._log.stream_of(thread_id))

    def guests_of(self, owner: str) -> Mapping[str, Mapping[int, str]]:
        """Return the owners of other people's messages in the conversations of one owner."""
        found = self._views.guests_of(owner).items()
        return {thread_of(stream): guests for stream, guests in found}

    def conversation(self, thread_id: str) -> ConversationRow | None:
        """Return the row of a conversation, or None."""
        row = self._views.conversation(self._log.stream_of(thread_id))
        return None if row is None else _address_by_thread(row)

    def messages(self, thread_id: str, start: int, stop: int) -> Sequence[MessageRow]:
        """Return the messages at positions ``start`` up to but not including ``stop``."""
        return _address_rows(self._views.messages(self._log.stream_of(thread_id), start, stop))

    def messages_by_id(self, thread_id: str, ids: Collection[str]) -> Sequence[MessageRow]:
        """Return the messages of a conversation that have one of these ids, in order."""
        return _address_rows(self._views.messages_by_id(self._log.stream_of(thread_id), ids))

    def newest_message_by(self, thread_id: str, at: str) -> MessageRow | None:
        """Return the newest message that was written by a time, or None."""
        row = self._views.newest_message_by(self._log.stream_of(thread_id), at)
        return None if row is None else _address_rows([row])[0]

    def summaries(self, thread_id: str) -> Sequence[SummaryRow]:
        """Return the summaries of a conversation."""
        return _address_rows(self._views.summaries(self._log.stream_of(thread_id)))

    def summary(self, thread_id: str, summary_id: str) -> SummaryRow | None:
        """Return one summary of a conversation, or None."""
        row = self._views.summary(self._log.stream_of(thread_id), summary_id)
        return None if row is None else _address_rows([row])[0]

    def conversations_with_summary(self, summary_id: str) -> Sequence[str]:
        """Return the conversations that have a summary with this id."""
        streams = self._views.conversations_with_summary(summary_id)
        return [thread_of(s) for s in streams if self._log.stream_of(thread_of(s)) == s]

    def compactions(self, thread_id: str) -> Sequence[CompactionRow]:
        """Return the compaction attempts of a conversation."""
        return _address_rows(self._views.compactions(self._log.stream_of(thread_id)))

    def topics(self, thread_id: str) -> Sequence[TopicSeen]:
        """Return the topics of a conversation."""
        return _address_rows(self._views.topics(self._log.stream_of(thread_id)))

    def notes(self, thread_id: str) -> Sequence[NoteRow]:
        """Return the notes of a conversation."""
        return _address_rows(self._views.notes(self._log.stream_of(thread_id)))

    def request_sizes(self, thread_id: str) -> Sequence[RequestSizesRow]:
        """Return the sizes of a conversation in rows of equal length."""
        return _address_rows(self._views.request_sizes(self._log.stream_of(thread_id)))

    def notes_of(self, owner: str) -> Sequence[NoteRow]:
        """Return the notes of one owner."""
        return _address_rows(self._views.notes_of(owner))

    def active_summaries_of(self, owner: str) -> Sequence[SummaryRow]:
        """Return the active summaries in the conversations of one owner."""
        return _address_rows(self._views.active_summaries_of(owner))

    def all_notes(self) -> Sequence[NoteRow]:
        """Return the notes of all conversations."""
        return _address_rows(self._views.all_notes())

    def check(self) -> Iterator[Damage]:
        """Yield the differences between the read models and a fresh fold of the log."""
        return self._views.check()

    def rebuild(self) -> int:
        """Rebuild the read models from the log and return the number of events."""
        return self._views.rebuild()

    def drop(self) -> bool:
        """Delete the read models and return whether nothing is left."""
        return self._views.drop()

    def forget_erased(self) -> bool:
        """Remove erased content from all files and return whether none is left."""
        return self._views.forget_erased()

    def close(self) -> None:
        """Close the read models."""
        self._views.close()


def _address_rows(rows: Sequence[Row]) -> Sequence[Row]:
    if not rows or not any(SEPARATOR in row.thread_id for row in rows):
        return rows
    # A type variable is lost in ``replace``.
    return [row.__replace__(thread_id=thread_of(row.thread_id)) for row in rows]


def _address_by_thread(row: Listed) -> Listed:
    if SEPARATOR not in row.thread_id and SEPARATOR not in (row.forked_from or ""):
        return row
    source = None if row.forked_from is None else thread_of(row.forked_from)
    return row.__replace__(thread_id=thread_of(row.thread_id), forked_from=source)
