"""Damaged read models are noticed and rebuilt without a person (requirement A10), and never by a check."""

import logging
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.projection_store.read_models import SQLiteViews
from tests.support.view_events import Scribe

Answers = list[object]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SQLiteLog]:
    with closing(SQLiteLog(tmp_path / "agent.db")) as opened:
        scribe = Scribe(opened)
        scribe.say("t", "one", "two", "three", "four")
        scribe.compact("t", "first")
        scribe.say("t", "five")
        scribe.compact("t", "second")
        scribe.fail("t")
        scribe.label("u", "empty one")
        yield opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.views.db"


def answers(log: SQLiteLog, path: Path | str) -> Answers:
    with closing(SQLiteViews(path, log)) as views:
        return asked(views)


def asked(views: SQLiteViews) -> Answers:
    return [
        views.conversations(),
        *(views.conversation(t) for t in ("t", "u", "nobody")),
        *(views.messages(t, 0, 100) for t in ("t", "u", "nobody")),
        views.messages("t", 1, 3),
        *(views.summaries(t) for t in ("t", "u", "nobody")),
        *(views.compactions(t) for t in ("t", "u", "nobody")),
        *(views.request_sizes(t) for t in ("t", "u", "nobody")),
    ]


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.executescript(statement)


EDITS = {
    "a changed size": "UPDATE request_sizes SET sizes = replace(sizes, '7,', '8,') WHERE events = 256",
    "a lost row of sizes": "DELETE FROM request_sizes WHERE events = 256 AND thread_id = 't'",
    "a changed text": "UPDATE messages SET text = 'tow' WHERE position = 1",
    "a changed number": "UPDATE conversations SET tokens = tokens + 1 WHERE thread_id = 't'",
    "a changed summary": "UPDATE summaries SET summary_text = 'x' WHERE is_active = 0",
    "a summary that is active no more": "UPDATE summaries SET is_active = 0",
    "a changed attempt": "UPDATE compactions SET outcome = 'performed', reason = NULL",
    "a label for None": "UPDATE conversations SET label = 'None' WHERE label IS NULL",
    "a message deleted": "DELETE FROM messages WHERE position = 2",
    "the newest message deleted": "DELETE FROM messages WHERE position = 4",
    "all messages deleted": "DELETE FROM messages",
    "a conversation deleted": "DELETE FROM conversations WHERE thread_id = 'u'",
    "a summary deleted": "DELETE FROM summaries WHERE is_active = 0",
    "an attempt deleted": "DELETE FROM compactions WHERE outcome = 'failed'",
    "a message of another": "UPDATE messages SET thread_id = 'u' WHERE position = 4",
    "a tally deleted": "DELETE FROM tallies WHERE projection = 'messages'",
    "a tally changed": "UPDATE tallies SET row_count = row_count + 1",
    "messages deleted with their tally": "DELETE FROM messages; "
    "DELETE FROM tallies WHERE projection = 'messages'",
    "the position ahead": "UPDATE positions SET number = number + 100",
    "the position behind": "UPDATE positions SET number = 3",
    "the position lost": "DELETE FROM positions",
    "a position lost": "DELETE FROM positions WHERE projection = 'messages'",
    "another version": "UPDATE positions SET version = 99 WHERE projection = 'messages'",
    "a table dropped": "DROP TABLE summaries",
    "the positions dropped": "DROP TABLE positions",
    "a column added": "ALTER TABLE messages ADD COLUMN mood TEXT",
    "a table added": "CREATE TABLE moods (text TEXT)",
    "the rule of one active summary dropped": "DROP INDEX one_active_summary",
}
ADDED = {
    "a message added": "INSERT INTO messages SELECT thread_id, 99, version, message_id, role, at, "
    "tokens, text, owner, checksum FROM messages WHERE position = 0",
    "a conversation added": "INSERT INTO conversations SELECT 'new', label, messages, tokens, "
    "compactions, created_at, last_activity, version, erased, forked_from, forked_at, "
    "first_words, first_words_at, owner, erased_messages, checksum FROM conversations LIMIT 1",
    "an attempt added": "INSERT INTO compactions SELECT 'a9', thread_id, trigger, outcome, reason, "
    "summariser, summary_id, requested_at, ended_at, tokens_before, tokens_after, covered_count, "
    "focus, model_calls, checksum FROM compactions LIMIT 1",
}
PLANTED = EDITS | ADDED


