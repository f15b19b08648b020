"""Tables of one's own that follow the log: each event once, filled again, without what was erased."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from eventsourcing.dispatch import singledispatchmethod
from eventsourcing.persistence import Tracking, TrackingRecorder
from eventsourcing.popo import POPOTrackingRecorder
from eventsourcing.projection import Projection
from eventsourcing.sqlite import SQLiteDatastore, SQLiteTrackingRecorder
from hypothesis import given
from hypothesis import strategies as st

import refold
from refold import FollowedEvent, Memory
from refold.application.api import followers
from refold.infrastructure.files.private_files import make_private
from refold.infrastructure.postgres import connections
from refold.infrastructure.projection_store import follower_tables

SECRET = "quokka-7431"


def tool_failures(db: Any, event: FollowedEvent) -> None:
    for block in event.blocks:
        if block["type"] == "tool_use":
            call: Any = {"thread": event.thread_id, "call": block["id"], "tool": block["name"]}
            db["calls"].insert(call, pk=("thread", "call"), replace=True)
        elif block["type"] == "tool_result" and block.get("is_error"):
            row: Any = {"thread": event.thread_id, "call": block["tool_use_id"], "at": event.at}
            db["failures"].insert(row, pk=("thread", "call"), replace=True)


def words(db: Any, event: FollowedEvent) -> None:
    """Keep each text, in the order in which the function got it."""
    for block in event.blocks:
        row: Any = {
            "thread": event.thread_id,
            "version": event.version,
            "text": str(block.get("text")),
        }
        db["words"].insert(row)


def forget(db: Any, thread_id: str) -> None:
    if "words" in db.table_names():
        db["words"].delete_where("thread = ?", [thread_id])


def rows(place: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(place)) as db:
        return db.execute(statement).fetchall()


def say(memory: Memory, thread_id: str, text: str) -> None:
    memory.conversation(thread_id).append({"role": "user", "content": text})


def bytes_in(folder: Path, name: str) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob(f"{name}*")))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "own.db"


def test_a_table_of_tool_failures_is_kept(memory: Memory, place: Path) -> None:
    call: Any = {"type": "tool_use", "id": "c1", "name": "bash", "input": {}}
    failed = {"type": "tool_result", "tool_use_id": "c1", "content": "boom", "is_error": True}
    say(memory, "t", "Run the tests")
    follower = memory.follow("tool-failures", tool_failures, into=place)
    assert follower.position() == 0
    assert not place.exists()
    assert follower.update() == 1
    conversation = memory.conversation("t")
    conversation.append({"role": "assistant", "content": [call]})
    conversation.append({"role": "user", "content": [failed]})
    assert [follower.update(), follower.update(), follower.position()] == [2, 0, 3]
    joined = "SELECT thread, tool FROM failures JOIN calls USING (thread, call)"
    assert rows(place, joined) == [("t", "bash")]


def test_a_function_gets_all_of_an_event(memory: Memory, place: Path) -> None:
    say(memory, "t", "Hello")
    memory.conversation("t").pin("Keep this")
    seen: list[FollowedEvent] = []
    memory.follow("seen", lambda _, event: seen.append(event), into=place).update()
    assert [(e.thread_id, e.version, e.name, e.erased) for e in seen] == [
        ("t", 1, "message_appended", False),
        ("t", 2, "message_pinned", False),
    ]
    assert seen[0].log_position < seen[1].log_position
    assert seen[0].at.endswith("Z")
    assert seen[0].blocks == ({"type": "text", "text": "Hello"},)
    exported = list(memory.conversation("t").export("events"))
    assert [event.fields for event in seen] == [event["fields"] for event in exported]
    assert (seen[1].fields["text"], list(seen[1].blocks)) == ("Keep this", [])
    assert (seen[1].originator_id, seen[1].originator_version) == ("t", 2)


def test_each_event_counts_once_with_two_followers_of_one_file(
    memory: Memory, folder: Path, place: Path
) -> None:
    say(memory, "t", "one")
    first = memory.follow("words", words, into=place)
    with refold.open(folder / "a.db") as other:
        second = other.follow("words", words, into=place)
        assert (first.update(), second.update()) == (1, 0)
        say(memory, "t", "two")
        assert (second.update(), first.update()) == (1, 0)
    assert rows(place, "SELECT text FROM words") == [("one",), ("two",)]


COUNTING = """
import sys
import refold

