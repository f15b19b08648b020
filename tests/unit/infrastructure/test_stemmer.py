"""The stemmer that bootstrap puts in takes endings off, for each thread by an object of its own."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import refold
from refold.application.ports.stemmer import NoStemmer, Stemmer, stem_with
from refold.application.recall.tokens import tokens_of
from refold.infrastructure.recall.stemmer import SNOWBALL


class Shouting:
    """Marks each word that it is asked for."""

    def stem(self, word: str) -> str:
        return f"{word}x"


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    yield
    stem_with(SNOWBALL)


def test_endings_are_taken_off() -> None:
    stemmer: Stemmer = SNOWBALL
    assert [stemmer.stem(word) for word in ("ports", "running", "happily")] == [
        "port",
        "run",
        "happili",
    ]


def test_many_threads_may_ask_at_once() -> None:
    words = ["connections", "erased", "searching"] * 200
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(SNOWBALL.stem, words)) == ["connect", "eras", "search"] * 200


def test_the_stemmer_that_is_put_in_is_asked_from_then_on() -> None:
    assert tokens_of("ports") == ["port"]
    stem_with(Shouting())
    assert tokens_of("ports") == ["portsx"]
    stem_with(SNOWBALL)
    assert tokens_of("ports") == ["port"]


def test_opening_a_memory_puts_the_stemmer_in() -> None:
    stem_with(Shouting())
    refold.open(":memory:").close()
    assert tokens_of("ports") == ["port"]


def test_without_a_stemmer_words_are_refused() -> None:
    stem_with(NoStemmer())
    with pytest.raises(RuntimeError, match="stem_with"):
        tokens_of("ports")
