"""``Stemmer`` by Snowball's rules for English, in PyStemmer."""

from functools import lru_cache
from importlib import import_module
from threading import get_ident
from typing import Protocol


class _PyStemmer(Protocol):
    def stemWord(self, word: str, /) -> str: ...  # noqa: N802


class SnowballStemmer:
    """``Stemmer`` that loads PyStemmer at the first word."""

    def stem(self, word: str) -> str:
        """See ``Stemmer``."""
        return _english(get_ident()).stemWord(word)


@lru_cache(maxsize=64)
def _english(thread: int) -> _PyStemmer:
    """Return the stemmer of a thread: one must not be shared. The library is compiled, without types."""
    del thread
    stemmer: _PyStemmer = import_module("Stemmer").Stemmer("english")
    return stemmer


SNOWBALL = SnowballStemmer()
"""The stemmer of this process."""
