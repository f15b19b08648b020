"""The port of a search program of the user's own, asked in place of the built-in index."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from refold.application.recall.hits import RecallMode


class BackendHit(NamedTuple):
    """A message that the program found."""

    thread_id: str
    position: int
    score: float
    """By its own measure; over 0."""


class SearchBackend(Protocol):
    """A program that keeps an index of its own.

    Raises ``BackendError`` where it is absent, too old, hangs or answers nonsense: then the built-in
    search answers, and the result says so.
    """

    @property
    def name(self) -> str:
        """How settings and results call it."""
        ...

    def find(
        self, query: str, mode: RecallMode, thread_id: str | None, limit: int
    ) -> Sequence[BackendHit]:
        """The best messages of one conversation, or of all."""
        ...

    def drop(self) -> bool:
        """Delete everything that was handed to it; whether nothing is left."""
        ...

    def close(self) -> None:
        """Stop what runs; closing twice is fine."""
        ...
