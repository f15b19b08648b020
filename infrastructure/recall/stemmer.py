"""A ``Stemmer`` with Snowball's rules for English, based on PyStemmer."""

from functools import lru_cache
from importlib import import_module
from threading import get_ident
from typing import Protocol


class _PyStemmer(Protocol):
    def stemWord(self, word: str, /) -> str: ...  # noqa: N802


class SnowballStemmer:
    """A ``Stemmer`` that loads PyStemmer when the first word is stemmed."""

    def stem(self, word: str) -> str:
        """Return the stem of a word."""
        return _english(get_ident()).stemWord(word)


@lru_cache(maxsize=64)
def _english(thread: int) -> _PyStemmer:
    """Return the stemmer of a thread, because threads must not share one. The library has no types."""
    del thread
    stemmer: _PyStemmer = import_module("Stemmer").Stemmer("english")
    return stemmer


SNOWBALL = SnowballStemmer()
"""Stemmer of this process."""
