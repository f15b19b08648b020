"""Read models on a server: the same rows as in SQLite, whoever folds, and after every accident."""

import gzip
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.infrastructure.postgres import fold_tables, followed_tables
from refold.infrastructure.postgres.connections import Address, Store, from_text, to_text
from refold.infrastructure.postgres.fold_tables import PostgresTables
from refold.infrastructure.postgres.log import PostgresLog
from refold.infrastructure.postgres.wiring import PostgresViews
from refold.infrastructure.projection_store import view_folds as folding
from refold.infrastructure.projection_store.projection_check import fold_all as real_fold_all
from refold.infrastructure.projection_store.read_models import VIEWS, SQLiteViews
from refold.infrastructure.projection_store.row_checksums import seal_row
from refold.infrastructure.projection_store.tables import Tables
from refold.infrastructure.projection_store.view_tables import TABLES
from tests.support.effort import one_in
from tests.support.postgres import Server, private_server, shared_server
from tests.support.real_data import files, needs_data
from tests.support.view_events import Scribe

from .test_views import ACTS, Act, everything, play


@pytest.fixture
def log(database: str) -> Iterator[PostgresLog]:
    with closing(PostgresLog(Address.of(database))) as opened:
        yield opened


@pytest.fixture
def views(log: PostgresLog) -> Iterator[PostgresViews]:
    with closing(PostgresViews(log.store, log)) as opened:
        yield opened


def rows_of_all_tables(views: Any) -> Mapping[str, Sequence[tuple[object, ...]]]:
    """All rows of all tables, in the order of their keys."""

    def question(db: Tables) -> Mapping[str, Sequence[tuple[object, ...]]]:
        return {
            table.name: db.execute(
                f"SELECT {', '.join(table.columns)} FROM {{{table.name}}} WHERE {table.where} "
                f"ORDER BY {', '.join(table.key)}"
            ).fetchall()
            for table in VIEWS.compared
        }

    found: Mapping[str, Sequence[tuple[object, ...]]] = views.followed.answer(question)
    return found


def of_sqlite(log: Any) -> Mapping[str, Sequence[tuple[object, ...]]]:
    """The rows that SQLite has for the same log."""
    with closing(SQLiteViews(":memory:", log)) as other:
        return rows_of_all_tables(other)


def test_a_memory_on_a_server_has_its_lists_in_tables(database: str) -> None:
    with refold.open(database) as memory:
        memory.conversation("t").append({"role": "user", "content": "hello \0 there"})
        assert [row.thread_id for row in memory.conversations()] == ["t"]
    with closing(Store(Address.of(database))) as store:
        assert store.rows("SELECT text FROM {views_messages}") == [(to_text("hello \0 there"),)]


def test_views_follow_and_agree_with_sqlite(log: PostgresLog, views: PostgresViews) -> None:
    scribe = Scribe(log)
    assert views.conversations() == []
    scribe.say("t", "one", "two", "three")
    scribe.say("u\0\x01", "later \0")
    assert [row.thread_id for row in views.conversations()] == ["u\0\x01", "t"]
    scribe.compact("t", "first")
    assert rows_of_all_tables(views) == of_sqlite(log)
    scribe.compact("t", "second")
    scribe.fail("u\0\x01")
    assert rows_of_all_tables(views) == of_sqlite(log)
    assert list(views.check()) == []
    assert views.rebuild() == sum(1 for _ in log.scan())
    assert rows_of_all_tables(views) == of_sqlite(log)
    assert list(views.check()) == []


@given(
    text=st.text(st.sampled_from("\0\x01\x02\x03ab\ufdd0"), max_size=8), other=st.text(max_size=4)
)
def test_texts_come_back_and_keep_their_order(text: str, other: str) -> None:
    assert from_text(to_text(text)) == text
    assert "\0" not in to_text(text)
    stored = sorted([text, other], key=lambda one: to_text(one).encode("utf-8", "surrogatepass"))
    assert stored == sorted([text, other], key=lambda one: one.encode("utf-8", "surrogatepass"))