def words(db, event):
    for block in event.blocks:
        db["words"].insert({"text": block["text"]})

with refold.open(sys.argv[1]) as memory:
    memory.follow("words", words, into=sys.argv[2]).update()
"""


def test_each_event_counts_once_with_several_processes(
    memory: Memory, folder: Path, place: Path
) -> None:
    for number in range(40):
        say(memory, f"t{number % 3}", str(number))
    command = [sys.executable, "-c", COUNTING, str(folder / "a.db"), str(place)]
    running = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    assert rows(place, "SELECT text FROM words") == [(str(n),) for n in range(40)]


def test_a_new_file_that_another_process_uses_at_once_is_waited_for(
    memory: Memory, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def used_at_once(path: Path) -> bool:
        if is_new := make_private(path):
            other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            other.execute("CREATE TABLE own (x)")
            other.execute("BEGIN IMMEDIATE")
            threading.Timer(0.2, other.close).start()
        return is_new

    monkeypatch.setattr(follower_tables, "make_private", used_at_once)
    say(memory, "t", "one")
    assert memory.follow("words", words, into=place).update() == 1
    assert rows(place, "PRAGMA journal_mode") == [("wal",)]


DYING = """
import os, sys
import refold

def words(db, event):
    db["words"].insert({"text": event.blocks[0]["text"]})
    if event.blocks[0]["text"] == "7":
        os.kill(os.getpid(), 9)

with refold.open(sys.argv[1]) as memory:
    memory.follow("words", words, into=sys.argv[2]).update()
