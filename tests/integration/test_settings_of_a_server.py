"""Settings of a server, a database or a role change neither answers nor turns."""

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
import pytest

import refold
from refold.infrastructure.postgres import followed_tables, server_check, server_sizes
from refold.infrastructure.postgres.connections import Address
from refold.infrastructure.postgres.fold_tables import PostgresTables
from refold.infrastructure.postgres.log import PostgresLog
from refold.infrastructure.postgres.wiring import PostgresViews
from tests.support.view_events import Scribe

R = TypeVar("R")


def with_setting(place: str, name: str, value: str) -> str:
    """The address with a setting of the server."""
    return f"{place}&options=-c%20{name}%3D{value}"


@pytest.fixture(params=["repeatable%5C%20read", "serializable"])
def isolated(database: str, request: pytest.FixtureRequest) -> str:
    """The address of a database with another isolation level by default."""
    return with_setting(database, "default_transaction_isolation", request.param)


def wait_for_waiting(database: str, number: int) -> None:
    """Wait until so many transactions wait for an advisory lock."""
    query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with psycopg.connect(database, autocommit=True) as connection:
        until = time.monotonic() + 20
        while connection.execute(query).fetchone() != (number,):
            assert time.monotonic() < until
            time.sleep(0.01)


def test_machines_that_fold_at_once_see_what_the_other_stored_whatever_the_default_isolation(
    database: str, isolated: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    address = Address.of(isolated)
    with (
        closing(PostgresLog(address)) as one,
        closing(PostgresLog(address)) as other,
        psycopg.connect(database) as holder,
        ThreadPoolExecutor(2) as threads,
    ):
        scribe = Scribe(one)
        scribe.say("t", "before")
        machines = [PostgresViews(log.store, log) for log in (one, other)]
        assert [len(views.messages("t", 0, 9)) for views in machines] == [1, 1]
        scribe.say("t", "after", "that")
        holder.execute("SELECT pg_advisory_xact_lock(%s)", (address.lock("fold", "views"),))
        asked = [threads.submit(views.messages, "t", 0, 9) for views in machines]
        wait_for_waiting(database, 2)
        holder.rollback()
        assert [len(one.result(30)) for one in asked] == [3, 3]
    assert [record.message for record in caplog.records] == []


@pytest.mark.parametrize("level", ["read%5C%20committed", "serializable"])
@pytest.mark.parametrize("waited", [False, True])
def test_a_turn_that_is_held_keeps_no_key_of_erased_content(
    database: str, level: str, waited: bool
) -> None:
    place = with_setting(database, "default_transaction_isolation", level)
    with refold.open(place) as memory, ThreadPoolExecutor(1) as thread:
        conversation, before = memory.conversation("t"), memory.conversation("t").turn()
        conversation.append({"role": "user", "content": "secret"})
        turn = conversation.turn()
        if waited:
            before.__enter__()
            entered = thread.submit(turn.__enter__)
            wait_for_waiting(database, 1)
            before.__exit__(None, None, None)
            entered.result(20)
        else:
            turn.__enter__()
        report = conversation.erase(0)
        turn.__exit__(None, None, None)
    assert {place.place: place.state for place in report.places}["keys"] == "gone"


def test_a_turn_outlasts_the_time_limit_of_transactions(database: str) -> None:
    limited = with_setting(database, "transaction_timeout", "1s")
    with refold.open(limited) as one, refold.open(database) as other:
        conversation = one.conversation("t")
        with conversation.turn():
            time.sleep(1.5)
            with pytest.raises(refold.TurnTaken), other.conversation("t").turn(wait=0):
                pass


def test_a_rebuild_outlasts_the_time_limit_of_transactions(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        closing(
            PostgresLog(Address.of(with_setting(database, "transaction_timeout", "1s")))
        ) as log,
        closing(PostgresViews(log.store, log)) as views,
    ):
        Scribe(log).say("t", "hello")
        finish = views.followed._finish  # pyright: ignore[reportPrivateUsage]

        def finish_late(new: PostgresTables) -> None:
            time.sleep(1.5)
            finish(new)

        monkeypatch.setattr(views.followed, "_finish", finish_late)
        assert len(views.messages("t", 0, 9)) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log_statement", "mod"),
        ("log_min_duration_statement", "5s"),
        ("log_min_duration_sample", "0"),
        ("log_transaction_sample_rate", "0.5"),
        ("log_parameter_max_length_on_error", "100"),
        ("auto_explain.log_min_duration", "0"),
    ],
)
def test_an_erasure_reports_each_setting_that_logs_the_values_of_statements(
    database: str, name: str, value: str
) -> None:
    for place, words in (
        (database, "it logs no values"),
        (with_setting(database, name, value), "delete its old files"),
    ):
        with refold.open(place) as memory:
            conversation = memory.conversation(name + words)
            conversation.append({"role": "user", "content": "secret"})
            report = conversation.erase(0)
        assert words in {one.place: one.detail for one in report.places}["server log"]