@one_in(2)
@given(acts=st.lists(ACTS, max_size=25), batch=st.integers(1, 7))
def test_any_history_gives_the_rows_of_sqlite(acts: list[Act], batch: int) -> None:
    server = shared_server()
    place = server.new_database()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(folding, "BATCH", batch)
            patch.setattr(fold_tables, "COPIED", batch)
            with (
                closing(PostgresLog(Address.of(place))) as log,
                closing(PostgresViews(log.store, log)) as followed,
            ):
                play(Scribe(log), acts, followed)
                expected = of_sqlite(log)
                assert rows_of_all_tables(followed) == expected
                assert list(followed.check()) == []
                with closing(SQLiteViews(":memory:", log)) as other:
                    assert everything(followed) == everything(other)
                assert followed.rebuild() == sum(1 for _ in log.scan())
                assert rows_of_all_tables(followed) == expected
    finally:
        server.drop(place)


EDITS = {
    "conversations": "UPDATE {views_conversations} SET messages = messages + 1",
    "messages": "UPDATE {views_messages} SET text = 'other' WHERE position = 1",
    "summaries": "UPDATE {views_summaries} SET summary_text = 'other' WHERE is_active = 1",
    "compactions": "UPDATE {views_compactions} SET outcome = 'failed'",
    "topics": "INSERT INTO {views_topics} VALUES ('t', 's1', 0, 'x', 1, 0, 1, 1, 7)",
    "notes": "INSERT INTO {views_notes} SELECT 't', 'f', 0, 'fact', 'x', '', '', '', 0, 1, 1, '', 7",
    "tallies": "DELETE FROM {views_tallies} WHERE projection = 'messages'",
    "positions": "UPDATE {views_positions} SET row_count = row_count + 1 WHERE projection = 'notes'",
}


def filled(log: Any) -> None:
    scribe = Scribe(log)
    scribe.say("t", "one", "two", "three")
    scribe.compact("t", "first")
    scribe.compact("t", "second")
    scribe.say("u", "later")


@pytest.mark.parametrize("table", EDITS)
def test_an_edit_by_hand_is_found_and_mended(database: str, table: str) -> None:
    with refold.open(database) as memory:
        filled(memory._core.log)  # pyright: ignore[reportPrivateUsage]
        assert not memory.verify().damage
        with closing(Store(Address.of(database))) as store:
            store.run(EDITS[table])
        found = memory.verify().damage
        assert {damage.place for damage in found} == {table}, found
        memory.verify(repair=True)
        assert not memory.verify().damage
        assert [row.text for row in memory.conversation("t").messages()] == ["one", "two", "three"]


def test_a_check_finds_rows_that_were_taken_out_or_put_in(
    log: PostgresLog, views: PostgresViews
) -> None:
    filled(log)
    views.conversations()
    log.store.run("DELETE FROM {views_messages} WHERE position = 2")
    log.store.run("UPDATE {views_messages} SET position = 9 WHERE position = 1")
    found = [(damage.place, damage.kind, damage.version) for damage in views.check()]
    assert found == [
        ("messages", "missing", 2),
        ("messages", "missing", 3),
        ("messages", "unexpected", 2),
    ]
    log.store.run("DROP TABLE {views_notes}")
    assert [(d.place, d.kind) for d in views.check()] == [("notes", "missing")]
    assert views.all_notes() == []
    assert rows_of_all_tables(views) == of_sqlite(log)


def test_damage_that_a_question_meets_is_repaired(log: PostgresLog, views: PostgresViews) -> None:
    filled(log)
    views.conversations()
    log.store.run(EDITS["messages"])
    assert [row.text for row in views.messages("t", 0, 9)] == ["one", "two", "three"]
    log.store.run("DELETE FROM {views_positions} WHERE projection = 'notes'")
    assert [row.thread_id for row in views.conversations()] == ["u", "t"]
    assert list(views.check()) == []