"""


def test_a_process_that_dies_leaves_rows_and_position_together(
    memory: Memory, folder: Path, place: Path
) -> None:
    for number in range(10):
        say(memory, "t", str(number))
    command = [sys.executable, "-c", DYING, str(folder / "a.db"), str(place)]
    assert subprocess.run(command, check=False).returncode == -9
    follower = memory.follow("words", words, into=place)
    assert follower.position() == 0
    follower.update()
    assert rows(place, "SELECT text FROM words") == [(str(n),) for n in range(10)]


def test_an_error_of_the_function_names_the_event_and_keeps_what_came_before(
    memory: Memory, place: Path
) -> None:
    for text in ("one", "two", "bad", "four"):
        say(memory, "t", text)
    is_mended = False

    def picky(db: Any, event: FollowedEvent) -> None:
        words(db, event)
        if event.blocks[0]["text"] == "bad" and not is_mended:
            raise KeyError("no such word")

    follower = memory.follow("words", picky, into=place)
    for _ in range(2):
        with pytest.raises(refold.FoldError, match="version 3 of 't'") as failed:
            follower.update()
        assert isinstance(failed.value.__cause__, KeyError)
        assert failed.value.log_position == 3
        assert rows(place, "SELECT text FROM words") == [("one",), ("two",)]
        assert follower.position() == 2
    is_mended = True
    assert follower.update() == 2
    assert [text for (text,) in rows(place, "SELECT text FROM words")][2:] == ["bad", "four"]


def test_a_function_that_commits_is_refused(memory: Memory, place: Path) -> None:
    say(memory, "t", "one")

    def commits(db: Any, event: FollowedEvent) -> None:
        words(db, event)
        db.conn.commit()

    with pytest.raises(refold.FoldError, match="ended the transaction"):
        memory.follow("words", commits, into=place).update()


def test_a_newer_function_fills_its_tables_again_and_leaves_others(
    memory: Memory, place: Path
) -> None:
    say(memory, "t", "one")
    memory.follow("words", words, into=place).update()
    with closing(sqlite3.connect(place)) as db:
        db.execute("CREATE TABLE mine (x)")
        db.execute("INSERT INTO mine VALUES (1)")
        db.commit()

    def upper(db: Any, event: FollowedEvent) -> None:
        db["loud"].insert({"text": event.blocks[0]["text"].upper()})

    newer = memory.follow("words", upper, into=place, version=2)
    assert (newer.update(), newer.update()) == (1, 0)
    assert rows(place, "SELECT text FROM loud") == [("ONE",)]
    assert rows(place, "SELECT x FROM mine") == [(1,)]
    tables = {name for (name,) in rows(place, "SELECT name FROM sqlite_schema")}
    assert "words" not in tables
    with pytest.raises(refold.InvalidSetting, match="version 2 of 'words' has filled"):
        memory.follow("words", words, into=place).update()


def test_two_followers_share_a_file(memory: Memory, place: Path) -> None:
    say(memory, "t", "one")
    memory.follow("words", words, into=place).update()
    memory.follow("tool-failures", tool_failures, into=place).update()
    memory.follow("words", words, into=place).rebuild()
    found = rows(place, "SELECT name, position FROM refold_followers ORDER BY name")
    assert found == [("tool-failures", 1), ("words", 1)]


def test_a_table_of_another_follower_or_program_is_not_changed(memory: Memory, place: Path) -> None:
    say(memory, "t", "one")
    memory.follow("words", words, into=place).update()
    other = memory.follow("other", words, into=place)
    with pytest.raises(refold.FoldError, match="the table words is that of another follower"):
        other.update()
    assert rows(place, "SELECT text FROM words") == [("one",)]
    assert other.position() == 0


def test_two_followers_may_number_their_rows(memory: Memory, place: Path) -> None:
    """SQLite keeps the numbers of all tables with AUTOINCREMENT in one of its own."""
    say(memory, "t", "one")

    def numbering(table: str) -> Any:
        def fold(db: Any, event: FollowedEvent) -> None:
            create = f"CREATE TABLE IF NOT EXISTS {table} (id INTEGER PRIMARY KEY AUTOINCREMENT, v)"
            db.conn.execute(create)
            db[table].insert({"v": event.version})

        return fold

    assert memory.follow("first", numbering("one"), into=place).update() == 1
    assert memory.follow("second", numbering("two"), into=place).update() == 1
    assert rows(place, "SELECT id, v FROM two") == [(1, 1)]


def test_tables_that_were_deleted_are_filled_again(memory: Memory, place: Path) -> None:
    say(memory, "t", "one")
    follower = memory.follow("words", words, into=place)
    follower.update()
    for path in place.parent.glob(f"{place.name}*"):
        path.unlink()
    assert (follower.update(), follower.update()) == (1, 0)
    assert rows(place, "SELECT text FROM words") == [("one",)]


def test_tables_of_every_kind_are_dropped_at_a_rebuild(memory: Memory, place: Path) -> None:
    say(memory, "t", "one")

    def indexed(db: Any, event: FollowedEvent) -> None:
        words(db, event)
        db["words"].create_index(["text"], if_not_exists=True)
        if not db["words"].detect_fts():
            db["words"].enable_fts(["text"], create_triggers=True)
            db.create_view("shown", "SELECT text FROM words")

    follower = memory.follow("words", indexed, into=place)
    follower.update()
    before = rows(place, "SELECT type, name FROM sqlite_schema ORDER BY name")
    follower.rebuild()
    assert rows(place, "SELECT type, name FROM sqlite_schema ORDER BY name") == before
    assert rows(place, "SELECT text FROM shown") == [("one",)]


@pytest.mark.parametrize("forgets", [False, True])
def test_an_erased_message_leaves_the_tables_with_the_erasure(
    memory: Memory, place: Path, forgets: bool
) -> None:
    say(memory, "t", f"The secret is {SECRET}.")
    say(memory, "t", "Something else")
    say(memory, "other", "Not touched")
    called: list[str] = []

    def fold(db: Any, event: FollowedEvent) -> None:
        called.append(event.thread_id)
        words(db, event)

    follower = memory.follow("words", fold, into=place, forget=forget if forgets else None)
    follower.update()
    assert SECRET.encode() in bytes_in(place.parent, place.name)
    called.clear()
    report = memory.conversation("t").erase(0)
    assert SECRET.encode() not in bytes_in(place.parent, place.name)
    assert report.complete
    assert "tables of followers" in {removed.place for removed in report.removed}
    assert ("other" in called) is not forgets
    texts = [text for (text,) in rows(place, "SELECT text FROM words ORDER BY thread, version")]
    assert texts[0] == "Not touched"
    assert "Something else" in texts


@pytest.mark.parametrize("forgets", [False, True])
def test_another_process_takes_out_what_was_erased_at_its_next_update(
    memory: Memory, folder: Path, place: Path, forgets: bool
) -> None:
    say(memory, "t", f"The secret is {SECRET}.")
    how: dict[str, Any] = {"into": place, "forget": forget if forgets else None}
    memory.follow("words", words, **how).update()
    with refold.open(folder / "a.db") as other:
        other.erase_conversation("t")
        say(other, "t", "A new beginning")
    assert SECRET.encode() in bytes_in(place.parent, place.name)
    memory.follow("words", words, **how).update()
    assert SECRET.encode() not in bytes_in(place.parent, place.name)
    assert rows(place, "SELECT text FROM words") == [("A new beginning",)]


def test_an_erasure_says_that_a_follower_could_not_be_updated(memory: Memory, place: Path) -> None:
    say(memory, "t", f"The secret is {SECRET}.")
    is_broken = False

    def fold(db: Any, event: FollowedEvent) -> None:
        if is_broken:
            raise OSError("no network")
        words(db, event)

    memory.follow("words", fold, into=place).update()
    is_broken = True
    report = memory.conversation("t").erase(0)
    assert not report.complete
    (left,) = [place for place in report.places if "follower words" in place.place]
    assert left.state == "pending"
    assert SECRET not in str(report)
    is_broken = False
    assert not [p for p in memory.finish_erasures() if "follower words" in p.place]
    assert SECRET.encode() not in bytes_in(place.parent, place.name)


def test_what_quotes_an_erased_message_elsewhere_leaves_the_tables(
    memory: Memory, place: Path
) -> None:
    """A fork has copies of the erased message."""
    say(memory, "t", f"The secret is {SECRET}.")
    say(memory, "t", "Go on")
    memory.conversation("t").fork(thread_id="copy")
    memory.follow("words", words, into=place, forget=forget).update()
    assert len(rows(place, f"SELECT * FROM words WHERE text LIKE '%{SECRET}%'")) == 2
    memory.conversation("t").erase(0)
    assert SECRET.encode() not in bytes_in(place.parent, place.name)
    assert rows(place, "SELECT thread FROM words WHERE text = 'Go on' ORDER BY 1") == [
        ("copy",),
        ("t",),
    ]


def test_tables_of_another_log_are_refused(memory: Memory, tmp_path: Path, place: Path) -> None:
    say(memory, "t", "one")
    memory.follow("words", words, into=place).update()
    with refold.open(tmp_path / "other.db") as other:
        say(other, "u", "elsewhere")
        follower = other.follow("words", words, into=place)
        with pytest.raises(refold.InvalidSetting, match="for another log"):
            follower.update()
        assert rows(place, "SELECT text FROM words") == [("one",)]
        assert follower.rebuild() == 1
    assert rows(place, "SELECT text FROM words") == [("elsewhere",)]


def test_an_earlier_log_that_was_restored_fills_the_tables_again(
    tmp_path: Path, place: Path
) -> None:
    log, backup = tmp_path / "agent.db", tmp_path / "backup.db"
    with refold.open(log) as memory:
        say(memory, "t", "one")
        memory.backup(backup)
        say(memory, "t", "lost by the restore")
        memory.follow("words", words, into=place).update()
    refold.restore(backup, log, force=True)
    with refold.open(log) as memory:
        say(memory, "t", "said afterwards")
        assert memory.follow("words", words, into=place).update() == 2
    assert rows(place, "SELECT text FROM words") == [("one",), ("said afterwards",)]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": "a b"}, "name: must be letters"),
    ({"name": ""}, "name: must be letters"),
    ({"into": None}, "into: must be the path"),
    ({"into": ":memory:"}, "into: must be the path"),
    ({"into": 7}, "into: must be the path"),
    ({"version": 0}, "version: must be a whole number from 1"),
    ({"version": True}, "version: must be a whole number from 1"),
    ({"fold": 3}, "fold: must be a function"),
    ({"forget": 3}, "forget: must be a function"),
]


@pytest.mark.parametrize(("wrong", "words_of_it"), WRONG)
def test_a_wrong_argument_is_refused(
    memory: Memory, place: Path, wrong: dict[str, Any], words_of_it: str
) -> None:
    given: dict[str, Any] = {"name": "words", "fold": words, "into": place, **wrong}
    with pytest.raises(refold.InvalidSetting, match=words_of_it):
        memory.follow(**given)


def test_a_coroutine_is_refused(memory: Memory, place: Path) -> None:
    async def later(db: Any, event: FollowedEvent) -> None:
        del db, event

    with pytest.raises(refold.InvalidSetting, match="no coroutine"):
        memory.follow("words", later, into=place)


def test_files_that_are_no_place_for_tables_are_refused(
    memory: Memory, folder: Path, tmp_path: Path
) -> None:
    say(memory, "t", "one")
    assert memory.search("one").hits
    text = tmp_path / "notes.txt"
    text.write_text("not a database, and longer than a header of SQLite " * 20)
    kept = text.read_bytes()
    for into, problem in (
        (folder / "a.db", "is a log of refold or derived"),
        (folder / "a.recall.db", "is a log of refold or derived"),
        (text, "is not an SQLite file"),
    ):
        with pytest.raises(refold.InvalidSetting, match=problem):
            memory.follow("words", words, into=into).update()
    assert text.read_bytes() == kept
    for into in (tmp_path / "no" / "folder.db", tmp_path):
        with pytest.raises(refold.InvalidSetting, match="in an existing folder"):
            memory.follow("words", words, into=into).update()
    assert memory.verify().ok


def test_a_thread_looks_for_new_events_until_it_is_stopped(memory: Memory, place: Path) -> None:
    folded = threading.Event()

    def fold(db: Any, event: FollowedEvent) -> None:
        words(db, event)
        if event.blocks[0]["text"] == "two":
            folded.set()

    say(memory, "t", "one")
    with memory.follow("words", fold, into=place).start(every=0.01) as follower:
        say(memory, "t", "two")
        assert folded.wait(30)
    say(memory, "t", "three")
    assert follower.position() == 2
    with pytest.raises(refold.InvalidSetting, match="every"):
        follower.start(every=0)


def test_closing_the_memory_ends_the_thread(folder: Path, place: Path) -> None:
    with refold.open(folder / "a.db") as memory:
        say(memory, "t", "one")
        memory.follow("words", words, into=place).start(every=0.01)
    assert not [t for t in threading.enumerate() if t.name == "refold-words"]


def test_a_follower_of_a_closed_memory_is_refused(folder: Path, place: Path) -> None:
    with refold.open(folder / "a.db") as memory:
        say(memory, "t", "one")
        follower = memory.follow("words", words, into=place)
    with pytest.raises(refold.LogError):
        follower.update()


def test_a_long_log_is_folded_in_several_transactions(memory: Memory, place: Path) -> None:
    """What was folded before an interruption is kept."""
    conversation = memory.conversation("t")
    conversation.append([{"role": "user", "content": str(n)} for n in range(2_100)])

    def interrupted(db: Any, event: FollowedEvent) -> None:
        words(db, event)
        if event.version == 2_050:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.follow("words", interrupted, into=place).update()
    assert rows(place, "SELECT count(*) FROM words") == [(2_000,)]
    assert memory.follow("words", words, into=place).update() == 100


def test_with_asyncio_the_methods_are_awaited(folder: Path, place: Path) -> None:
    async def follow() -> list[object]:
        async with refold.aopen(folder / "a.db") as memory:
            await memory.conversation("t").append({"role": "user", "content": "one"})
            async with memory.follow("words", words, into=place) as follower:
                answers: list[object] = [await follower.update(), await follower.position()]
                answers += [follower.name, follower.version, Path(follower.place)]
                return [*answers, await follower.rebuild()]

    assert asyncio.run(follow()) == [1, 1, "words", 1, place, 1]


class Counts(POPOTrackingRecorder):
    """Words by conversation, in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}

    def add(self, thread_id: str, tracking: Tracking) -> None:
        with self._database_lock:
            self._insert_tracking(tracking)
            self.counts[thread_id] = self.counts.get(thread_id, 0) + 1


