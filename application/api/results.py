"""What the service answers: what was stored, and how a compaction went."""

from typing import Literal

from refold.application.projections.message_list import readable
from refold.application.runtime.plain_lines import ShortRepr
from refold.domain.events import OmittedMessage, Trigger
from refold.domain.messages import Message
from refold.domain.value import Value

Outcome = Literal[
    "performed", "shortened", "nothing_to_do", "failed", "in_flight", "reverted", "waiting"
]
"""``shortened``: tool content was offloaded or condensed, and no summary was needed. ``waiting``: the summary
is made and the log could not be written; the next operation that can writes it, without asking again."""


class CompactionMark(Value, frozen=True):
    """Says, at the first message after the active summary, what stands for the ones before (A8)."""

    compression_triggered: bool = True
    summary_id: str
    compact_up_to_index: int
    """The last position that the summary reaches to: ``first_kept_index`` less 1."""
    first_kept_index: int
    """The position of the first message after that: ``messages[first_kept_index:]`` is the tail that is
    kept, besides what is kept of the messages before.
    """
    compacted_at: str
    """When it was made: ISO 8601, UTC."""
    message_count: int | None
    """How many messages the conversation had then; None if it was made by a version before 0.2."""
    compacted_time: float
    """The same in seconds since 1970."""
    is_split_turn: bool


class StoredMessage(ShortRepr, Value, frozen=True):
    """A message of a conversation, as the log holds it."""

    position: int
    message_id: str
    version: int
    """Of the conversation when it was appended: ``conversation.context(at=version)`` ends with this message."""
    message: Message
    at: str
    """When it was written, or else logged: ISO 8601, UTC."""
    tokens: int
    mark: CompactionMark | None = None
    """Of the first message that the active summary does not reach."""
    summary_id: str | None = None
    """The active summary, where that covers the message; None where the message is in the context."""
    erased: bool = False
    """Whether its content was erased: ``message`` is what is left of it, a marker in its place."""

    @property
    def is_archived(self) -> bool:
        """Whether the active summary stands for it in the context."""
        return self.summary_id is not None

    @property
    def text(self) -> str:
        """What it says as people read it: words and results in full, tool calls in short."""
        return readable(self.message)


class AppendedMessage(Value, frozen=True):
    """Where an appended message is stored."""

    position: int
    message_id: str
    tokens: int
    new: bool
    """False if a message with the same key was stored before: then nothing was stored now."""


class Appended(Value, frozen=True):
    """What an append stored; it is durable."""

    thread_id: str
    version: int
    """The version of the conversation after the append."""
    messages: tuple[AppendedMessage, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the messages, in the order they were given."""
        return tuple(m.position for m in self.messages)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the messages, in the order they were given."""
        return tuple(m.message_id for m in self.messages)


class CompactionResult(Value, frozen=True):
    """How a compaction went (requirement D7). Sizes are tokens of the whole request."""

    outcome: Outcome
    tokens_before: int
    tokens_after: int
    reason: str = ""
    """Why nothing was done, or why it failed: a short constant."""
    detail: str = ""
    summary_id: str | None = None
    summariser: str | None = None
    messages_covered: int = 0
    """How many messages the active summary stands for now."""
    messages_kept: int = 0
    """How many messages are in the context word for word."""
    results_offloaded: int = 0
    """How many tool results and inputs were replaced by previews on the way."""
    results_condensed: int = 0
    """How many older tool results were cut short on the way."""
    offloads_released: int = 0
    """How many previews went away because their message is covered now."""
    released: tuple[str, ...] = ()
    """The addresses of the messages that these were of; ``read`` gives each back word for word."""
    thread_id: str = ""
    attempt_id: str | None = None
    trigger: Trigger | None = None
    effective: bool = True
    """Whether the target was reached (invariant 7)."""
    is_split_turn: bool = False
    rebuilt: bool = False
    """Whether the summary was built anew from leaf summaries."""
    omitted: tuple[OmittedMessage, ...] = ()
    """Messages that this compaction left out as too large: named in the text, recallable."""
    model_calls: int = 0
    """How often a model was asked for it, retries included; 0 where code alone wrote it."""
    retries: int = 0
    seconds: float = 0.0
    """How long it took, summariser included."""
    breaker_open: bool = False
    """Whether the circuit breaker is open after it: see ``CompactionPolicy.breaker_after``."""
    blocked_since: int | None = None
    """The position of the message that blocks, where nothing can be covered."""
    blocked_at: str | None = None
    """When that message was logged: ISO 8601, UTC."""

    @property
    def success(self) -> bool:
        """Whether all is well: the context was made smaller, or there was nothing to do."""
        return self.outcome in ("performed", "shortened", "nothing_to_do", "reverted")

    @property
    def freed(self) -> int:
        """Tokens that were freed."""
        return self.tokens_before - self.tokens_after
