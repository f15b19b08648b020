"""The port of a stemmer."""

from typing import Protocol


class Stemmer(Protocol):
    """A stemmer of English words. Safe to call from several threads."""

    def stem(self, word: str) -> str:
        """Return the stem of a word of lower-case ASCII letters."""
        ...