class StoredCounts(SQLiteTrackingRecorder):
    """The same in a file of SQLite."""

    def add(self, thread_id: str, tracking: Tracking) -> None:
        with self.datastore.transaction(commit=True) as cursor:
            self._insert_tracking(cursor, tracking)
            cursor.execute("CREATE TABLE IF NOT EXISTS counts (thread TEXT)")
            cursor.execute("INSERT INTO counts VALUES (?)", (thread_id,))

    @property
    def counts(self) -> dict[str, int]:
        statement = "SELECT thread, count(*) FROM counts GROUP BY thread"
        with self.datastore.transaction(commit=False) as cursor:
            cursor.execute(statement)
            return dict(cursor.fetchall())


def stored_counts(place: Path) -> StoredCounts:
    recorder = StoredCounts(SQLiteDatastore(str(place)))
    recorder.create_table()
    return recorder


def counts_in_memory(place: Path) -> Counts:
    del place
    return Counts()


class Counting(Projection[Any]):
    name = "counting"

    @singledispatchmethod
    def process_event(self, domain_event: FollowedEvent, tracking: Tracking) -> None:
        self.view.add(domain_event.thread_id, tracking)


Views = Callable[[Path], TrackingRecorder]


@pytest.mark.parametrize("view_of", [counts_in_memory, stored_counts])
def test_a_projection_of_eventsourcing_follows_the_log(
    memory: Memory, place: Path, view_of: Views
) -> None:
    view: Any = view_of(place)
    say(memory, "t", "one")
    say(memory, "u", "two")
    follower = memory.follow("counting", Counting(view))
    assert (follower.update(), follower.update(), follower.position()) == (2, 0, 2)
    say(memory, "t", "three")
    assert memory.follow("counting", Counting(view)).update() == 1
    assert view.counts == {"t": 2, "u": 1}
    assert view.max_tracking_id("counting") == 3


