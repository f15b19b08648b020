"""The port of an external search program that replaces the built-in index."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from refold.application.runtime.memory_settings import RecallMode


class BackendHit(NamedTuple):
    """A message that the program found."""

    thread_id: str
    position: int
    score: float
    """Score by the measure of the program; greater than 0."""


class SearchBackend(Protocol):
    """A search program with its own index.

    Raises ``BackendError`` if the program is absent, too old, hangs or returns invalid output. The built-in
    search is then used, and the result says so.
    """

    @property
    def name(self) -> str:
        """Name in settings and results."""
        ...

    def find(
        self, query: str, mode: RecallMode, thread_id: str | None, limit: int
    ) -> Sequence[BackendHit]:
        """Return the best messages of one conversation, or of all."""
        ...

    def drop(self) -> bool:
        """Delete all data that the program received. Return whether none remains."""
        ...

    def close(self) -> None:
        """Stop running work; closing twice is safe."""
        ...
