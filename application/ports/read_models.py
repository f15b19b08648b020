"""The port of the read models: questions about many messages, answered from folds of the log."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from refold.application.runtime.plain_lines import ShortRepr
from refold.domain.value import Value

from .conversation_log import Damage


class ConversationRow(Value, frozen=True):
    """One conversation in a list (requirement B1)."""

    thread_id: str
    label: str | None
    messages: int
    tokens: int
    """Of all its messages as appended, whether live or covered; 0 once every one of them was erased."""
    compactions: int
    """How often it was compacted; a summary that an erasure made anew is none."""
    created_at: str
    """When its first message was written, or else logged: ISO 8601, UTC."""
    last_activity: str
    """When its newest message was written, or else logged."""
    version: int
    erased: bool
    """Whether it was erased as a whole; then it is in no list."""
    forked_from: str | None
    """The conversation that it began as a copy of, if it did."""
    forked_at: int | None
    """The version of that one then."""
    first_words: str | None
    """How the first message of a user begins, for where there is no label; None once that is erased. One
    that names an owner of its own is passed over: it is not this conversation's owner who says it."""
    first_words_at: int | None
    """The position of that message."""
    owner: str | None = None
    """Whose it is; None: nobody's."""
    erased_messages: int = 0
    """How often a message of it was erased."""

    @property
    def title(self) -> str:
        """A name for people: the label, or else the first words; empty where there are none."""
        return self.label or self.first_words or ""


class MessageRow(Value, frozen=True):
    """One message as people read it.

    Whether it is archived, and which summary covers it, stands in the view ``archived_messages`` of the
    file: so no row of a message changes when a summary is made.
    """

    thread_id: str
    position: int
    version: int
    message_id: str
    role: str
    at: str
    """When it was written, or else logged: ISO 8601, UTC."""
    tokens: int
    text: str
    """What it says in words, tool calls and results in short."""
    owner: str | None = None
    """Whose it is, where that is somebody else than the owner of the conversation."""


class SummaryRow(ShortRepr, Value, frozen=True):
    """One summary ever made (requirement A2), with what coverage needs."""

    summary_id: str
    thread_id: str
    summary_text: str
    compact_up_to_index: int
    """The last position that it reaches to: ``first_kept_index`` less 1."""
    first_kept_index: int
    """The position of the first message after that: ``messages[first_kept_index:]`` is the tail that is
    kept, besides what is kept of the messages before (``exclusions``).
    """
    compacted_at: str
    """When it was made: ISO 8601, UTC. ``created_at`` is the same."""
    message_count: int | None
    """How many messages the conversation had then; None if it was made by a version before 0.2."""
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
    """Whether the compaction that made it was undone."""

    def covers(self, position: int) -> bool:
        """Whether it stands for the message at this position."""
        return self.covered_from <= position < self.first_kept_index and (
            self.exclusions == "[]" or position not in json.loads(self.exclusions)
        )


class CompactionRow(Value, frozen=True):
    """One compaction attempt and how it ended."""

    attempt_id: str
    thread_id: str
    trigger: str
    outcome: str
    """``requested`` while it runs, then ``performed`` or ``failed``; ``reverted`` once undone. ``waiting``: its
    summary is made, and waits in the memory of this process until the log can be written."""
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
    """How often a model was asked for it, retries included; 0 where code alone wrote it."""


class TopicRow(Value, frozen=True):
    """One topic of one summary (requirement B9)."""

    thread_id: str
    summary_id: str
    rank: int
    """Its place among them, from 0: the most important first."""
    topic: str
    count: int
    """In how many covered messages it comes up."""
    last_position: int
    is_shown: bool
    """Whether it is named beside the summary."""
    is_active: bool
    """Whether the summary is the active one."""


class TopicSeen(Value, frozen=True):
    """A topic of a conversation, as its active summary counts it."""

    thread_id: str
    topic: str
    count: int
    """In how many covered messages it comes up."""
    last_position: int
    """The newest of these."""
    last_seen: str
    """When that one was written: ISO 8601, UTC."""
    is_shown: bool
    """Whether it is named beside the summary."""