def test_a_projection_is_rebuilt_by_its_own_method(memory: Memory) -> None:
    class Clearing(Counting):
        def clear(self) -> None:
            self._view = Counts()

    say(memory, "t", f"The secret is {SECRET}.")
    plain = memory.follow("plain", Counting(Counts()))
    plain.update()
    with pytest.raises(refold.InvalidSetting, match="give it a method clear"):
        plain.rebuild()
    plain.close()
    projection = Clearing(Counts())
    memory.follow("counting", projection).update()
    memory.conversation("t").erase(0)
    assert projection.view.counts == {"t": 2}
    newer = memory.follow("counting", projection, version=2)
    assert newer.update() == 2
    with pytest.raises(refold.InvalidSetting, match="leave into out"):
        memory.follow("counting", projection, into="own.db")


@pytest.fixture
def server_log(database: str) -> Iterator[Memory]:
    with refold.open(database, background=False) as made:
        yield made


def on_server(connection: Any, event: FollowedEvent) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS words (thread text, version int, said text)")
    for block in event.blocks:
        row = (event.thread_id, event.version, str(block.get("text")))
        connection.execute("INSERT INTO words VALUES (%s, %s, %s)", row)


def forget_on_server(connection: Any, thread_id: str) -> None:
    connection.execute("DELETE FROM words WHERE thread = %s", (thread_id,))


