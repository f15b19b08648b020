"""The port of the read models: questions about many messages, answered from folds of the log."""

import json
from collections.abc import Iterator, Sequence
from typing import Protocol

from refold.domain.value import Value

from .event_log import Damage


class ConversationRow(Value, frozen=True):
    """One conversation in a list (requirement B1)."""

    thread_id: str
    label: str | None
    messages: int
    tokens: int
    """Of all its messages as appended, whether live or covered."""
    compactions: int
    created_at: str
    last_activity: str
    """When its newest message was logged: ISO 8601, UTC."""
    version: int
    erased: bool
    """Whether it was erased as a whole; then it is in no list."""
    forked_from: str | None
    """The conversation that it began as a copy of, if it did."""
    forked_at: int | None
    """The version of that one then."""


class MessageRow(Value, frozen=True):
    """One message as people read it."""

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


class SummaryRow(Value, frozen=True):
    """One summary ever made (requirement A2), with what coverage needs."""

    summary_id: str
    thread_id: str
    summary_text: str
    compact_up_to_index: int
    """The last position that it reaches to."""
    compacted_at: str
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


class CompactionRow(Value, frozen=True):
    """One compaction attempt and how it ended."""

    attempt_id: str
    thread_id: str
    trigger: str
    outcome: str
    """``requested`` while it runs, then ``performed`` or ``failed``; ``reverted`` once undone."""
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
    """How often a summariser was asked, retries included."""


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

    def conversation(self, thread_id: str) -> ConversationRow | None:
        """One conversation, or None if it has no events."""
        ...

    def messages(self, thread_id: str, start: int, stop: int) -> Sequence[MessageRow]:
        """The messages at positions ``start`` up to but not including ``stop``."""
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