def late(original: Callable[..., R]) -> Callable[..., R]:
    """The function, which begins later."""

    def call(*args: Any, **kwargs: Any) -> R:
        time.sleep(2)
        return original(*args, **kwargs)

    return call


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transaction_timeout", "idle_in_transaction_session_timeout"])
def test_a_check_and_its_sizes_outlast_the_time_limits_of_transactions(
    database: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with refold.open(with_setting(database, name, "1500ms")) as memory:
        memory.conversation("t").append({"role": "user", "content": "hello"})
        assert memory.conversation("t").messages()
        for module, slow in (
            (server_check._Check, "_check_positions"),  # pyright: ignore[reportPrivateUsage]
            (followed_tables, "compare_tables"),
            (server_sizes, "_snapshots"),
        ):
            monkeypatch.setattr(module, slow, late(getattr(module, slow)))
        assert memory.verify().ok
        assert memory.stats().events == 1


def test_sizes_are_measured_while_a_rebuild_replaces_tables(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refold.open(database) as memory, refold.open(database) as other:
        memory.conversation("t").append({"role": "user", "content": "hello"})
        assert len(memory.conversations()) == 1
        real = server_sizes._snapshots  # pyright: ignore[reportPrivateUsage]

        def late(*given: Any) -> Any:
            other.replay()
            return real(*given)

        monkeypatch.setattr(server_sizes, "_snapshots", late)
        sizes = memory.stats()
    assert sizes.events == 1
    assert "stored_events" in {one.name for one in sizes.files}


def test_a_limit_of_the_role_is_named_by_the_error(database: str) -> None:
    refold.open(database).close()
    with (
        refold.open(with_setting(database, "statement_timeout", "300")) as memory,
        psycopg.connect(database) as other,
    ):
        other.execute("LOCK TABLE refold.stored_events IN EXCLUSIVE MODE")
        with pytest.raises(refold.LogBusy, match="statement timeout"):
            memory.conversation("t").append({"role": "user", "content": "hello"})


@pytest.fixture(params=["a role that may only read", "transactions that only read"])
def reading(database: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of the log for a reader that cannot give events their place in it."""
    with refold.open(database) as memory:
        memory.conversation("t").append(
            [{"role": "user", "content": f"hello {n}"} for n in range(3)]
        )
        assert len(memory.conversations()) == 1
        memory.conversation("t").append({"role": "user", "content": "new"})
    if request.param == "transactions that only read":
        yield with_setting(database, "default_transaction_read_only", "on")
        return
    role = f"reader_{uuid4().hex}"  # All tests share the server and its roles.
    with psycopg.connect(database, autocommit=True) as connection:
        for statement in (
            f"CREATE ROLE {role} LOGIN",
            f"GRANT USAGE ON SCHEMA refold TO {role}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA refold TO {role}",
        ):
            connection.execute(statement.encode())
        yield database.replace("refold@", f"{role}@")
        for statement in (f"DROP OWNED BY {role}", f"DROP ROLE {role}"):
            connection.execute(statement.encode())


def test_a_reader_lists_what_has_a_place_in_the_log(database: str, reading: str) -> None:
    with refold.open(reading) as memory:
        conversation = memory.conversation("t")
        assert [row.messages for row in memory.conversations()] == [3]
        assert "new" in str(conversation.context().messages[-1])
        assert conversation.recall("new").hits == ()
        assert memory.verify().ok
        with refold.open(database) as writer:
            assert [row.messages for row in writer.conversations()] == [4]
        assert [row.messages for row in memory.conversations()] == [4]
        assert 3 in [hit.position for hit in conversation.recall("new").hits]


def test_a_reader_does_not_take_a_new_message_for_a_lost_one(database: str, reading: str) -> None:
    with refold.open(reading) as memory:
        conversation = memory.conversation("t")
        with pytest.raises(refold.UnknownMessage, match="no place in the order of the log yet"):
            conversation.read(3)
        notice = conversation.query(start=3).notice or ""
        assert "the message at position 3 has no place in the order of the log yet" in notice
        with refold.open(database) as writer:
            assert writer.conversation("t").read(3).text == "new"
        assert conversation.read(3).text == "new"


def compact_after_a_list(database: str, count: int) -> None:
    """Write so many messages, and compact them after the lists were read."""
    roles = ("user", "assistant")
    said = [{"role": roles[n % 2], "content": f"word {n} " * 9} for n in range(count)]
    with refold.open(database, window=8_000) as writer:
        writer.conversation("t").append(said, recorded=True)
        assert len(writer.conversations()) == 1
        assert writer.conversation("t").compact().outcome == "performed"


def test_a_reader_knows_compactions_that_have_no_place_yet(database: str) -> None:
    compact_after_a_list(database, 620)
    with refold.open(with_setting(database, "default_transaction_read_only", "on")) as memory:
        conversation = memory.conversation("t")
        fates, changes = conversation.explain(0, 3), conversation.fate_history(0)
        causes = [change.cause for change in conversation.why("word 3 ").changes]
    assert [fate.fate for fate in fates] == ["summarised"] * 3
    assert [change.kind for change in changes] == ["appended", "covered"]
    assert causes == ["appended", "compaction"]


def test_a_reader_does_not_take_a_new_summary_for_an_unknown_one(database: str) -> None:
    compact_after_a_list(database, 20)
    with refold.open(with_setting(database, "default_transaction_read_only", "on")) as memory:
        conversation = memory.conversation("t")
        made = conversation.explain(0, 1)[0].summary_id
        assert made is not None
        for ask in (conversation.expand, conversation.summary_sources):
            with pytest.raises(refold.UnknownSummary, match="no place in the order of the log yet"):
                ask(made[:8])
        with pytest.raises(refold.UnknownSummary, match="there is no summary 'other'"):
            conversation.expand("other")
        with refold.open(database) as writer:
            assert writer.conversation("t").expand(made).summary_id == made
        assert conversation.expand(made).summary_id == made


@pytest.mark.parametrize(("listed", "later"), [(0, 6), (10, 4), (300, 2), (255, 300)])
def test_a_reader_shows_the_sizes_of_events_that_have_no_place_yet(
    database: str, listed: int, later: int
) -> None:
    roles = ("user", "assistant")
    said = [{"role": roles[n % 2], "content": f"word {n} " * 9} for n in range(listed + later)]
    with refold.open(database, window=8_000) as writer:
        writer.conversation("t").append(said[:listed], recorded=True)
        writer.conversations()
        writer.conversation("t").append(said[listed:], recorded=True)
        writer.conversation("t").compact()
    with refold.open(
        with_setting(database, "default_transaction_read_only", "on"), window=8_000
    ) as memory:
        conversation = memory.conversation("t")
        strip, sizes = conversation.message_strip(), conversation.size_history(most=5)
    with refold.open(database, window=8_000) as writer:
        assert writer.conversations()
        conversation = writer.conversation("t")
        assert (strip.cells, strip.largest) == (
            conversation.message_strip().cells,
            conversation.message_strip().largest,
        )
        wanted = conversation.size_history(most=5)
    assert sizes.marks == wanted.marks
    for one, right in zip(sizes.points, wanted.points, strict=True):
        assert (one.version, one.position, one.tokens) == (
            right.version,
            right.position,
            right.tokens,
        )
        assert one.at >= right.at


def test_a_copy_waits_for_the_place_of_each_event(reading: str, tmp_path: Path) -> None:
    with pytest.raises(refold.LogBusy, match="without a place in the order of the log"):
        refold.copy_log(reading, f"{tmp_path}/copy.db")