class NoteRow(Value, frozen=True):
    """One durable note (requirement C2)."""

    thread_id: str
    flush_id: str
    number: int
    """Its place among the notes that were taken with it, from 0."""
    kind: str
    """``decision``, ``preference``, ``constraint``, ``task`` or ``fact``."""
    text: str
    positions: str
    """The messages that it comes from, as a JSON list; empty where a model did not say."""
    taken_at: str
    """ISO 8601, UTC."""
    taken_by: str
    """``ledger``, where code took it, or the name of the summariser."""
    start: int
    stop: int
    """It comes from the messages at positions ``start`` up to but not including ``stop``."""
    version: int
    reason: str = ""
    """Why code took it in place of a model, such as ``timeout``; empty where it was to."""

    @property
    def source_positions(self) -> tuple[int, ...]:
        """The messages that it comes from."""
        return tuple(json.loads(self.positions))


class ReadModels(Protocol):
    """Questions to the read models; each catches up with the log before it answers.

    Damage of the read models is noticed and repaired by replay. May raise ``LogError`` only for the
    log itself.
    """

    def conversations(self) -> Sequence[ConversationRow]:
        """All conversations that were not erased, the latest activity first."""
        ...

    def conversations_of(self, owner: str) -> Sequence[ConversationRow]:
        """Those of one owner, the latest activity first."""
        ...

    def has_others(self, thread_id: str, owner: str, start: int, stop: int) -> bool:
        """Whether a message at positions ``start`` up to but not including ``stop`` is somebody else's than
        this owner of the conversation.
        """
        ...

    def messages_of(self, owner: str) -> Mapping[str, frozenset[int]]:
        """The positions of the messages that name this owner as their own, by conversation."""
        ...

    def owners_of(self, thread_id: str) -> Mapping[int, str]:
        """The owners of those messages of a conversation that have one of their own, by position."""
        ...

    def guests_of(self, owner: str) -> Mapping[str, Mapping[int, str]]:
        """In conversations of this owner: the owners of messages that have one of their own, by position.

        Conversations without such messages are left out.
        """
        ...

    def conversation(self, thread_id: str) -> ConversationRow | None:
        """One conversation, or None if it has no events."""
        ...

    def messages(self, thread_id: str, start: int, stop: int) -> Sequence[MessageRow]:
        """The messages at positions ``start`` up to but not including ``stop``."""
        ...

    def newest_message_by(self, thread_id: str, at: str) -> MessageRow | None:
        """The newest message that was written, or else logged, at this time or before: ISO 8601, UTC."""
        ...

    def summaries(self, thread_id: str) -> Sequence[SummaryRow]:
        """All summaries ever made, oldest first."""
        ...

    def compactions(self, thread_id: str) -> Sequence[CompactionRow]:
        """All compaction attempts, oldest first."""
        ...

    def topics(self, thread_id: str) -> Sequence[TopicSeen]:
        """What the active summary says the covered messages are about, the most important first."""
        ...

    def notes(self, thread_id: str) -> Sequence[NoteRow]:
        """All durable notes of a conversation, oldest first."""
        ...

    def notes_of(self, owner: str) -> Sequence[NoteRow]:
        """Those of all conversations of one owner, in the order of the log."""
        ...

    def active_summaries_of(self, owner: str) -> Sequence[SummaryRow]:
        """The active summaries of all conversations of one owner, in no order."""
        ...

    def all_notes(self) -> Sequence[NoteRow]:
        """Those of all conversations, in the order of the log."""
        ...

    def check(self) -> Iterator[Damage]:
        """Compare every table with a fresh fold of the log, row by row, without changing either."""
        ...

    def rebuild(self) -> int:
        """Drop everything and fold the log again; returns the number of events."""
        ...

    def drop(self) -> bool:
        """Delete everything that was folded, here and on the disk; the next question folds it anew.

        Whether nothing is left.
        """
        ...

    def forget_erased(self) -> bool:
        """Take out what was erased, so that no byte of it is left in any file; whether none is. Where that
        cannot be done in place, everything is deleted, and the next question folds it anew.
        """
        ...

    def close(self) -> None:
        """Release files and connections; closing twice is fine."""
        ...
