"""The port to what takes the endings off words."""

from typing import Protocol


class Stemmer(Protocol):
    """Finds the part of English words that their forms share; may be asked by several threads at once."""

    def stem(self, word: str) -> str:
        """Return a word of lower-case ASCII letters without its ending."""
        ...