@pytest.mark.slow(but=["an attempt added", "a conversation added", "a changed number"])
@pytest.mark.parametrize("statement", PLANTED.values(), ids=PLANTED.keys())
def test_an_edit_by_hand_is_noticed_and_repaired(
    log: SQLiteLog, path: Path, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    right = answers(log, path)
    edit(path, statement)
    with closing(SQLiteViews(path, log)) as views:
        assert asked(views) == right
        assert list(views.check()) == []
    assert "damaged" in caplog.text
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.slow(but=["a label for None", "a changed text", "the newest message deleted"])
@pytest.mark.parametrize("statement", PLANTED.values(), ids=PLANTED.keys())
def test_a_check_finds_each_edit_and_changes_nothing(
    log: SQLiteLog, path: Path, statement: str
) -> None:
    answers(log, path)
    edit(path, statement)
    before = path.read_bytes()
    with closing(SQLiteViews(path, log)) as views:
        found = list(views.check())
        assert found
        assert list(views.check()) == found
    assert {damage.kind for damage in found} <= {"missing", "unexpected", "differs", "unreadable"}
    assert path.read_bytes() == before


def test_a_check_names_the_row(log: SQLiteLog, path: Path) -> None:
    answers(log, path)
    edit(
        path, EDITS["a changed text"], EDITS["the newest message deleted"], ADDED["a message added"]
    )
    with closing(SQLiteViews(path, log)) as views:
        found = [d for d in views.check() if d.place == "messages"]
    assert [(d.thread_id, d.version, d.kind) for d in found] == [
        ("t", 2, "differs"),
        ("t", 7, "missing"),
        ("t", 1, "unexpected"),
    ]
    assert "position=1" in found[0].detail
    assert "text" in found[0].detail


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


def flip_text(path: Path) -> None:
    content = path.read_bytes()
    assert b"three" in content
    path.write_bytes(content.replace(b"three", b"thr\xffe"))


@pytest.mark.parametrize("harm", [zero, garble, cut, overwrite_pages, flip_text])
def test_a_broken_file_is_noticed_and_rebuilt(
    log: SQLiteLog, path: Path, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    right = answers(log, path)
    harm(path)
    with closing(SQLiteViews(path, log)) as views:
        assert list(views.check())
        assert asked(views) == right
        assert list(views.check()) == []
    assert caplog.records


def test_a_row_that_an_index_lacks_is_not_left_as_it_is(log: SQLiteLog, path: Path) -> None:
    answers(log, path)
    lost = "name = 'sqlite_autoindex_conversations_1'"  # As after a loss of power: an empty page in its place.
    edit(
        path,
        "CREATE TABLE spare (text TEXT PRIMARY KEY); PRAGMA writable_schema = ON",
        f"UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema "
        f"WHERE name = 'sqlite_autoindex_spare_1') WHERE {lost}; PRAGMA writable_schema = RESET",
        "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE tbl_name = 'spare'",
    )
    Scribe(log).say("u", "more")
    with closing(SQLiteViews(path, log)) as views:
        assert {row.thread_id: row.messages for row in views.conversations()} == {"t": 5, "u": 1}


@pytest.mark.parametrize("suffixes", [("",), ("", "-wal", "-shm"), ("-wal", "-shm")])
def test_a_file_that_is_deleted_while_it_is_open_is_made_again(
    log: SQLiteLog, path: Path, suffixes: tuple[str, ...]
) -> None:
    with closing(SQLiteViews(path, log)) as views:
        right = asked(views)
        for suffix in suffixes:
            Path(f"{path}{suffix}").unlink()
        assert asked(views) == right
        assert path.exists()
        Scribe(log).say("u", "more")
        assert [row.text for row in views.messages("u", 0, 9)] == ["more"]
    with closing(SQLiteViews(path, log)) as views:
        assert [row.text for row in views.messages("u", 0, 9)] == ["more"]


def test_damage_is_repaired_in_the_hands_of_others_too(log: SQLiteLog, path: Path) -> None:
    with closing(SQLiteViews(path, log)) as one, closing(SQLiteViews(path, log)) as two:
        right = asked(one)
        assert asked(two) == right
        edit(path, EDITS["a changed text"])
        assert asked(one) == right
        assert asked(two) == right
        two.rebuild()
        assert asked(one) == right
        assert list(one.check()) == []


def test_a_log_restored_from_a_backup_is_noticed(
    log: SQLiteLog, path: Path, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    edit(tmp_path / "agent.db", f"VACUUM INTO '{backup}'")
    Scribe(log).say("t", "lost again")
    answers(log, path)
    with closing(SQLiteLog(backup)) as restored:
        assert answers(restored, path) == answers(restored, ":memory:")
        answers(log, path)
        # As many events as before, and others.
        Scribe(restored).say("t", "said instead")
        assert answers(restored, path) == answers(restored, ":memory:")


def test_an_older_copy_of_the_file_only_catches_up(
    log: SQLiteLog, path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answers(log, path)
    shutil.copy(path, tmp_path / "older.db")
    Scribe(log).say("t", "six")
    right = answers(log, path)
    assert answers(log, tmp_path / "older.db") == right
    assert caplog.records == []


def test_a_dropped_index_is_made_again_without_a_rebuild(
    log: SQLiteLog, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answers(log, path)
    edit(path, "DROP INDEX messages_by_id")
    Scribe(log).say("t", "six")
    answers(log, path)
    edit(path, "REINDEX messages_by_id")
    assert caplog.records == []


@pytest.mark.parametrize("place", ["missing/folder/agent.views.db", "agent.db/agent.views.db", "."])
def test_where_no_file_can_be_the_read_models_live_in_memory(
    log: SQLiteLog, tmp_path: Path, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(SQLiteViews(tmp_path / place, log)) as views:
        assert asked(views) == answers(log, ":memory:")
        assert views.rebuild() == sum(1 for _ in log.scan())
    assert "in memory" in caplog.text


def test_a_file_that_could_not_be_used_is_deleted_with_what_is_in_memory(
    log: SQLiteLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(log, path)
    Scribe(log).say("t", "six")
    with closing(SQLiteViews(path, log)) as views:
        with monkeypatch.context() as patch, closing(sqlite3.connect(path)) as other:
            patch.setattr("refold.infrastructure.projection_store.database_file.BUSY_TIMEOUT", 0.05)
            other.execute("BEGIN IMMEDIATE")
            asked(views)
        assert path.exists()
        assert views.drop()
        assert not path.exists()
        assert asked(views) == answers(log, ":memory:")


def test_a_file_that_others_hold_for_too_long_is_not_waited_for(
    log: SQLiteLog, path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refold.infrastructure.projection_store.database_file.BUSY_TIMEOUT", 0.05)
    answers(log, path)
    Scribe(log).say("t", "six")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert answers(log, path) == answers(log, ":memory:")
    assert "in memory" in caplog.text
