"""What the state remembers of messages, of summary, pins and attempts: never texts."""

from datetime import datetime
from typing import NamedTuple

from .coverage import Coverage
from .messages import Role
from .value import Value


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
