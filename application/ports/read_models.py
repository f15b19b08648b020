"""The port of the read models: lists and lookups over many messages, folded from the log."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from refold.application.runtime.plain_lines import ShortRepr
from refold.domain.value import Value

from .conversation_log import Damage


class ConversationRow(Value, frozen=True):
    """One conversation in a list."""

    thread_id: str
    label: str | None
    messages: int
    tokens: int
    """Tokens of all its messages as appended, live or covered; 0 after every one was erased."""
    compactions: int
    """Number of compactions, without summaries that an erasure rebuilt."""
    created_at: str
    """Time when its first message was written, or else logged: ISO 8601, UTC."""
    last_activity: str
    """Time when its newest message was written, or else logged: ISO 8601, UTC."""
    version: int
    erased: bool
    """True if the whole conversation was erased; it is then in no list."""
    forked_from: str | None
    """Thread id of the conversation that it was forked from, or None."""
    forked_at: int | None
    """Version of the source conversation at the time of the fork, or None."""
    first_words: str | None
    """Beginning of the first user message, used if there is no label; None after it was erased.

    Messages with an owner of their own are skipped: the owner of this conversation did not write them.
    """
    first_words_at: int | None
    """Position of the message that ``first_words`` are from, or None."""
    owner: str | None = None
    """Owner of the conversation, or None if it has none."""
    erased_messages: int = 0
    """Number of messages of the conversation whose content was erased."""

    @property
    def title(self) -> str:
        """Name for people: the label, or else the first words; empty if there are none."""
        return self.label or self.first_words or ""


ConversationOrder = Literal[
    "activity", "messages", "size", "age", "compactions", "failures", "compacted"
]
"""Order of a list of conversations: the latest activity, the most messages, the most tokens, the oldest, the most
compactions, the most failed compactions or the latest attempt of a compaction first. Conversations that are equal in
this follow by their latest activity.
"""


class ListedConversation(ConversationRow, frozen=True):
    """One conversation in a page of a list, with the outcome of its compactions."""

    failures: int = 0
    """Number of compaction attempts that failed."""
    attempted_at: str | None = None
    """Time when the newest attempt ended, or began if it has no end: ISO 8601, UTC. None without attempts."""
    outcome: str | None = None
    """Outcome of the newest attempt, as in ``CompactionRow``, or None."""
    reason: str | None = None
    """Reason why the newest attempt failed, or None."""


class ConversationsPage(Value, frozen=True):
    """A part of a list of conversations."""

    rows: tuple[ListedConversation, ...]
    count: int
    """Number of conversations of the whole list."""


class MessageRow(Value, frozen=True):
    """One message as people read it.

    The view ``archived_messages`` of the file shows whether a summary covers the message, and which. So a
    new summary changes no message row.
    """

    thread_id: str
    position: int
    version: int
    message_id: str
    role: str
    at: str
    """Time when it was written, or else logged: ISO 8601, UTC."""
    tokens: int
    text: str
    """Words in full, tool calls and results abbreviated."""
    owner: str | None = None
    """Owner of the message if it is not the owner of the conversation, or None."""


class SummaryRow(ShortRepr, Value, frozen=True):
    """One summary, active or not, with the data for its coverage."""

    summary_id: str
    thread_id: str
    summary_text: str
    compact_up_to_index: int
    """Last position that it covers: ``first_kept_index`` less 1."""
    first_kept_index: int
    """Position of the first message after the summary.

    ``messages[first_kept_index:]`` is the kept tail. Earlier messages in ``exclusions`` are kept as well.
    """
    compacted_at: str
    """Time when it was made: ISO 8601, UTC. ``created_at`` is the same."""
    message_count: int | None
    """Number of messages when the summary was made, or None if refold before 0.2 made it."""
    is_split_turn: bool
    split_turn_prefix: str | None
    is_active: bool
    created_at: str
    covered_from: int
    covered_count: int
    exclusions: str
    """Positions inside the range that are not covered, as a JSON list."""
    first_message_id: str
    last_message_id: str
    version: int
    tokens: int
    model: str
    superseded_by: str | None
    is_reverted: bool
    """True if the compaction that made it was reverted."""

    def covers(self, position: int) -> bool:
        """Return whether it covers the message at this position."""
        return self.covered_from <= position < self.first_kept_index and (
            self.exclusions == "[]" or position not in json.loads(self.exclusions)
        )


class CompactionRow(Value, frozen=True):
    """One compaction attempt with its outcome."""

    attempt_id: str
    thread_id: str
    trigger: str
    outcome: str
    """``requested`` while it runs, then ``performed`` or ``failed``; ``reverted`` after it was reverted.

    ``waiting``: the summary is ready and stays in the memory of this process until the log can be written.
    """
    reason: str | None
    summariser: str
    summary_id: str | None
    requested_at: str
    ended_at: str | None
    tokens_before: int
    tokens_after: int | None
    covered_count: int
    focus: str | None
    model_calls: int
    """Number of model calls, including retries; 0 if code alone wrote the summary."""


class TopicRow(Value, frozen=True):
    """One topic of one summary."""

    thread_id: str
    summary_id: str
    rank: int
    """Rank among the topics of the summary, from 0; the most important first."""
    topic: str
    count: int
    """Number of covered messages with this topic."""
    last_position: int
    is_shown: bool
    """True if it is shown next to the summary."""
    is_active: bool
    """True if the summary is the active one."""


class TopicSeen(Value, frozen=True):
    """A topic of a conversation as counted by its active summary."""

    thread_id: str
    topic: str
    count: int
    """Number of covered messages with this topic."""
    last_position: int
    """Position of the newest message with this topic."""
    last_seen: str
    """Time when the newest message with this topic was written: ISO 8601, UTC."""
    is_shown: bool
    """True if it is shown next to the summary."""


class NoteRow(Value, frozen=True):
    """One durable note."""

    thread_id: str
    flush_id: str
    number: int
    """Index among the notes that were taken together, from 0."""
    kind: str
    """``decision``, ``preference``, ``constraint``, ``task`` or ``fact``."""
    text: str
    positions: str
    """Positions of its source messages, as a JSON list; empty if a model did not give them."""
    taken_at: str
    """Time when it was taken: ISO 8601, UTC."""
    taken_by: str
    """``ledger`` if code took it, or the name of the summariser."""
    start: int
    stop: int
    """End of the range of its source messages: from ``start`` up to, but not including, ``stop``.

    Both are the number of messages before it if a model asked for the note.
    """
    version: int
    reason: str = ""
    """Reason why code took it instead of a model, such as ``timeout``; empty if code was configured."""

    @property
    def source_positions(self) -> tuple[int, ...]:
        """Positions of its source messages."""
        return tuple(json.loads(self.positions))

    @property
    def is_on_demand(self) -> bool:
        """True if a model asked for it between two compactions."""
        return self.start == self.stop

    @property
    def possible_sources(self) -> range:
        """Positions of the messages that it may have been made from: all before it if it is on demand."""
        return range(self.start) if self.is_on_demand else range(self.start, self.stop)


class RequestSizesRow(Value, frozen=True):
    """Events of a conversation as they change the size of its request: as many in each row."""

    thread_id: str
    events: int
    """Number of events of a full row: 256, or 8,192 for very long conversations."""
    number: int
    """Row ``number`` has the events after version ``number * events``."""
    stop: int | None
    """Number of messages after its newest message, or None if it has none."""
    at: str
    """Time when its newest message was written, or else logged: ISO 8601, UTC."""
    tokens: int
    """Tokens of its messages as appended."""
    later_tokens: int
    """Tokens of its messages after its newest compaction, or of all if it has none."""
    sizes: str
    """Tokens of the message of each event, each with a comma after it; 0 for an event without a message.

    This and the next two columns are empty in long rows.
    """
    kinds: str
    """A letter for each event: ``a`` for an answer, ``e`` for one that ends a turn, both large if it has
    thinking, ``m`` for another message, ``l`` for a lost one, ``d`` for a decision that changes the size
    of requests, and ``.`` for other events.
    """
    thinking: str
    """Tokens of thinking of each answer that has some, each with a comma after it."""
    decisions: str
    """Decisions that change the size of requests, as JSON objects, each with a comma after it."""


class Beginning(NamedTuple):
    """Place in the list of conversations by their beginning."""

    at: str
    thread_id: str


class ReadModels(Protocol):
    """Queries on the read models; each first catches up with the log.

    Damaged read models are detected and rebuilt from the log. Raises ``LogError`` only for the log itself.
    """

    def conversations(self) -> Sequence[ConversationRow]:
        """Return all conversations that were not erased, latest activity first."""
        ...

    def iter_conversations(self, prefix: str = "") -> Iterator[ConversationRow]:
        """Iterate over the same conversations in the order of their ids. They are read in pages.

        With ``prefix``, only those are read whose ids begin with it.
        """
        ...

    def conversations_page(
        self, start: int, count: int, owner: str | None, order: ConversationOrder
    ) -> ConversationsPage:
        """Return ``count`` conversations from index ``start`` of a sorted list on, without erased ones.

        ``owner``: list only the conversations of this owner.
        """
        ...

    def conversations_before(
        self, before: Beginning | None, count: int, owner: str | None
    ) -> Sequence[ConversationRow]:
        """Return the next ``count`` conversations that were not erased, the latest beginning first.

        ``before``: the last one of the part before. Nothing moves in this list while agents work.
        ``owner``: list only the conversations of this owner.
        """
        ...

    def conversations_of(self, owner: str) -> Sequence[ConversationRow]:
        """Return the conversations of one owner, latest activity first."""
        ...

    def owned_conversations(self, owner: str | None = None) -> Collection[str]:
        """Return the conversations of this owner, or of all owners. Those that were erased are left out."""
        ...

    def has_others(self, thread_id: str, owner: str, start: int, stop: int) -> bool:
        """Return whether a message from ``start`` up to, but not including, ``stop`` has another owner."""
        ...

    def messages_of(self, owner: str) -> Mapping[str, frozenset[int]]:
        """Return the positions of messages that name this owner explicitly, by conversation."""
        ...

    def owners_of(self, thread_id: str) -> Mapping[int, str]:
        """Return the owners of messages that have an owner of their own, by position."""
        ...

    def guests_of(self, owner: str) -> Mapping[str, Mapping[int, str]]:
        """Return the other owners of messages in conversations of this owner, by conversation and position.

        Conversations without such messages are omitted.
        """
        ...

    def conversation(self, thread_id: str) -> ConversationRow | None:
        """Return one conversation, or None if it has no events."""
        ...

    def messages(self, thread_id: str, start: int, stop: int) -> Sequence[MessageRow]:
        """Return the messages from position ``start`` up to, but not including, ``stop``."""
        ...

    def messages_by_id(self, thread_id: str, ids: Collection[str]) -> Sequence[MessageRow]:
        """Return the messages of a conversation that have one of these ids, in order. Others are not read."""
        ...

    def newest_message_by(self, thread_id: str, at: str) -> MessageRow | None:
        """Return the newest message written, or else logged, at or before ``at`` (ISO 8601, UTC), or None."""
        ...

    def summaries(self, thread_id: str) -> Sequence[SummaryRow]:
        """Return all summaries ever made, oldest first."""
        ...

    def summary(self, thread_id: str, summary_id: str) -> SummaryRow | None:
        """Return one summary, or None. The others are not read."""
        ...

    def conversations_with_summary(self, summary_id: str) -> Sequence[str]:
        """Return the conversations that have a summary with this id, in the order of their ids."""
        ...

    def compactions(self, thread_id: str) -> Sequence[CompactionRow]:
        """Return all compaction attempts, oldest first."""
        ...

    def topics(self, thread_id: str) -> Sequence[TopicSeen]:
        """Return the topics of the messages that the active summary covers, the most important first."""
        ...

    def notes(self, thread_id: str) -> Sequence[NoteRow]:
        """Return all durable notes of a conversation, oldest first."""
        ...

    def request_sizes(self, thread_id: str) -> Sequence[RequestSizesRow]:
        """Return the sizes of a conversation in rows of equal length, at most 1,200 in any usual one.

        In a very long conversation these are the long rows.
        """
        ...

    def notes_of(self, owner: str) -> Sequence[NoteRow]:
        """Return the notes of all conversations of one owner, in the order of the log."""
        ...

    def active_summaries_of(self, owner: str) -> Sequence[SummaryRow]:
        """Return the active summaries of all conversations of one owner, in any order."""
        ...

    def all_notes(self) -> Sequence[NoteRow]:
        """Return the notes of all conversations, in the order of the log."""
        ...

    def check(self) -> Iterator[Damage]:
        """Compare every table with a new fold of the log, row by row; change nothing."""
        ...

    def rebuild(self) -> int:
        """Delete everything and fold the log again. Return the number of events."""
        ...

    def drop(self) -> bool:
        """Delete all folded data in memory and on disk. Return whether none remains.

        The next query rebuilds it.
        """
        ...

    def forget_erased(self) -> bool:
        """Remove erased content, so that no byte of it remains in a file. Return whether none remains.

        If that is not possible in place, everything is deleted, and the next query rebuilds it.
        """
        ...

    def close(self) -> None:
        """Release files and connections; closing twice is safe."""
        ...
