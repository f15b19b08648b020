"""The port of the recall index: candidates for a question, with what ranking needs to know of them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from refold.application.conversation.owners import Visible
from refold.application.recall.passages import Passage, PassageKind

from .conversation_log import Damage


class Filters(NamedTuple):
    """Which passages may be found at all."""

    thread_id: str | None = None
    """One conversation; None: all that were not erased."""
    roles: frozenset[str] = frozenset()
    """Empty: any."""
    kinds: frozenset[PassageKind] = frozenset()
    """Empty: any."""
    tools: frozenset[str] = frozenset()
    """Names of tools; empty: any, and words as well."""
    since: str | None = None
    """ISO 8601, UTC, compared with ``Passage.at`` as text: from then on."""
    until: str | None = None
    """Before then."""
    positions: tuple[int, int] | None = None
    """From the first up to but not including the second."""
    leave_out: frozenset[int] = frozenset()
    """Positions of the conversation that are not wanted: what the context shows already."""
    visible: Visible | None = None
    """Whose words may be found; None: anybody's."""


NO_FILTERS = Filters()


class Found(NamedTuple):
    """Candidates, and what stands beside them."""

    candidates: Sequence[Passage]
    """Those that the words of the question find, best first by the index's own count, then those of
    ``also``; none twice."""
    neighbours: Mapping[tuple[str, int], Sequence[Passage]]
    """By conversation and position: the passages of the messages next to candidates."""
    frequencies: Mapping[str, int]
    """By token of the question: in how many passages it stands, whichever conversation they are of."""
    total: int
    """How many passages the index has."""


class RecallIndex(Protocol):
    """A read model: caught up with the log before it answers, rebuilt by replay when it is damaged.

    May raise ``LogError`` only for the log itself.
    """

    def edition(self) -> int:
        """Grows when something that was indexed was erased: what is known of the passages of an earlier
        edition, their numbers included, holds no longer. Catches up first, so that it is never behind
        an erasure that the log has.
        """
        ...

    def find(
        self,
        tokens: Sequence[str],
        filters: Filters = NO_FILTERS,
        *,
        limit: int = 50,
        also: Sequence[int] = (),
    ) -> Found:
        """At most ``limit`` candidates that have at least one of these tokens, and ``also``: passages
        by number, as far as the filters let them through. Without tokens, only these.
        """
        ...

    def passages(
        self, after: int = 0, limit: int = 1_000, *, filters: Filters = NO_FILTERS
    ) -> Sequence[Passage]:
        """The passages with a number over ``after``, in their order."""
        ...

    def digests(self) -> Collection[str]:
        """Of the words of every passage: ``Passage.digest``."""
        ...

    def check(self) -> Iterator[Damage]:
        """Compare everything with a fresh fold of the log, without changing either."""
        ...

    def rebuild(self) -> int:
        """Drop everything and fold the log again; returns the number of passages."""
        ...

    def drop(self) -> bool:
        """Delete everything that was folded; the next question folds it anew. Whether nothing is left."""
        ...

    def forget_erased(self) -> bool:
        """Take out what was erased, so that no byte of it is left in any file; whether none is. Where that
        cannot be done in place, everything is deleted, and the next question folds it anew.
        """
        ...

    def close(self) -> None:
        """Release files and connections; closing twice is fine."""
        ...
