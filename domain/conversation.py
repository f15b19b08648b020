"""Coverage: exactly which messages of a conversation a summary stands for."""

from datetime import datetime
from typing import NamedTuple

from pydantic import Field

from .frames import KnownFrame
from .messages import Role
from .value import Value


class Coverage(Value, frozen=True):
    """Positions ``start`` up to but not including ``stop``, without ``exclusions``.

    Cumulative: a summary covers all that the summaries before it covered. ``exclusions`` are
    positions inside the range that stay in the context word for word.
    """

    start: int = Field(ge=0)
    stop: int = Field(ge=0)
    exclusions: tuple[int, ...] = ()
    count: int = Field(ge=1)
    """How many messages are covered, all generations together."""
    first_message_id: str
    last_message_id: str

    def covers(self, position: int) -> bool:
        """Whether the message at ``position`` is stood for."""
        return self.start <= position < self.stop and position not in self.exclusions


class LiveMessage(NamedTuple):
    """What decisions need to know of a message that no summary covers: never its text."""

    position: int
    version: int
    message_id: str
    role: Role
    tokens: int
    """As rendered now: without thinking that was dropped, shortened where that was decided."""
    thinking: int = 0
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    speaks: bool = False
    """Whether it says something in words (tool traffic alone does not)."""
    paused: bool = False
    """Whether the model's response goes on in the next message."""
    offloads: tuple[int, ...] = ()
    """The versions of the decisions that show parts of it shorter: offloaded or condensed."""

    @property
    def ends_turn(self) -> bool:
        """Whether the model ends its turn with it: it speaks, calls nothing, and is not paused."""
        does_more = self.calls or self.paused
        return self.role == "assistant" and self.speaks and not does_more


class ActiveSummary(Value, frozen=True):
    """The summary that stands for the covered messages."""

    summary_id: str
    version: int
    coverage: Coverage
    tokens: int
    """As rendered, with the ledger beside it."""
    at_length: int
    """How many messages the conversation had when it was made."""
    at_tokens: int
    """The size of the conversation right after."""
    generation: int = 0
    """How often it was carried over from the summary before since it was last built from leaves or
    originals; 0 where it was."""
    text_tokens: int = 0
    """Of its prose alone."""
    leaves: tuple[int, ...] = ()
    """The versions of the compactions whose leaf summaries together stand for all it covers."""
    effective: bool = True
    """Whether it brought the conversation down to its target (invariant 7)."""


class SummaryLength(NamedTuple):
    """How long a summary was that somebody wrote."""

    summariser: str
    model: str
    text: int
    """Tokens of the text."""
    beside: int
    """Tokens of all that is rendered with it: heading, guidance, topics and ledger."""


class Pin(NamedTuple):
    """A text that is never summarised."""

    pin_id: str
    version: int
    """Of the event that pinned it."""
    position: int | None
    """The message that it comes from, if it comes from one."""
    tokens: int
    """Of its line in the ledger; 0 where the message itself stays in the context."""


class Topic(Value, frozen=True):
    """What covered messages are about."""

    name: str
    count: int
    """In how many of them it comes up."""
    last_position: int
    """The newest of these."""


class Attempt(Value, frozen=True):
    """A compaction that was requested and has not ended."""

    attempt_id: str
    requested_at: datetime
    coverage: Coverage
    supersedes: str | None
    owner: str | None = None
    """The process that works on it."""


class Setbacks(Value, frozen=True):
    """Failed or reverted compactions since the last one that worked."""

    count: int = 0
    live_tokens: int = 0
    length: int = 0
    """How many messages the conversation had at the newest of them."""


class Conversation(Value, frozen=True):
    """The state that decisions are made on; its size is bounded whatever the length of the history."""

    version: int = 0
    """How many events were folded in."""
    length: int = 0
    """How many messages were ever appended; the next one gets this position."""
    live: tuple[LiveMessage, ...] = ()
    preamble: int = 0
    """How many messages of the system stand before the first of anybody else; never covered."""
    first_message_id: str = ""
    """The id of the first message after the preamble."""
    older_live: int = 0
    """How many live messages there are between preamble and ``live``, which are only counted."""
    older_tokens: int = 0
    live_from: int = 1
    """The version of the first message behind what the summary covers; those kept on purpose and
    the preamble may lie before it."""
    live_tokens: int = 0
    """The size of all live messages as rendered."""
    thinking_from: int = 0
    """Messages before this position are shown without thinking: what stands before them has changed."""
    answer_pending: bool = False
    """Whether the next answer may have been asked for with a prefix that has changed since: its
    thinking was signed for that prefix, and is not shown."""
    summary: ActiveSummary | None = None
    pins: tuple[Pin, ...] = ()
    attempt: Attempt | None = None
    setbacks: Setbacks = Setbacks()
    lengths: tuple[SummaryLength, ...] = ()
    """Of the newest summaries, the newest last: the next cut is planned by them."""
    compactions: int = 0
    notes_to: int = 0
    """Notes were taken of the messages before this position."""
    notes_at: int | None = None
    """How many compactions there had been when notes were last taken: once per cycle is enough."""
    notes_versions: tuple[int, ...] = ()
    """Of the newest times that notes were taken: what was noted there is not noted again."""
    memories_tokens: int = 0
    """The size of the earlier messages that are quoted in the system text."""
    memories_at: int = 0
    """The version of the event that chose them; 0 where none are quoted."""
    frame: KnownFrame | None = None
    """What the newest recorded request carried besides the conversation; None where none is recorded."""
    label: str | None = None
    owner: str | None = None
    """Whose the conversation is; a message that names no owner of its own is theirs as well."""
    erased: bool = False
    """Whether the whole conversation was erased; nothing else is known of it then."""

    @property
    def covered_to(self) -> int:
        """The position that the active summary reaches to; 0 without a summary."""
        return self.summary.coverage.stop if self.summary else 0

    @property
    def tokens(self) -> int:
        """The size of the conversation as rendered: summary, pinned and quoted texts, live messages."""
        beside = sum(pin.tokens for pin in self.pins) + self.memories_tokens
        return self.live_tokens + beside + (self.summary.tokens if self.summary else 0)

    @property
    def pinned_positions(self) -> frozenset[int]:
        """The messages that are pinned where they stand."""
        return frozenset(p.position for p in self.pins if p.position is not None and not p.tokens)
