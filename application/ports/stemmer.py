"""The port of a stemmer, and the stemmer of this process."""

from collections.abc import Callable
from typing import Protocol


class Stemmer(Protocol):
    """A stemmer of English words. Safe to call from several threads."""

    def stem(self, word: str) -> str:
        """Return the stem of a word of lower-case ASCII letters."""
        ...


class NoStemmer:
    """A ``Stemmer`` that refuses every word."""

    def stem(self, word: str) -> str:
        """Refuse a word.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(f"{word} cannot be stemmed: call stem_with() first")


_chosen: Stemmer = NoStemmer()
_users: list[Callable[[Stemmer], None]] = []


def stem_with(stemmer: Stemmer) -> None:
    """Set the stemmer of this process; the composition root calls this.

    An index and its queries need the same stemmer.
    """
    global _chosen
    if stemmer is not _chosen:
        _chosen = stemmer
        for use in _users:
            use(stemmer)


def when_chosen(use: Callable[[Stemmer], None]) -> None:
    """Call this function with the stemmer of this process, and with each that is set later."""
    _users.append(use)
    use(_chosen)