def rows_on_server(place: str, statement: str) -> list[Any]:
    with psycopg.connect(place) as connection:
        return connection.execute(statement.encode()).fetchall()


@pytest.mark.parametrize("forgets", [False, True])
def test_tables_on_a_server_follow_a_log_on_it(
    server_log: Memory, database: str, forgets: bool
) -> None:
    say(server_log, "t", f"The secret is {SECRET}.")
    say(server_log, "u", "Not touched")
    how: dict[str, Any] = {"into": database, "forget": forget_on_server if forgets else None}
    follower = server_log.follow("my-words", on_server, **how)
    assert follower.position() == 0
    assert (follower.update(), follower.update()) == (2, 0)
    assert follower.position() > 0
    report = server_log.conversation("t").erase(0)
    assert not [place for place in report.places if "follower" in place.place]
    stored = """SELECT pg_read_binary_file(pg_relation_filepath('"my-words".words'))"""
    ((pages,),) = rows_on_server(database, stored)
    assert b"Not touched" in pages
    assert SECRET.encode() not in pages
    said = rows_on_server(database, 'SELECT said FROM "my-words".words ORDER BY thread, version')
    assert SECRET not in str(said)
    assert said[-1] == ("Not touched",)
    assert server_log.verify().ok
    newer = server_log.follow("my-words", on_server, into=database, version=2)
    assert newer.update() == 3


