"""Results of the API: stored messages and compactions."""

from typing import Literal

from refold.application.runtime.plain_lines import ShortRepr
from refold.domain.events import OmittedMessage, Trigger
from refold.domain.messages import Message, readable
from refold.domain.value import Value

Outcome = Literal[
    "performed", "shortened", "nothing_to_do", "failed", "in_flight", "reverted", "waiting"
]
"""Outcome of a compaction.

``shortened``: tool content was offloaded or condensed, and no summary was needed. ``waiting``: the summary
is ready but the log could not be written; the next operation that can write stores it without another model
call.
"""


class CompactionMark(Value, frozen=True):
    """A mark on the first message after the active summary that describes the summary."""

    compression_triggered: bool = True
    summary_id: str
    compact_up_to_index: int
    """Last position that the summary covers: ``first_kept_index`` less 1."""
    first_kept_index: int
    """Position of the first message after the summary.

    ``messages[first_kept_index:]`` is the kept tail. Some earlier messages may be kept as well.
    """
    compacted_at: str
    """Time when the summary was made: ISO 8601, UTC."""
    message_count: int | None
    """Number of messages when the summary was made, or None if refold before 0.2 made it."""
    compacted_time: float
    """Time when the summary was made, in seconds since 1970."""
    is_split_turn: bool


class StoredMessage(ShortRepr, Value, frozen=True):
    """A message of a conversation as stored in the log."""

    position: int
    message_id: str
    version: int
    """Version of the conversation after the append; ``conversation.context(at=version)`` ends with this
    message.
    """
    message: Message
    at: str
    """Time when it was written, or else logged: ISO 8601, UTC."""
    tokens: int
    mark: CompactionMark | None = None
    """Mark of the active summary if this is the first message after it, or None."""
    summary_id: str | None = None
    """Id of the active summary if it covers the message, or None if the message is in the context."""
    erased: bool = False
    """True if its content was erased; ``message`` then has a marker instead."""

    @property
    def is_archived(self) -> bool:
        """True if the active summary covers it."""
        return self.summary_id is not None

    @property
    def text(self) -> str:
        """Readable text of the message: words and results in full, tool calls abbreviated."""
        return readable(self.message)


class AppendedMessage(Value, frozen=True):
    """The place of an appended message in the log."""

    position: int
    message_id: str
    tokens: int
    new: bool
    """True if the message was stored now, False if its key was stored before."""


class Appended(Value, frozen=True):
    """The result of an append; it is durable."""

    thread_id: str
    version: int
    """Version of the conversation after the append."""
    messages: tuple[AppendedMessage, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the messages, in the given order."""
        return tuple(m.position for m in self.messages)

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the messages, in the given order."""
        return tuple(m.message_id for m in self.messages)


class CompactionResult(Value, frozen=True):
    """The result of a compaction. Sizes are tokens of the whole request."""

    outcome: Outcome
    tokens_before: int
    tokens_after: int
    reason: str = ""
    """Reason why nothing was done or the compaction failed: a short constant."""
    detail: str = ""
    summary_id: str | None = None
    summariser: str | None = None
    messages_covered: int = 0
    """Number of messages that the active summary covers."""
    messages_kept: int = 0
    """Number of messages in the context word for word."""
    results_offloaded: int = 0
    """Number of tool results and inputs that this compaction replaced by previews."""
    results_condensed: int = 0
    """Number of older tool results that this compaction shortened."""
    offloads_released: int = 0
    """Number of previews that were dropped because the summary covers their messages."""
    released: tuple[str, ...] = ()
    """Addresses of the messages whose previews were dropped; ``read`` returns each word for word."""
    thread_id: str = ""
    attempt_id: str | None = None
    trigger: Trigger | None = None
    effective: bool = True
    """True if the target was reached."""
    is_split_turn: bool = False
    rebuilt: bool = False
    """True if the summary was rebuilt from leaf summaries."""
    omitted: tuple[OmittedMessage, ...] = ()
    """Messages that this compaction omitted as too large. The summary names them, and recall finds them."""
    model_calls: int = 0
    """Number of model calls, including retries; 0 if code alone wrote the summary."""
    retries: int = 0
    seconds: float = 0.0
    """Duration in seconds, including the summariser."""
    breaker_open: bool = False
    """True if the circuit breaker is open afterwards; ``CompactionPolicy.breaker_after`` describes it."""
    blocked_since: int | None = None
    """Position of the message that prevents covering any messages, or None."""
    blocked_at: str | None = None
    """Time when the blocking message was logged: ISO 8601, UTC, or None."""

    @property
    def success(self) -> bool:
        """True if the context was made smaller or there was nothing to do."""
        return self.outcome in ("performed", "shortened", "nothing_to_do", "reverted")

    @property
    def freed(self) -> int:
        """Number of tokens that were freed."""
        return self.tokens_before - self.tokens_after
