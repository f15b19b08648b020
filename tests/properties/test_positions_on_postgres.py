"""Positions of the log on a server: gapless, in order, and nothing is missed, however transactions overlap."""

from contextlib import ExitStack, closing
from itertools import count
from time import monotonic, sleep
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refold.infrastructure.postgres.connections import Address, Store
from refold.infrastructure.postgres.positions import Positions
from refold.infrastructure.postgres.schema import prepare_schema

WRITERS = 4
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "commit", "abort", "follow"]),
        st.integers(0, WRITERS - 1),
        st.integers(1, 3),
    ),
    max_size=40,
)
INSERT = (
    "INSERT INTO refold.stored_events (originator_id, originator_version, topic, state) "
    "VALUES (%s, %s, 'x', '')"
)


class Overlapping:
    """Writers with a transaction each, and a follower."""

    def __init__(self, place: str, stack: ExitStack) -> None:
        self.store = stack.enter_context(closing(Store(Address.of(place))))
        self.writers = [stack.enter_context(psycopg.connect(place)) for _ in range(WRITERS)]
        self.ahead: list[list[tuple[str, int]]] = [[] for _ in range(WRITERS)]
        self.committed: set[tuple[str, int]] = set()
        self.versions = [count(1) for _ in range(WRITERS)]
        self.followed: list[tuple[str, int]] = []

    def write(self, writer: int, events: int) -> None:
        for _ in range(events):
            place = f"stream {writer}", next(self.versions[writer])
            self.writers[writer].execute(INSERT, place)
            self.ahead[writer].append(place)

    def commit(self, writer: int) -> None:
        self.writers[writer].commit()
        self.committed.update(self.ahead[writer])
        self.ahead[writer].clear()

    def abort(self, writer: int) -> None:
        self.writers[writer].rollback()
        self.ahead[writer].clear()

    def follow(self) -> None:
        newest = Positions(self.store).give()
        rows = self.store.rows(
            "SELECT p.position, e.originator_id, e.originator_version FROM {log_positions} p "
            "JOIN {stored_events} e ON e.id = p.id ORDER BY p.position"
        )
        assert [row[0] for row in rows] == list(range(1, newest + 1))
        now = [(row[1], row[2]) for row in rows]
        assert now[: len(self.followed)] == self.followed, "what a follower has read changed"
        assert set(now) == self.committed, "an event that was committed has no position yet"
        for stream in {stream for stream, _ in now}:
            of_stream = [version for name, version in now if name == stream]
            assert of_stream == sorted(of_stream)
        self.followed = now

    def follow_until_nothing_is_missing(self) -> None:
        """Follow until no identifier is remembered as missing.

        A snapshot has the transactions of the whole server. One of another database keeps an identifier missing.
        """
        until = monotonic() + 60
        while True:
            self.follow()
            missing = self.store.rows("SELECT first_id, last_id FROM {missing_ids}")
            if not missing or monotonic() > until:
                break
            sleep(0.01)
        assert missing == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(STEPS)
def test_every_committed_event_has_a_position_at_once_and_keeps_it(
    database: str, steps: list[tuple[str, int, int]]
) -> None:
    with ExitStack() as stack:
        with closing(Store(Address.of(database))) as store:
            prepare_schema(store, create=True)
        one = Overlapping(database, stack)
        for table in ("stored_events", "log_positions", "missing_ids"):
            one.store.run(f"DELETE FROM {{{table}}}")
        one.store.run("UPDATE {numbering} SET position = 0")
        for what, writer, events in steps:
            match what:
                case "write":
                    one.write(writer, events)
                case "commit":
                    one.commit(writer)
                case "abort":
                    one.abort(writer)
                case _:
                    one.follow()
        for writer in range(WRITERS):
            one.commit(writer)
        one.follow_until_nothing_is_missing()


def test_what_is_missing_is_remembered_while_its_transaction_runs(database: str) -> None:
    with ExitStack() as stack:
        with closing(Store(Address.of(database))) as store:
            prepare_schema(store, create=True)
        one = Overlapping(database, stack)
        one.write(0, 2)
        one.write(1, 1)
        one.commit(1)
        one.follow()
        assert one.store.rows("SELECT first_id, last_id FROM {missing_ids}") == [(1, 2)]
        one.write(1, 1)
        one.commit(1)
        one.follow()
        one.commit(0)
        one.follow()
        assert one.followed == [("stream 1", 1), ("stream 1", 2), ("stream 0", 1), ("stream 0", 2)]


@pytest.mark.parametrize("lost", [1, 40])
def test_identifiers_that_were_never_used_hold_nothing_back(database: str, lost: int) -> None:
    """A sequence jumps after a crash, by up to 32."""
    with ExitStack() as stack:
        with closing(Store(Address.of(database))) as store:
            prepare_schema(store, create=True)
        one = Overlapping(database, stack)
        one.write(0, 1)
        one.commit(0)
        one.store.run("SELECT nextval('refold.event_ids') FROM generate_series(1, %s)", (lost,))
        one.write(0, 1)
        one.commit(0)
        one.follow_until_nothing_is_missing()


def test_a_transaction_of_another_database_delays_only_what_is_forgotten(database: str) -> None:
    with ExitStack() as stack:
        with closing(Store(Address.of(database))) as store:
            prepare_schema(store, create=True)
        one = Overlapping(database, stack)
        other = stack.enter_context(psycopg.connect(database, dbname="postgres"))
        other.execute("SELECT pg_current_xact_id()")
        one.write(0, 1)
        one.abort(0)
        one.write(1, 1)
        one.commit(1)
        one.follow()
        one.follow()
        assert one.store.rows("SELECT first_id, last_id FROM {missing_ids}") == [(1, 1)]
        other.rollback()
        one.follow_until_nothing_is_missing()


@pytest.mark.parametrize("statement", range(4))
def test_a_stream_that_goes_on_while_positions_are_given_keeps_its_order(
    database: str, statement: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two statements of the follower, a missing event is committed, and the next one of its stream."""
    with ExitStack() as stack:
        with closing(Store(Address.of(database))) as store:
            prepare_schema(store, create=True)
        one = Overlapping(database, stack)
        one.write(0, 1)
        one.write(1, 1)
        one.commit(1)
        one.follow()
        read, calls = one.store.rows, count()

        def go_on(text: str, values: Any = None) -> list[Any]:
            found = read(text, values)
            if next(calls) == statement:
                one.commit(0)
                one.write(0, 1)
                one.commit(0)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(one.store, "rows", go_on)
            Positions(one.store).give()
        one.commit(0)
        one.follow()
