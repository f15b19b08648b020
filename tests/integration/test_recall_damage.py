"""A damaged recall index is noticed and rebuilt without a person, and never by a check."""

import logging
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest

import refold
from refold.application.ports.recall_index import Filters
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.recall import index_tables
from refold.infrastructure.recall.index_tables import BUCKET_BITS, SEGMENT_BITS
from refold.infrastructure.recall.recall_index import SQLiteRecallIndex
from tests.support.log_files import execute
from tests.support.view_events import Scribe

RUN_BITS = SEGMENT_BITS + 1
"""Number of low bits of a run below its first event."""
Answers = list[object]
QUESTIONS: Sequence[list[str]] = (
    ["one"],
    ["port", "two"],
    ["common"],
    ["absent"],
    ["2026"],
    ["线"],
    [],
)


@pytest.fixture(autouse=True)
def _nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the postings of each message at once."""
    monkeypatch.setattr(index_tables, "WAITING", 1)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SQLiteLog]:
    with closing(SQLiteLog(tmp_path / "agent.db")) as opened:
        scribe = Scribe(opened)
        scribe.say("t", "one port", "two common words", "common 线程", "long text. " * 600)
        scribe.compact("t", "first")
        scribe.say("u", "common port")
        yield opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.recall.db"


def answers(log: SQLiteLog, path: Path | str) -> Answers:
    with closing(SQLiteRecallIndex(path, log)) as index:
        return asked(index)


def asked(index: SQLiteRecallIndex) -> Answers:
    scopes = (Filters(), Filters(thread_id="t"), Filters(thread_id="nobody"))
    return [
        *(index.find(tokens, scope) for tokens in QUESTIONS for scope in scopes),
        *(index.passages(0, 99, filters=scope) for scope in scopes),
        index.passages(2, 2),
    ]


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.executescript(statement)


OF_COMMON = f"(SELECT place FROM postings WHERE place >> {BUCKET_BITS + RUN_BITS} = 2)"
"""The postings of the second message: they are one row, because no other waits."""
PLANTED = {
    "a changed token": "UPDATE passages SET tokens = ' three port ' WHERE number = 1 << 16",
    "a changed number": "UPDATE passages SET stop = stop + 1 WHERE number = 2 << 16",
    "a changed digest": "UPDATE passages SET digest = 'd' WHERE number = 2 << 16",
    "a passage deleted": "DELETE FROM passages WHERE number = 2 << 16",
    "the newest passage deleted": "DELETE FROM passages WHERE thread_id = 'u'",
    "all passages deleted": "DELETE FROM passages",
    "a passage of another": "UPDATE passages SET thread = (SELECT thread FROM passages WHERE "
    "thread_id = 'u'), thread_id = 'u', position = 9 WHERE number = 1 << 16",
    "a passage added": "INSERT INTO passages SELECT 99, thread_id, 99, version, part, role, kind, "
    "tool, at, session, start, stop, is_question, tokens, token_count, digest, owner, thread, checksum FROM passages "
    "WHERE number = 1 << 16",
    "postings deleted": f"DELETE FROM postings WHERE place = {OF_COMMON}",
    "all postings deleted": "DELETE FROM postings",
    "a posting emptied": f"UPDATE postings SET locals = x'' WHERE place = {OF_COMMON}",
    "a posting shortened": "UPDATE postings SET locals = substr(locals, 1, 4) "
    f"WHERE place = {OF_COMMON}",
    "a posting of text": "UPDATE postings SET locals = zeroblob(7)",
    "a posting that leads elsewhere": "UPDATE postings SET locals = x'01000000'",
    "a posting with its checksum that leads elsewhere": "UPDATE postings SET locals = x'01000000', "
    f"checksum = {crc32(bytes([1, 0, 0, 0]))}",
    "a posting in another place": f"UPDATE postings SET place = place + 1 WHERE place = {OF_COMMON}",
    "a posting of another run": "UPDATE postings SET (checksum, terms, locals) = (SELECT checksum, terms, "
    f"locals FROM postings ORDER BY place LIMIT 1) WHERE place = {OF_COMMON}",
    "postings of no term": "UPDATE postings SET terms = x''",
    "postings of other terms": f"UPDATE postings SET terms = zeroblob(length(terms)) WHERE place = {OF_COMMON}",
    "the runs deleted": "DELETE FROM runs",
    "a run deleted": f"DELETE FROM runs WHERE run >> {RUN_BITS} = 2",
    "the runs deleted with their postings": "DELETE FROM runs; DELETE FROM postings",
    "a run of another number": "UPDATE runs SET run = run + 1",
    "a run with another count": "UPDATE runs SET row_count = row_count + 1",
    "a run of other postings": "UPDATE runs SET checks = zeroblob(length(checks))",
    "a conversation deleted": "DELETE FROM threads WHERE thread_id = 't'",
    "a conversation changed": "UPDATE threads SET session = 7 WHERE thread_id = 't'",
    "the position ahead": "UPDATE positions SET number = number + 100",
    "the position behind": "UPDATE positions SET number = 3",
    "the position lost": "DELETE FROM positions",
    "another version": "UPDATE positions SET version = 99",
    "a table dropped": "DROP TABLE threads",
    "the postings dropped": "DROP TABLE postings",
    "the runs dropped": "DROP TABLE runs",
    "the positions dropped": "DROP TABLE positions",
    "a column added": "ALTER TABLE passages ADD COLUMN mood TEXT",
    "a table added": "CREATE TABLE notes (text TEXT)",
    "the index of places dropped": "DROP INDEX passages_by_place",
}


@pytest.mark.slow(but=["all passages deleted", "the runs deleted", "a changed number"])
@pytest.mark.parametrize("statement", PLANTED.values(), ids=PLANTED.keys())
def test_an_edit_by_hand_is_noticed_and_repaired(
    log: SQLiteLog, path: Path, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    right = answers(log, path)
    edit(path, statement)
    with closing(SQLiteRecallIndex(path, log)) as index:
        assert asked(index) == right
        assert list(index.check()) == []
    assert "damaged" in caplog.text
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.slow(but=["postings deleted", "the newest passage deleted", "a changed token"])
@pytest.mark.parametrize("statement", PLANTED.values(), ids=PLANTED.keys())
def test_a_check_finds_each_edit_and_changes_nothing(
    log: SQLiteLog, path: Path, statement: str
) -> None:
    answers(log, path)
    edit(path, statement)
    before = path.read_bytes()
    with closing(SQLiteRecallIndex(path, log)) as index:
        found = list(index.check())
        assert found
        assert list(index.check()) == found
    assert {damage.kind for damage in found} <= {"missing", "unexpected", "differs", "unreadable"}
    assert path.read_bytes() == before


def test_a_check_names_the_passage(log: SQLiteLog, path: Path) -> None:
    answers(log, path)
    edit(path, PLANTED["a changed number"], PLANTED["the newest passage deleted"])
    with closing(SQLiteRecallIndex(path, log)) as index:
        found = [d for d in index.check() if d.place == "passages"]
    assert [(d.thread_id, d.version, d.kind) for d in found] == [
        ("t", 2, "differs"),
        ("u", 1, "missing"),
    ]
    assert f"number={2 << 16}" in found[0].detail
    assert "stop" in found[0].detail


def zero(path: Path) -> None:
    path.write_bytes(b"")


def garble(path: Path) -> None:
    path.write_bytes(b"no database at all " * 1_000)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwrite_pages(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)


def flip_tokens(path: Path) -> None:
    content = path.read_bytes()
    assert b"common" in content
    path.write_bytes(content.replace(b"common", b"comm\xffn"))


def stale(path: Path) -> None:
    """A file of another log."""
    other = path.with_name("other.db")
    with closing(SQLiteLog(other)) as log:
        Scribe(log).say("t", "one port", "else", "else", "else", "else", "else", "else", "else")
        answers(log, path.with_name("other.recall.db"))
    shutil.move(path.with_name("other.recall.db"), path)


@pytest.mark.slow(but=["zero", "flip_tokens"])
@pytest.mark.parametrize("harm", [zero, garble, cut, overwrite_pages, flip_tokens, stale])
def test_a_broken_file_is_noticed_and_rebuilt(
    log: SQLiteLog, path: Path, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    right = answers(log, path)
    harm(path)
    with closing(SQLiteRecallIndex(path, log)) as index:
        assert list(index.check())
        assert asked(index) == right
        assert list(index.check()) == []
    assert caplog.records


@pytest.mark.parametrize("suffixes", [("",), ("", "-wal", "-shm"), ("-wal", "-shm")])
def test_a_file_that_is_deleted_while_it_is_open_is_made_again(
    log: SQLiteLog, path: Path, suffixes: tuple[str, ...]
) -> None:
    with closing(SQLiteRecallIndex(path, log)) as index:
        right = asked(index)
        for suffix in suffixes:
            Path(f"{path}{suffix}").unlink()
        assert asked(index) == right
        assert path.exists()
        Scribe(log).say("u", "more")
        assert [p.thread_id for p in index.find(["more"]).candidates] == ["u"]


def test_an_older_copy_of_the_file_only_catches_up(
    log: SQLiteLog, path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answers(log, path)
    shutil.copy(path, tmp_path / "older.db")
    Scribe(log).say("t", "one more")
    right = answers(log, path)
    assert answers(log, tmp_path / "older.db") == right
    assert caplog.records == []


@pytest.mark.parametrize("place", ["missing/folder/a.recall.db", "agent.db/a.recall.db", "."])
def test_where_no_file_can_be_the_index_lives_in_memory(
    log: SQLiteLog, tmp_path: Path, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(SQLiteRecallIndex(tmp_path / place, log)) as index:
        assert asked(index) == answers(log, ":memory:")
        assert index.rebuild() == len(index.passages(0, 99))
    assert "in memory" in caplog.text


def test_verify_repairs_it_and_replay_folds_it_anew(tmp_path: Path, log: SQLiteLog) -> None:
    del log
    with refold.open(tmp_path / "agent.db") as memory:
        assert memory.search("port")
        assert memory.verify().ok
        execute(
            tmp_path / "agent.recall.db", "UPDATE passages SET role='system' WHERE number = 1 << 16"
        )
        found = memory.verify()
        assert [(d.place, d.thread_id, d.version, d.kind) for d in found.damage] == [
            ("passages", "t", 1, "differs")
        ]
        assert "refold verify --repair" in found.damage[0].remedy
        repaired = memory.verify(repair=True)
        assert repaired.ok
        assert repaired.repaired == ("the recall index (passages): rebuilt from the log",)
        assert memory.replay().passages == len(
            memory._core.recall.index.passages()  # pyright: ignore[reportPrivateUsage]
        )


def test_a_repair_while_it_is_asked_is_told(
    tmp_path: Path, log: SQLiteLog, caplog: pytest.LogCaptureFixture
) -> None:
    del log
    with refold.open(tmp_path / "agent.db") as memory:
        right = memory.search("port")
        execute(tmp_path / "agent.recall.db", "DELETE FROM passages WHERE number = 1 << 16")
        assert memory.search("port") == right
    told = {getattr(r, "event", ""): getattr(r, "passages", 0) for r in caplog.records}
    assert told["recall.rebuilt"] > 4
