"""A damaged segment of the recall index is found in the background, dropped, and rebuilt by the next question."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import refold
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.observability.log_observer import Notice
from refold.infrastructure.recall import segments
from refold.infrastructure.recall.index_tables import EVENTS, PROJECTIONS
from refold.infrastructure.recall.recall_index import SQLiteRecallIndex
from refold.infrastructure.recall.segments import SegmentsScrub


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log whose index of recall is whole and closed."""
    path = tmp_path / "agent.db"
    with refold.open(path, scrub_megabytes=0) as memory:
        memory.index()
    append(path, 300)
    with refold.open(path, scrub_megabytes=0) as memory:
        memory.index()
    return path


def append(path: Path, count: int) -> None:
    said = [
        {"role": "user", "content": f"word{n} and word{n * 7} of {n % 5}"} for n in range(count)
    ]
    with refold.open(path, scrub_megabytes=0) as memory:
        memory.conversation("t").append(said)


class Opening:
    """One opening of the index, and what it tells and notes."""

    def __init__(self, log: Path) -> None:
        self.told: list[Notice] = []
        self.kept: list[str] = []
        self.log = SQLiteLog(log)
        place = log.with_name("agent.recall.db")
        self.index = SQLiteRecallIndex(place, self.log, of=log, notify=self.told.append)

    def scrub(self, budget: int = 1 << 30) -> SegmentsScrub:
        last = lambda: self.kept[-1] if self.kept else ""  # noqa: E731
        return SegmentsScrub(self.index.followed, last, self.kept.append, budget)

    def close(self) -> None:
        self.index.close()
        self.log.close()


@pytest.fixture
def opening(log: Path) -> Iterator[Opening]:
    with closing(Opening(log)) as made:
        yield made


def flips(path: Path, every: int) -> Iterator[bytes]:
    """The file with one bit turned over, at places in postings."""
    content = path.read_bytes()
    query = "SELECT locals FROM postings ORDER BY length(locals) DESC"
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
        (largest,) = db.execute(query).fetchone()
    start = content.find(largest[:200])
    assert start > 0
    for at in range(start, start + 900, every):
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        yield bytes(changed)


@pytest.mark.slow
def test_a_flip_in_postings_is_found_and_the_hits_are_those_of_before(
    log: Path,
) -> None:
    path = log.with_name("agent.recall.db")
    with closing(Opening(log)) as opening:
        right = [opening.index.find([f"word{n}"]) for n in (0, 7, 33, 299)]
    for content in flips(path, 97):
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
    assert opening.kept == ["0"]


def test_an_index_that_is_not_there_is_not_made(log: Path, opening: Opening) -> None:
    path = log.with_name("agent.recall.db")
    path.unlink()
    assert not opening.scrub().step()
    assert not path.exists()


def test_segments_are_checked_one_at_a_time_and_the_next_opening_goes_on(
    log: Path, opening: Opening
) -> None:
    append(log, 2 * EVENTS)
    opening.index.passages()
    assert not opening.scrub(1).step()  # There is room for one.
    assert opening.kept == ["0"]
    scrub = opening.scrub()
    assert scrub.step()
    assert scrub.step()
    assert not scrub.step()
    assert opening.kept == ["0", "1", "2", "0"]


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE passages SET tokens = ' other ' WHERE number = 9 << 16",
        "DELETE FROM passages WHERE number = 9 << 16",
        "DELETE FROM postings WHERE place = (SELECT max(place) FROM postings)",
        "UPDATE runs SET row_count = row_count + 1",
    ],
)
def test_what_no_question_would_meet_is_found(log: Path, opening: Opening, harm: str) -> None:
    path = log.with_name("agent.recall.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(harm)
    assert not opening.scrub().step()
    assert not path.exists()


def test_a_check_that_is_given_up_says_nothing(log: Path, opening: Opening) -> None:
    scrub = opening.scrub()
    scrub.interrupt()
    assert not scrub.step()
    assert opening.kept == []
    assert log.with_name("agent.recall.db").exists()


def test_an_index_of_an_earlier_version_is_not_called_damaged(
    log: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its tables have other columns, and the next question rebuilds them."""
    later = {name: version + 1 for name, version in PROJECTIONS.items()}
    monkeypatch.setattr(segments, "PROJECTIONS", later)
    with closing(sqlite3.connect(log.with_name("agent.recall.db"), isolation_level=None)) as db:
        db.execute("ALTER TABLE passages DROP COLUMN is_question")
    opened = Opening(log)
    assert not opened.scrub().step()
    opened.close()
    assert caplog.records == []
    assert log.with_name("agent.recall.db").exists()


def test_opening_a_memory_checks_the_index(log: Path) -> None:
    path = log.with_name("agent.recall.db")
    path.write_bytes(next(flips(path, 97)))
    with refold.open(log) as memory:
        for thread in threading.enumerate():
            if thread.name == "refold-scrub":
                thread.join()
        assert not path.exists()
        assert len(memory.search("word33").hits) > 0


def test_too_little_memory_for_the_check_is_no_damage(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    opening.index.find(["word1"])
    place = Path(f"{opening.log.path}").with_name("agent.recall.db")
    before = place.stat().st_ino
    with monkeypatch.context() as short:
        short.setattr(segments, "problem_of", fail)
        assert not opening.scrub().step()
    opening.index.find(["word1"])
    assert place.stat().st_ino == before
    assert not opening.told
