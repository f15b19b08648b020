"""The port of the recall index: candidates for a query, with the data for ranking."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from refold.application.recall.passages import Passage, PassageKind

from .conversation_log import Damage


class Visible(NamedTuple):
    """Filter for messages that may be found. Messages belong to the conversation's owner by default."""

    owner: str | None
    """Owner whose messages may be found, or None for messages without an owner."""
    threads: frozenset[str]
    """Conversations of this owner. If ``owner`` is None, conversations that have an owner and are excluded."""
    home: str | None = None
    """Conversation whose messages may all be found as well, or None."""

    def lets(self, owner: str | None, thread_id: str) -> bool:
        """Return whether a message may be found; ``owner``: its own owner, if it has one."""
        if thread_id == self.home:
            return True
        if owner:
            return owner == self.owner
        return self.lets_conversation(thread_id)

    def lets_conversation(self, thread_id: str) -> bool:
        """Return whether messages without an owner of their own may be found in a conversation."""
        if thread_id == self.home:
            return True
        return (thread_id in self.threads) == (self.owner is not None)


class Filters(NamedTuple):
    """Conditions that a passage must meet to be found."""

    thread_id: str | None = None
    """Conversation to search, or None for all that were not erased."""
    roles: frozenset[str] = frozenset()
    """Roles of messages; empty for any."""
    kinds: frozenset[PassageKind] = frozenset()
    """Kinds of passages; empty for any."""
    tools: frozenset[str] = frozenset()
    """Names of tools; empty for any tool and for words."""
    since: str | None = None
    """Earliest time, included: ISO 8601, UTC, compared with ``Passage.at`` as text."""
    until: str | None = None
    """Latest time, excluded: ISO 8601, UTC, compared with ``Passage.at`` as text."""
    positions: tuple[int, int] | None = None
    """Range of positions, from the first up to, but not including, the second."""
    leave_out: frozenset[int] = frozenset()
    """Positions to skip, such as those that the context already shows."""
    visible: Visible | None = None
    """Owners whose words may be found, or None for any."""


NO_FILTERS = Filters()


class Found(NamedTuple):
    """Candidates for a query, with their neighbours and term frequencies."""

    candidates: Sequence[Passage]
    """Passages that match words of the query, best first, then those of ``also``; no duplicates."""
    neighbours: Mapping[tuple[str, int], Sequence[Passage]]
    """Passages of the messages next to candidates, by conversation and position. Without vectors, only the best
    candidates by words need have any.
    """
    frequencies: Mapping[str, int]
    """Number of passages, over all conversations, that contain each token of the query."""
    total: int
    """Number of passages in the index."""
    having: Mapping[str, Collection[int]] = {}
    """Numbers of the candidates and neighbours that may have a token, for each token of which the index knows
    them. Very rarely, one of them has another token instead.
    """


class Judge(Protocol):
    """Says how far a search must go."""

    def may_match(self, found: Found, absent: Collection[str]) -> bool:
        """Return whether candidates are needed. An index that cannot say what is absent need not ask.

        ``found`` has none yet. No passage that passes the filters has the tokens that are ``absent``.
        """
        ...

    def wants_neighbours(self, found: Found) -> bool:
        """Return whether neighbours are needed. ``found`` has the candidates only."""
        ...


class RecallIndex(Protocol):
    """A read model that catches up with the log before each query and is rebuilt if it is damaged.

    Raises ``LogError`` only for the log itself.
    """

    def edition(self) -> int:
        """Return a number that increases when indexed content is erased.

        Data about passages of an earlier edition, including their numbers, is then invalid. Catches up with
        the log first, so that no erasure in the log is missed.
        """
        ...

    def find(
        self,
        tokens: Sequence[str],
        filters: Filters = NO_FILTERS,
        *,
        limit: int = 50,
        also: Sequence[int] = (),
        judge: Judge | None = None,
    ) -> Found:
        """Return at most ``limit`` candidates that contain one of the tokens, and the passages in ``also``.

        ``also``: passage numbers, subject to the filters. Without tokens only these are returned.
        ``judge`` says how far the search goes; without one it goes to its end.
        """
        ...

    def passages(
        self, after: int = 0, limit: int = 1_000, *, filters: Filters = NO_FILTERS
    ) -> Sequence[Passage]:
        """Return at most ``limit`` passages with a number over ``after``, in their order."""
        ...

    def digests(self) -> Collection[str]:
        """Return ``Passage.digest`` of every passage."""
        ...

    def check(self) -> Iterator[Damage]:
        """Compare everything with a new fold of the log; change nothing."""
        ...

    def rebuild(self) -> int:
        """Delete everything and fold the log again. Return the number of passages."""
        ...

    def drop(self) -> bool:
        """Delete all folded data. Return whether none remains.

        The next query rebuilds it.
        """
        ...

    def forget_erased(self) -> bool:
        """Remove erased content, so that no byte of it remains in a file. Return whether none remains.

        If that is not possible in place, everything is deleted, and the next query rebuilds it.
        """
        ...

    def close(self) -> None:
        """Release files and connections; closing twice is safe."""
        ...
