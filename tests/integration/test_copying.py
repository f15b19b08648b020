"""``refold.copy_log``: the same events in another file or on a server, byte for byte."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import refold
from refold.application.ports.log_copy import CopyRow
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.command_line import talk
from tests.support.postgres import shared_server
from tests.support.real_data import files, needs_data

KEY = b"k" * 32
Rows = list[tuple[object, ...]]


def rows_of(log: Path) -> Rows:
    """All columns of all events and keys of a log file, and the log positions."""
    with closing(sqlite3.connect(log)) as connection:
        events = connection.execute("SELECT rowid, * FROM stored_events ORDER BY rowid").fetchall()
        keys = connection.execute("SELECT * FROM message_keys ORDER BY 1, 2").fetchall()
    return [*events, *keys]


def fill(log: Path | str, **options: object) -> None:
    """Make a log in which everything happens that changes or copies rows."""
    with refold.open(log, window=8_000, **options) as memory:  # type: ignore[arg-type]
        one = memory.conversation("one")
        one.append(talk(30, "Some words of it. " * 12), recorded=True)
        assert one.compact().outcome == "performed"
        one.pin("keep this")
        one.append({"role": "user", "content": "Once more."}, key="k1")
        memory.conversation("two 中文", owner="me").append(
            {"role": "user", "content": "NUL \0 and 🙂"}
        )
        one.fork(thread_id="three")
        one.erase(3)
        memory.conversation("gone").append({"role": "user", "content": "Gone."}, key="k2")
        memory.erase_conversation("gone")
        one.append({"role": "assistant", "content": "Well."})


def assert_whole(place: Path | str) -> None:
    with refold.open(place) as memory:
        assert memory.verify().ok


def test_there_and_back_is_byte_equal(tmp_path: Path, database: str) -> None:
    log, back = tmp_path / "agent.db", tmp_path / "back.db"
    fill(log)
    copied = refold.copy_log(log, database)
    assert (copied.copied, copied.rewritten, copied.same_positions) == (copied.events, 0, True)
    assert copied.conversations == 4
    assert_whole(database)
    refold.copy_log(database, back)
    assert rows_of(back) == rows_of(log)
    assert_whole(back)
    with refold.open(back) as memory:
        assert (
            not memory.conversation("one")
            .append({"role": "user", "content": "Once more."}, key="k1")
            .messages[0]
            .new
        )


def test_a_file_is_copied_into_a_file(tmp_path: Path) -> None:
    fill(tmp_path / "agent.db")
    refold.copy_log(tmp_path / "agent.db", tmp_path / "other.db")
    assert rows_of(tmp_path / "other.db") == rows_of(tmp_path / "agent.db")
    assert_whole(tmp_path / "other.db")


def test_only_what_is_new_is_copied_later(tmp_path: Path, database: str) -> None:
    log = tmp_path / "agent.db"
    fill(log)
    refold.copy_log(log, database)
    with refold.open(log) as memory:
        memory.conversation("one").append({"role": "user", "content": "New."})
        memory.conversation("new").append({"role": "user", "content": "New."})
        copied = refold.copy_log(log, database)  # The source stays open.
        assert (copied.copied, copied.rewritten) == (2, 0)
    assert refold.copy_log(log, database).copied == 0


@pytest.mark.parametrize("target", ["file", "server"])
def test_what_was_erased_since_is_erased_in_the_copy(
    tmp_path: Path, database: str, target: str
) -> None:
    log = tmp_path / "agent.db"
    to: Path | str = tmp_path / "other.db" if target == "file" else database
    with refold.open(log) as memory:
        for name in ("one", "two"):
            memory.conversation(name).append(
                [
                    {"role": "user", "content": "the quokka-sanctuary"},
                    {"role": "assistant", "content": "Yes."},
                ],
                key=[f"{name}1", f"{name}2"],
            )
    refold.copy_log(log, to)
    with refold.open(to) as copy:
        assert copy.search("quokka").hits  # Its read models have the words now.
    with refold.open(log) as memory:
        memory.conversation("one").erase(0)
        memory.erase_conversation("two")
    copied = refold.copy_log(log, to)
    assert (copied.copied, copied.rewritten) == (2, 3)
    for file in tmp_path.glob("other*"):
        assert b"quokka" not in file.read_bytes(), file  # Before anyone opens it again.
    if target == "server":
        with psycopg.connect(database) as connection:
            left = connection.execute("SELECT count(*) FROM refold.pending_erasures").fetchone()
        assert left == (0,)
    with refold.open(to) as copy:
        assert not copy.search("quokka").hits
        assert copy.verify().ok
    refold.copy_log(to, tmp_path / "back.db")
    assert rows_of(tmp_path / "back.db") == rows_of(log)


@pytest.mark.parametrize("target", ["file", "server"])
def test_another_history_is_refused_and_nothing_is_written(
    tmp_path: Path, database: str, target: str
) -> None:
    log = tmp_path / "agent.db"
    to: Path | str = tmp_path / "other.db" if target == "file" else database
    fill(log)
    with refold.open(to) as memory:
        memory.conversation("one").append({"role": "user", "content": "Another one."})
        before = memory.stats().events
    with pytest.raises(refold.OtherHistory, match="another event"):
        refold.copy_log(log, to)
    with refold.open(to) as memory:
        assert memory.stats().events == before


def test_a_target_that_went_on_is_refused(tmp_path: Path, database: str) -> None:
    fill(tmp_path / "agent.db")
    refold.copy_log(tmp_path / "agent.db", database)
    with refold.open(database) as memory:
        memory.conversation("one").append({"role": "user", "content": "Further."})
    with pytest.raises(refold.OtherHistory, match="has events that"):
        refold.copy_log(tmp_path / "agent.db", database)
    refold.copy_log(database, tmp_path / "agent.db")
    assert refold.copy_log(tmp_path / "agent.db", database).copied == 0


def test_other_conversations_of_the_target_stay(tmp_path: Path, database: str) -> None:
    fill(tmp_path / "agent.db")
    with refold.open(database) as memory:
        memory.conversation("mine").append({"role": "user", "content": "Mine."})
    copied = refold.copy_log(tmp_path / "agent.db", database)
    assert not copied.same_positions
    with refold.open(database) as memory:
        assert {row.thread_id for row in memory.conversations()} >= {"mine", "one", "three"}
        assert memory.verify().ok


def opened_rows(log: Path, key: bytes | None) -> list[CopyRow]:
    """All rows of a log file, neither compressed nor encrypted."""
    with closing(SQLiteLog(log, create=False, key=key)) as opened:
        return list(opened.copy_end().rows_after(0, 10_000))


def test_encrypted_and_compressed_logs_are_copied_with_their_key(
    tmp_path: Path, database: str
) -> None:
    plain, log, back = tmp_path / "plain.db", tmp_path / "agent.db", tmp_path / "back.db"
    fill(plain)
    refold.copy_log(plain, log, encryption_key=KEY)
    with refold.open(log, encryption_key=KEY) as memory:
        assert memory.compress().events
        assert memory.verify().ok
    with pytest.raises(refold.LogLocked):
        refold.copy_log(log, database)
    refold.copy_log(log, database, encryption_key=KEY)
    refold.copy_log(database, back, encryption_key=KEY)
    assert opened_rows(back, KEY) == opened_rows(log, KEY) == opened_rows(plain, None)
    with pytest.raises(refold.LogLocked):
        refold.open(database)
    assert b"Some words" not in back.read_bytes()


@pytest.fixture
def second() -> Iterator[str]:
    """The address of another empty database."""
    server = shared_server()
    place = server.new_database()
    yield place
    server.drop(place)


def test_a_server_is_copied_to_a_server(tmp_path: Path, database: str, second: str) -> None:
    fill(tmp_path / "agent.db")
    refold.copy_log(tmp_path / "agent.db", database)
    assert refold.copy_log(database, second).same_positions
    refold.copy_log(second, tmp_path / "back.db")
    assert rows_of(tmp_path / "back.db") == rows_of(tmp_path / "agent.db")


def test_damage_is_not_copied(tmp_path: Path, database: str) -> None:
    fill(tmp_path / "agent.db")
    with closing(sqlite3.connect(tmp_path / "agent.db")) as connection, connection:
        connection.execute("UPDATE stored_events SET state = state || 'x' WHERE rowid = 5")
    with pytest.raises(refold.LogDamaged):
        refold.copy_log(tmp_path / "agent.db", database)


RECORDED = files("claude-code-entire/*_0.jsonl.gz", "pi/*.jsonl*", "swe-agent/i_got_id*")[:4]


@pytest.mark.slow
@needs_data
def test_recorded_sessions_come_back_byte_for_byte(tmp_path: Path, database: str) -> None:
    log, back = tmp_path / "agent.db", tmp_path / "back.db"
    with refold.open(log, window=32_000) as memory:
        for recording in RECORDED:
            for one in refold.read_transcript(recording).conversations:
                conversation = memory.conversation(one.thread_id)
                conversation.append_recorded(one.messages[:400])
                conversation.compact()
    copied = refold.copy_log(log, database)
    assert copied.same_positions
    refold.copy_log(database, back)
    assert rows_of(back) == rows_of(log)
    with refold.open(log) as memory, refold.open(database) as copy:
        assert copy.conversations() == memory.conversations()
        for row in memory.conversations():
            thread = row.thread_id
            assert copy.conversation(thread).messages() == memory.conversation(thread).messages()
            assert copy.conversation(thread).summaries() == memory.conversation(thread).summaries()