def test_rows_that_a_transaction_elsewhere_still_sees_are_reported_and_removed_later(
    server_log: Memory, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.1)
    say(server_log, "t", f"The secret is {SECRET}.")
    say(server_log, "u", "Not touched")
    how: dict[str, Any] = {"into": database, "forget": forget_on_server}
    follower = server_log.follow("my-words", on_server, **how)
    follower.update()
    with psycopg.connect(database) as other:
        other.execute("SELECT pg_current_xact_id()")
        report = server_log.conversation("t").erase(0)
        [place] = [place for place in report.places if "follower" in place.place]
        assert (place.state, follower.has_remains) == ("pending", True)
        assert not report.complete
    assert (follower.update(), follower.has_remains) == (0, True)
    monkeypatch.setattr(followers, "PAUSE_S", 0)
    server_log.conversation("u").append({"role": "user", "content": "more"})
    server_log.conversation("u").erase(1)
    assert not follower.has_remains
    stored = """SELECT pg_read_binary_file(pg_relation_filepath('"my-words".words'))"""
    ((pages,),) = rows_on_server(database, stored)
    assert SECRET.encode() not in pages


def test_a_file_that_somebody_reads_has_remains_until_the_reader_ends(
    memory: Memory, place: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_tables, "READER_PATIENCE_MS", 10)
    monkeypatch.setattr(followers, "PAUSE_S", 0)
    say(memory, "t", f"The secret is {SECRET}.")
    follower = memory.follow("words", words, into=place)
    follower.update()
    with closing(sqlite3.connect(place)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM words").fetchall()
        report = memory.conversation("t").erase(0)
        assert [place.state for place in report.places if "follower" in place.place] == ["pending"]
        assert follower.has_remains
    assert (follower.update(), follower.has_remains) == (0, False)
    assert SECRET.encode() not in bytes_in(place.parent, place.name)


def test_an_error_in_a_statement_on_a_server_keeps_what_came_before(
    server_log: Memory, database: str
) -> None:
    say(server_log, "t", "one")
    say(server_log, "t", "two")

    def picky(connection: Any, event: FollowedEvent) -> None:
        on_server(connection, event)
        if event.version == 2:
            connection.execute("SELECT 1 / 0")

    with pytest.raises(refold.FoldError, match="DivisionByZero"):
        server_log.follow("words", picky, into=database).update()
    assert rows_on_server(database, "SELECT said FROM words.words") == [("one",)]


def test_a_schema_of_somebody_else_is_refused(server_log: Memory, database: str) -> None:
    say(server_log, "t", "one")
    for name in ("public", "refold"):
        with pytest.raises(refold.InvalidSetting, match="is not one of a follower"):
            server_log.follow(name, on_server, into=database).update()
    assert server_log.verify().ok


def test_a_log_on_a_server_fills_a_file(server_log: Memory, place: Path) -> None:
    say(server_log, "t", "one")
    assert server_log.follow("words", words, into=place).update() == 1
    server_log.conversation("t").erase(0)
    assert "one" not in str(rows(place, "SELECT text FROM words"))


def test_a_log_in_a_file_fills_tables_on_a_server(memory: Memory, database: str) -> None:
    say(memory, "t", "one")
    follower = memory.follow("words", on_server, into=database)
    assert follower.update() == 1
    assert "password" not in follower.place
    assert rows_on_server(database, "SELECT said FROM words.words") == [("one",)]


Steps = list[tuple[str, int, int]]
ACTIONS = ("say", "pin", "erase", "erase all", "fork", "update", "update other")


@given(
    st.lists(
        st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2), st.integers(0, 3)), max_size=25
    ),
    st.booleans(),
)
def test_tables_equal_those_that_are_filled_from_the_beginning(steps: Steps, forgets: bool) -> None:
    how: dict[str, Any] = {"forget": forget if forgets else None}
    with TemporaryDirectory() as name, refold.open(Path(name) / "agent.db") as memory:
        place = Path(name) / "own.db"
        other = memory.follow("words", words, into=place, **how)
        follower = memory.follow("words", words, into=place, **how)
        for number, (action, thread, which) in enumerate(steps):
            play(memory, action, f"t{thread}", which, f"word {number}", (follower, other))
        follower.update()
        fresh = memory.follow("words", words, into=Path(name) / "fresh.db")
        fresh.update()
        every = "SELECT thread, version, text FROM words ORDER BY thread, version, text"
        if fresh.position():
            assert shown(place, every) == shown(Path(name) / "fresh.db", every)


def shown(place: Path, statement: str) -> list[Any]:
    return (
        rows(place, statement)
        if "words" in str(rows(place, "SELECT name FROM sqlite_schema"))
        else []
    )


def play(
    memory: Memory,
    action: str,
    thread_id: str,
    which: int,
    text: str,
    followers: tuple[refold.Follower, refold.Follower],
) -> None:
    conversation = memory.conversation(thread_id)
    try:
        match action:
            case "say":
                say(memory, thread_id, text)
            case "pin":
                conversation.pin(text)
            case "erase":
                conversation.erase(which)
            case "erase all":
                memory.erase_conversation(thread_id)
            case "fork":
                conversation.fork(thread_id=f"t{which}")
            case _:
                followers[action == "update other"].update()
    except (refold.UnknownMessage, refold.InvalidThreadId, refold.ConversationGone):
        pass
    except (refold.ThreadExists, refold.EmptyConversation, refold.InvalidSetting):
        pass
