"""What recall answers: hits with where they come from, and how they were found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, overload

from refold.application.api.short_reprs import ShortRepr
from refold.application.projections.fates import Fate
from refold.domain.value import Value

from .passages import PassageKind

RecallMode = Literal["keyword", "vector", "hybrid"]
"""By words; by meaning; by both."""


class Neighbour(Value, frozen=True):
    """The message right before or after a hit."""

    position: int
    role: str
    text: str
    """Cut to a few hundred characters."""
    at: str
    erased: bool = False


class RecallHit(ShortRepr, Value, frozen=True):
    """A passage that answers, read from the log."""

    thread_id: str
    position: int
    version: int
    """Of the conversation when the message was appended."""
    message_id: str
    address: str
    """``chat.read(address)`` gives the whole message."""
    role: str
    kind: PassageKind
    tool: str | None
    at: str
    """When the message was written, or else logged: ISO 8601, UTC."""
    text: str
    """The passage, word for word; cut where it is longer than the answer's room."""
    start: int
    stop: int
    """Where ``text`` stands in ``StoredMessage.text``."""
    score: float
    """Relative to the best hit: over 0, at most 1."""
    why: tuple[str, ...]
    """Why it was found, in short phrases: which words, whose neighbour, how near in meaning."""
    fate: Fate
    """How the context shows the message now: the same word as ``chat.explain``."""
    in_context: bool
    """Whether the context shows this very passage in full now."""
    neighbours: tuple[Neighbour, ...] = ()
    """The messages before and after it, in their order."""


@dataclass(frozen=True, slots=True)
class Recalled(Sequence[RecallHit]):
    """The hits, best first, and how they were found. A sequence of hits."""

    query: str
    hits: tuple[RecallHit, ...]
    mode: RecallMode
    """How it was really searched."""
    notice: str | None = None
    """What did not go as asked, in a sentence: no embedder, vectors still being made, a backend that is
    absent. None: all did."""
    left_out: int = 0
    """Hits that were left out since the context shows them in full."""
    tokens: int = 0
    """Of the texts and neighbours of all hits."""
    topic: str | None = None
    """The topic that was asked for; None: any."""

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> RecallHit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RecallHit, ...]: ...
    def __getitem__(self, index: int | slice) -> RecallHit | tuple[RecallHit, ...]:
        return self.hits[index]