def test_machines_that_catch_up_at_once_see_the_same_and_fold_once(
    log: PostgresLog, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scribe = Scribe(log)
    scribe.say("t", "first")
    logs = [PostgresLog(Address.of(database)) for _ in range(4)]
    machines = [PostgresViews(one.store, one) for one in logs]
    folded: list[int] = []
    original = VIEWS.fold

    def fold(db: Tables, progress: Any, *rest: Any) -> Any:
        new, more = original(db, progress, *rest)
        folded.append(new.number - progress.number)
        return new, more

    monkeypatch.setattr(type(VIEWS), "fold", staticmethod(fold))
    for number in range(5):
        scribe.say("t", *(f"{number} {n}" for n in range(40)))
        barrier = threading.Barrier(len(machines))

        def ask(views: PostgresViews, barrier: threading.Barrier = barrier) -> int:
            barrier.wait()
            return len(views.messages("t", 0, 10_000))

        with ThreadPoolExecutor(len(machines)) as pool:
            assert set(pool.map(ask, machines)) == {1 + 40 * (number + 1)}
    assert sum(folded) == sum(1 for _ in log.scan())
    assert rows_of_all_tables(machines[0]) == of_sqlite(log)
    for one in logs:
        one.close()


def test_tables_that_are_swapped_in_are_caught_up_before_they_are_read(
    log: PostgresLog, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scribe = Scribe(log)
    scribe.say("t", "before")
    folded, go_on = threading.Event(), threading.Event()
    with (
        closing(PostgresLog(Address.of(database))) as own,
        closing(PostgresViews(own.store, own)) as building,
        closing(PostgresViews(log.store, log)) as reading,
        ThreadPoolExecutor(1) as thread,
    ):
        assert len(reading.messages("t", 0, 10)) == 1
        tables: Any = reading.followed
        new_tables: Any = building.followed
        finish, read = new_tables._finish, tables._reading

        def hold(new: Any) -> None:
            finish(new)
            folded.set()
            assert go_on.wait(20)

        def read_after_swap() -> Any:
            go_on.set()
            rebuilt.result(20)
            return read()

        monkeypatch.setattr(new_tables, "_finish", hold)
        monkeypatch.setattr(tables, "_reading", read_after_swap)
        rebuilt = thread.submit(new_tables._build, None)
        assert folded.wait(20)
        scribe.say("t", "meanwhile")
        assert len(reading.messages("t", 0, 10)) == 2


def test_a_rebuild_disturbs_neither_readers_nor_writers(log: PostgresLog, database: str) -> None:
    scribe = Scribe(log)
    scribe.say("t", *(f"word {n}" for n in range(300)))
    errors: list[BaseException] = []
    stop = threading.Event()
    said = [300]

    def work(act: Any) -> None:
        try:
            with (
                closing(PostgresLog(Address.of(database))) as own,
                closing(PostgresViews(own.store, own)) as views,
            ):
                while not stop.is_set():
                    act(own, views)
        except BaseException as error:
            errors.append(error)

    def read(_: PostgresLog, views: PostgresViews) -> None:
        least = said[0]
        assert len(views.messages("t", 0, 100_000)) >= least
        assert views.conversation("t") is not None

    def write(own: PostgresLog, _: PostgresViews) -> None:
        Scribe(own).say("t", "more")
        said[0] += 1

    threads = [threading.Thread(target=work, args=(act,)) for act in (read, read, write)]
    for thread in threads:
        thread.start()
    with closing(PostgresViews(log.store, log)) as views:
        for _ in range(6):
            assert views.rebuild() >= 300
        stop.set()
        for thread in threads:
            thread.join()
        assert not errors
        assert rows_of_all_tables(views) == of_sqlite(log)
        assert list(views.check()) == []


def test_a_reader_that_stays_delays_the_swap_and_others_read_on(
    log: PostgresLog, views: PostgresViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(log)
    views.conversations()
    monkeypatch.setattr(fold_tables, "SWAP_PATIENCE", 1.0)
    with log.store.transaction_apart() as reader:
        reader.execute("SELECT * FROM refold.views_notes")
        with ThreadPoolExecutor(1) as pool:
            with pytest.raises(refold.LogBusy):
                pool.submit(views.rebuild).result()
            assert pool.submit(views.conversations).result()
            assert pool.submit(views.forget_erased).result() is False
    assert views.forget_erased()
    assert views.rebuild()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with private_server() as started:
        yield started


def test_a_crash_of_the_server_empties_the_tables_and_they_are_folded_again(server: Server) -> None:
    place = server.new_database()
    noticed: list[str] = []
    with (
        closing(PostgresLog(Address.of(place))) as log,
        closing(
            PostgresViews(log.store, log, notify=lambda notice: noticed.append(notice.name))
        ) as views,
    ):
        filled(log)
        expected = rows_of_all_tables(views)
        server.stop("immediate")
        server.start()
        assert list(views.check()) == []
        assert log.store.rows("SELECT * FROM {views_positions}") == []
        assert rows_of_all_tables(views) == expected
        assert views.messages("t", 0, 9)
        assert not noticed
        log.store.run(EDITS["messages"])
        views.messages("t", 0, 9)
        assert noticed == ["views.rebuilt"]


def hits(server: Server, word: bytes) -> list[str]:
    """The files in the server's folder, without the write-ahead log, that have a word."""
    return [
        str(path.relative_to(server.data))
        for path in server.data.rglob("*")
        if path.is_file() and "pg_wal" not in path.parts and word in path.read_bytes()
    ]


def restart(server: Server) -> None:
    """Stop and start the server, which writes all pages of tables that are not in the write-ahead log."""
    server.stop("fast")
    server.start()


@pytest.mark.parametrize("whole", [False, True])
def test_no_file_of_the_server_has_an_erased_text(server: Server, whole: bool) -> None:
    place = server.new_database()
    with refold.open(place) as memory:
        conversation = memory.conversation("t")
        for number in range(50):
            conversation.append({"role": "user", "content": f"Xanthippe{number % 5} said {number}"})
        memory.conversation("u").append({"role": "user", "content": "and Solon was silent"})
        with closing(Store(Address.of(place))) as store:
            assert len(conversation.messages()) == 50
            store.run("ANALYZE")
        restart(server)
        assert hits(server, b"Xanthippe3")
        if whole:
            memory.erase_conversation("t")
        else:
            conversation.erase([n for n in range(50) if n % 5 == 3])
        restart(server)
        assert not hits(server, b"Xanthippe3")
        assert [row.text for row in memory.conversation("u").messages()]
        restart(server)
        assert not hits(server, b"Xanthippe3")
        assert hits(server, b"Solon")
        assert whole or hits(server, b"Xanthippe2")
        assert not memory.verify().damage


def test_what_is_erased_during_a_rebuild_is_not_in_its_tables(
    log: PostgresLog, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refold.open(database) as memory, closing(PostgresViews(log.store, log)) as views:
        conversation = memory.conversation("t")
        # More than a scan reads at once.
        conversation.append([{"role": "user", "content": f"Xanthippe {n}"} for n in range(300)])
        assert views.conversations()
        begun, reports = list[int](), list[bool]()

        def fold_all(content: Any, db: Any, events: Any, left: Any) -> None:
            begun.append(1)
            read = [next(events), next(events), next(events)]
            if len(begun) == 1:
                # A thread of its own, as on another machine.
                with ThreadPoolExecutor(1) as pool:
                    report = pool.submit(conversation.erase, 1).result()
                    reports.append(report.complete)
            real_fold_all(content, db, chain(read, events), left)

        monkeypatch.setattr(f"{followed_tables.__name__}.fold_all", fold_all)
        monkeypatch.setattr(followed_tables, "ERASING_PATIENCE_MS", 100)
        views.rebuild()
        assert len(begun) == 2
        assert reports == [False]
        with closing(Store(Address.of(database))) as store:
            texts = [
                text
                for (text,) in store.rows("SELECT text FROM {views_messages} ORDER BY position")
            ]
        assert "Xanthippe 0" in texts
        assert "Xanthippe 1" not in texts
        assert memory.finish_erasures()


def test_tables_of_an_earlier_version_are_folded_again_and_no_damage(
    log: PostgresLog, views: PostgresViews, caplog: pytest.LogCaptureFixture
) -> None:
    filled(log)
    expected = rows_of_all_tables(views)
    set_versions(views, -1)
    assert list(views.check()) == []
    assert rows_of_all_tables(views) == expected
    assert not [one for one in caplog.records if one.levelname == "WARNING"]


def test_tables_of_a_newer_version_are_left_alone(
    log: PostgresLog, views: PostgresViews, caplog: pytest.LogCaptureFixture
) -> None:
    filled(log)
    expected = rows_of_all_tables(views)
    set_versions(views, 1)
    before = log.store.rows("SELECT *, tableoid::bigint FROM {views_positions}")
    assert list(views.check()) == []
    assert rows_of_all_tables(views) == expected
    assert "kept in memory" in caplog.text
    assert log.store.rows("SELECT *, tableoid::bigint FROM {views_positions}") == before


def set_versions(views: PostgresViews, step: int) -> None:
    """Let the tables seem to be filled by another version of refold."""
    store = views.followed._store  # pyright: ignore[reportPrivateUsage]
    for row in store.rows("SELECT * FROM {views_positions}"):
        name, version, *rest, _ = row
        sealed = seal_row((name, version + step, *rest))
        store.run(
            "UPDATE {views_positions} SET version = %s, checksum = %s WHERE projection = %s",
            (version + step, sealed[-1], name),
        )


def test_a_replica_answers_from_memory(server: Server) -> None:
    place = server.new_database()
    with refold.open(place) as memory:
        memory.conversation("t").append({"role": "user", "content": "hello"})
        assert len(memory.conversations()) == 1
    server.stop("fast")
    signal = server.data / "standby.signal"
    signal.touch()
    server.start()
    try:
        with refold.open(place) as memory:
            assert [row.thread_id for row in memory.conversations()] == ["t"]
            assert [row.text for row in memory.conversation("t").messages()] == ["hello"]
    finally:
        server.stop("fast")
        signal.unlink()
        server.start()


def test_one_connection_more_than_one_is_enough(database: str) -> None:
    with (
        closing(PostgresLog(Address.of(database, pool=2))) as log,
        closing(PostgresViews(log.store, log)) as views,
    ):
        filled(log)
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(views.messages, "t", 0, 9) for _ in range(40)]
            found = [len(one.result()) for one in asked]
            assert set(found) == {3}
            assert pool.submit(views.rebuild).result()


@needs_data
@pytest.mark.parametrize("session", files("claude-code-entire/*.jsonl.gz", "pi/*.jsonl.gz")[:3])
def test_recorded_sessions_give_the_rows_of_sqlite(
    session: Path, database: str, log: PostgresLog, views: PostgresViews, tmp_path: Path
) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(gzip.decompress(session.read_bytes()))
    with refold.open(database) as memory:
        for number, recorded in enumerate(refold.read_transcript(file).conversations):
            conversation = memory.conversation(f"t{number}")
            conversation.append_recorded(list(recorded.messages))
            conversation.compact()
            conversation.append({"role": "user", "content": "go on"})
        assert memory.conversations()
        expected = of_sqlite(log)
        assert expected["messages"]
        assert expected["summaries"]
        assert rows_of_all_tables(views) == expected
        views.rebuild()
        assert rows_of_all_tables(views) == expected
        assert not memory.verify().damage


def test_a_reader_that_waits_for_a_swap_sees_the_new_tables(
    log: PostgresLog, views: PostgresViews
) -> None:
    filled(log)
    views.conversations()

    def look(db: Tables) -> int:
        return len(db.execute("SELECT * FROM {positions}").fetchall())

    with ThreadPoolExecutor(1) as pool:
        with log.store.transaction_apart() as swap:
            swap.execute("LOCK TABLE refold.views_positions IN ACCESS EXCLUSIVE MODE")
            found = pool.submit(views.followed.look_into, look)
            time.sleep(0.3)
            swap.execute("CREATE TABLE refold.other AS SELECT * FROM refold.views_positions")
            swap.execute("DROP TABLE refold.views_positions")
            swap.execute("ALTER TABLE refold.other RENAME TO views_positions")
        assert found.result() == len(TABLES)


def test_lists_keep_their_order_when_an_erasure_writes_them_again(
    log: PostgresLog, views: PostgresViews
) -> None:
    scribe = Scribe(log)
    scribe.say("t", "one", "two", "three")
    for _ in range(12):
        scribe.compact("t", "words")
    scribe.say("u", "later")
    expected = everything(views)
    assert views.forget_erased()
    assert everything(views) == expected
    scribe.compact("t", "words")
    with closing(SQLiteViews(":memory:", log)) as other:
        assert everything(views) == everything(other)


def test_texts_are_sorted_by_their_bytes_and_leave_no_sample_in_statistics(
    log: PostgresLog, views: PostgresViews
) -> None:
    views.conversations()
    rows = log.store.rows(
        "SELECT a.attname, c.relpersistence::text, l.collname, a.attstattarget FROM pg_class c "
        "JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_collation l ON l.oid = a.attcollation "
        "WHERE c.relkind = 'r' AND a.attnum > 0 AND starts_with(c.relname, 'views_')"
    )
    assert len(rows) > 30
    for column, persistence, collation, statistics in rows:
        assert (persistence, collation) == ("u", "C"), column
        assert statistics == (None if column == "thread_id" else 0), column
    kept = {
        column
        for (column,) in log.store.rows(
            "SELECT attname FROM pg_stats WHERE tablename LIKE 'views_%%'", ()
        )
    }
    assert "text" not in kept


def test_tables_that_are_dropped_while_a_repair_waits_are_folded_again(
    log: PostgresLog, views: PostgresViews, database: str
) -> None:
    Scribe(log).say("t", "hello")
    for _ in range(5):  # Each connection of the pool has found the tables.
        assert len(views.messages("t", 0, 9)) == 1
    log.store.run("DROP TABLE {views_messages}")
    purpose = (log.address.lock("rebuild", "views"),)
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with psycopg.connect(database) as other, ThreadPoolExecutor(1) as thread:
        other.execute("SELECT pg_advisory_xact_lock(%s)", purpose)
        asked = thread.submit(views.messages, "t", 0, 9)
        until = time.monotonic() + 20
        while other.execute(waiting).fetchone() != (1,):
            assert time.monotonic() < until
            time.sleep(0.01)
        for (name,) in log.store.rows(
            "SELECT tablename FROM pg_tables WHERE starts_with(tablename, 'views_')"
        ):
            other.execute(f'DROP TABLE refold."{name}"'.encode())
        other.commit()
        assert len(asked.result(30)) == 1


def test_a_rebuild_that_fails_each_time_is_an_error_of_the_log(
    log: PostgresLog, views: PostgresViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    Scribe(log).say("t", "hello")

    def fail(new: PostgresTables) -> None:
        new.execute("SELECT 1 / 0")

    monkeypatch.setattr(views.followed, "_finish", fail)
    for ask in (lambda: views.messages("t", 0, 9), views.rebuild):
        with pytest.raises(refold.LogError, match="cannot be rebuilt"):
            ask()


def test_a_check_reports_tables_that_cannot_be_read_and_goes_on(
    log: PostgresLog, views: PostgresViews
) -> None:
    Scribe(log).say("t", "hello")
    assert len(views.messages("t", 0, 9)) == 1
    for name, column in (("messages", "position"), ("conversations", "messages")):
        log.store.run(f"ALTER TABLE {{views_{name}}} RENAME TO hidden_{name}")
        log.store.run(
            f"CREATE VIEW {{views_{name}}} AS SELECT * FROM {{hidden_{name}}} WHERE 1 / ({column} * 0) = 1"
        )
    log.store.run("DELETE FROM {views_request_sizes}")
    found = {(one.place, one.kind) for one in views.check()}
    assert found == {
        ("messages", "unreadable"),
        ("conversations", "unreadable"),
        ("request_sizes", "missing"),
    }
