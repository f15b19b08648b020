"""State of a conversation: live messages, the active summary with its coverage, pins and attempts."""

from datetime import datetime
from typing import NamedTuple

from .frames import KnownFrame
from .late_model import Field
from .messages import Role
from .value import Value, build_unvalidated


class Coverage(Value, frozen=True):
    """Messages that a summary covers: ``start`` up to but not including ``stop``, without ``exclusions``.

    Coverage is cumulative: a summary also covers what earlier summaries covered. ``exclusions`` are
    positions inside the range that stay in the context word for word.
    """

    start: int = Field(ge=0)
    stop: int = Field(ge=0)
    exclusions: tuple[int, ...] = ()
    count: int = Field(ge=1)
    """Number of covered messages, over all generations."""
    first_message_id: str
    last_message_id: str

    def covers(self, position: int) -> bool:
        """Return whether the message at ``position`` is covered."""
        return self.start <= position < self.stop and position not in self.exclusions


class LiveMessage(NamedTuple):
    """Facts that decisions need about a message that no summary covers, without its text."""

    position: int
    version: int
    message_id: str
    role: Role
    tokens: int
    """Tokens as rendered now, without dropped thinking and after shortening."""
    thinking: int = 0
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    speaks: bool = False
    """Whether the message contains words. Tool traffic alone does not count."""
    paused: bool = False
    """Whether the response continues in the next message."""
    offloads: tuple[int, ...] = ()
    """Versions of the events that shortened parts of the message."""
    recalled_at: int = 0
    """Version of the event that added lines of earlier messages at its end; 0 if none did."""

    @property
    def ends_turn(self) -> bool:
        """Whether the model ends its turn here: it speaks, calls no tool, and is not paused."""
        does_more = self.calls or self.paused
        return self.role == "assistant" and self.speaks and not does_more


class ActiveSummary(Value, frozen=True):
    """The active summary."""

    summary_id: str
    version: int
    coverage: Coverage
    tokens: int
    """Tokens as rendered, including the ledger."""
    at_length: int
    """Number of messages in the conversation when the summary was made."""
    at_tokens: int
    """Tokens of the conversation right after the summary was made."""
    generation: int = 0
    """Number of times the text was carried over since it was last built from leaves or originals."""
    text_tokens: int = 0
    """Tokens of the text alone."""
    leaves: tuple[int, ...] = ()
    """Versions of the compactions whose leaf summaries together cover the same messages.

    A rebuilt summary has the texts of all before it, so that of these only the last compaction is named.
    """
    effective: bool = True
    """Whether the summary brought the conversation down to its target size."""


class SummaryLength(NamedTuple):
    """The length of a finished summary."""

    summariser: str
    model: str
    text: int
    """Tokens of the text."""
    beside: int
    """Tokens rendered in addition to the text: heading, guidance, topics and ledger."""


class Pin(NamedTuple):
    """A text that is never summarised."""

    pin_id: str
    version: int
    """Version of the event that pinned the text."""
    position: int | None
    """Position of the pinned message, or None for a text without a message."""
    tokens: int
    """Tokens of the ledger line; 0 if the message itself stays in the context."""


class OpenEdit(NamedTuple):
    """An edit that a model proposed and that was not decided yet."""

    edit_id: str
    version: int
    """Version of the event that has the proposal."""


class Topic(Value, frozen=True):
    """A topic of covered messages."""

    name: str
    count: int
    """Number of covered messages that mention the topic."""
    last_position: int
    """Position of the newest message that mentions the topic."""


class Attempt(Value, frozen=True):
    """A compaction that was requested and has not ended."""

    attempt_id: str
    requested_at: datetime
    coverage: Coverage
    supersedes: str | None
    owner: str | None = None
    """Process that runs the compaction."""


class Setbacks(Value, frozen=True):
    """Failed or reverted compactions since the last successful one."""

    count: int = 0
    live_tokens: int = 0
    length: int = 0
    """Number of messages in the conversation at the newest setback."""


class Conversation(Value, frozen=True):
    """The state that decisions are based on. Its size is bounded for any length of history."""

    version: int = 0
    """Number of events folded in."""
    length: int = 0
    """Number of messages ever appended, which is also the position of the next one."""
    live: tuple[LiveMessage, ...] = ()
    preamble: int = 0
    """Number of system messages at the beginning; they are never covered."""
    first_message_id: str = ""
    """Id of the first message after the preamble."""
    older_live: int = 0
    """Number of live messages between the preamble and ``live`` that are counted but not remembered."""
    older_tokens: int = 0
    live_from: int = 1
    """Version of the first message after the covered range.

    The preamble and messages that were excluded from coverage may have smaller versions.
    """
    live_tokens: int = 0
    """Tokens of all live messages as rendered."""
    thinking_from: int = 0
    """Position before which messages are shown without thinking, because their prefix has changed."""
    answer_pending: bool = False
    """Whether the next answer may have been requested with a prefix that has changed since.

    Its thinking was signed for the old prefix, so it is not shown.
    """
    summary: ActiveSummary | None = None
    pins: tuple[Pin, ...] = ()
    edits: tuple[OpenEdit, ...] = ()
    """Edits that were proposed and not decided yet, oldest first."""
    attempt: Attempt | None = None
    setbacks: Setbacks = build_unvalidated(Setbacks)
    lengths: tuple[SummaryLength, ...] = ()
    """Lengths of the newest summaries, newest last. They are used to plan the next cut."""
    compactions: int = 0
    notes_to: int = 0
    """Position up to which notes were taken."""
    notes_at: int | None = None
    """Number of compactions when notes were last taken, or None. Notes are taken once per compaction."""
    notes_versions: tuple[int, ...] = ()
    """Versions of the newest note events. Their notes are not repeated."""
    memories_tokens: int = 0
    """Tokens of the earlier messages that the system text quotes."""
    memories_at: int = 0
    """Version of the event that chose the quoted messages; 0 if none are quoted."""
    frame: KnownFrame | None = None
    """Request parts outside the conversation, as last recorded, or None if not recorded."""
    label: str | None = None
    owner: str | None = None
    """Owner of the conversation, and of each message that has no owner of its own."""
    erased: bool = False
    """Whether the whole conversation was erased. If so, all other fields except ``version`` are empty."""

    @property
    def covered_to(self) -> int:
        """Position where the coverage of the active summary ends; 0 without a summary."""
        return self.summary.coverage.stop if self.summary else 0

    @property
    def tokens(self) -> int:
        """Tokens of the rendered conversation: summary, pinned and quoted texts, and live messages."""
        extra = sum(pin.tokens for pin in self.pins) + self.memories_tokens
        return self.live_tokens + extra + (self.summary.tokens if self.summary else 0)

    def edits_with(self, edit_id: str, version: int) -> tuple[OpenEdit, ...]:
        """Return the edits that wait after one more was proposed."""
        return (*self.edits, OpenEdit(edit_id, version))

    def edits_without(self, edit_id: str) -> tuple[OpenEdit, ...]:
        """Return the edits that wait after one was decided."""
        return tuple(edit for edit in self.edits if edit.edit_id != edit_id)

    @property
    def has_notes(self) -> bool:
        """Whether notes were taken since the last compaction."""
        return self.notes_at == self.compactions

    @property
    def pinned_positions(self) -> frozenset[int]:
        """Positions of the pinned messages that stay in the context."""
        return frozenset(p.position for p in self.pins if p.position is not None and not p.tokens)
