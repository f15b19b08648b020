"""A damaged index of words is found in the background, dropped, and rebuilt by the next question."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import refold
from refold.infrastructure.log.store import SQLiteLog
from refold.infrastructure.observing.notices import Notice
from refold.infrastructure.recall.index import SQLiteRecallIndex
from refold.infrastructure.recall.words_check import WORD_TABLES, WordTable
from refold.infrastructure.recall.words_scrub import WordsScrub


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log whose index of recall is whole and closed."""
    path = tmp_path / "agent.db"
    with refold.open(path, scrub_megabytes=0) as memory:
        memory.conversation("t").append(
            [{"role": "user", "content": f"word{n} and word{n * 7} of {n % 5}"} for n in range(300)]
        )
        memory.index()
    return path


class Opening:
    """One opening of the index, and what it tells and notes."""

    def __init__(self, log: Path) -> None:
        self.told: list[Notice] = []
        self.kept: list[str] = []
        self.log = SQLiteLog(log)
        place = log.with_name("agent.recall.db")
        self.index = SQLiteRecallIndex(place, self.log, of=log, told=self.told.append)

    def scrub(
        self, budget: int = 1 << 20, tables: tuple[WordTable, ...] = WORD_TABLES
    ) -> WordsScrub:
        last = lambda: self.kept[-1] if self.kept else ""  # noqa: E731
        return WordsScrub(self.index.followed, last, self.kept.append, budget, tables)

    def close(self) -> None:
        self.index.close()
        self.log.close()


@pytest.fixture
def opening(log: Path) -> Iterator[Opening]:
    with closing(Opening(log)) as made:
        yield made


def blocks(path: Path) -> list[tuple[int, bytes]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
        return db.execute("SELECT id, block FROM words_data ORDER BY id").fetchall()


def flips_in_words(path: Path, every: int) -> Iterator[bytes]:
    """The file with one bit turned over, at places in the blocks of FTS5."""
    content = path.read_bytes()
    _, largest = max(blocks(path), key=lambda row: len(row[1]))
    start = content.find(largest[:200])
    assert start > 0
    for at in range(start, start + 3_000, every):
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        yield bytes(changed)


def test_a_flip_in_the_blocks_of_words_is_found_and_the_hits_are_those_of_before(
    log: Path,
) -> None:
    path = log.with_name("agent.recall.db")
    with closing(Opening(log)) as opening:
        right = [opening.index.find([f"word{n}"]) for n in (0, 7, 33, 299)]
    for content in flips_in_words(path, 97):
        path.write_bytes(content)
        with closing(Opening(log)) as opening:
            assert not opening.scrub().step()
            assert not path.exists()
            assert [opening.index.find([f"word{n}"]) for n in (0, 7, 33, 299)] == right
            assert [one.name for one in opening.told] == ["recall.rebuilt"]
        assert path.exists()


def test_a_whole_index_stays_and_nothing_is_written(log: Path, opening: Opening) -> None:
    path = log.with_name("agent.recall.db")
    before = path.read_bytes()
    assert not opening.scrub().step()
    assert path.read_bytes() == before
    assert opening.kept == ["words"]


def test_an_index_that_is_not_there_is_not_made(log: Path, opening: Opening) -> None:
    path = log.with_name("agent.recall.db")
    path.unlink()
    assert not opening.scrub().step()
    assert not path.exists()


def test_indexes_are_checked_one_at_a_time_and_the_next_opening_goes_on(opening: Opening) -> None:
    second = WORD_TABLES[0]._replace(name="words")
    tables = (WORD_TABLES[0]._replace(name="absent"), second)
    opening.kept.append("absent")
    scrub = opening.scrub(1, tables)
    assert not scrub.step()  # There is room for one.
    assert opening.kept == ["absent", "words"]


def test_a_check_that_is_given_up_says_nothing(log: Path, opening: Opening) -> None:
    scrub = opening.scrub()
    scrub.interrupt()
    assert not scrub.step()
    assert opening.kept == []
    assert log.with_name("agent.recall.db").exists()


def test_opening_a_memory_checks_the_index(log: Path) -> None:
    path = log.with_name("agent.recall.db")
    path.write_bytes(next(flips_in_words(path, 97)))
    with refold.open(log) as memory:
        for thread in threading.enumerate():
            if thread.name == "refold-scrub":
                thread.join()
        assert not path.exists()
        assert len(memory.search("word33").hits) > 0
