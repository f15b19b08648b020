"""Some events of a stream are read: exactly those that were stored, also while others append."""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from refold.application.errors import LogDamaged
from refold.application.ports.conversation_log import LoggedEvent
from refold.infrastructure.event_store.conversation_loader import Stream
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.log_files import execute, flipped, log_of, rows, say, set_state

Reading = Callable[[SQLiteLog, int, int], Sequence[LoggedEvent]]


def in_a_row(log: SQLiteLog, first: int, last: int) -> Sequence[LoggedEvent]:
    return log.read("t", first, last)


def one_by_one(log: SQLiteLog, first: int, last: int) -> Sequence[LoggedEvent]:
    return log.read_at("t", set(range(first, last + 1)))


readings = pytest.mark.parametrize("read", [in_a_row, one_by_one])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return log_of(tmp_path / "a.db", "one", "two", "three", "four")


@readings
def test_what_another_appends_while_it_is_read_is_not_missing(
    path: Path, read: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SQLiteLog(path)) as log, closing(SQLiteLog(path)) as other:
        log.load("t")
        refresh = log._refresh  # pyright: ignore[reportPrivateUsage]
        asked = list[str]()

        def later(thread_id: str) -> Stream:
            if not asked:
                say(other, "five", "six")
            asked.append(thread_id)
            return refresh(thread_id)

        monkeypatch.setattr(log, "_refresh", later)
        assert [event.version for event in read(log, 3, 9)] == [3, 4, 5, 6]
        assert len(asked) == 2


@readings
@pytest.mark.parametrize("missing", [1, 2, 4])
def test_what_was_stored_and_is_missing_is_damage(path: Path, read: Reading, missing: int) -> None:
    with closing(SQLiteLog(path)) as log:
        log.load("t")
        execute(path, "DELETE FROM stored_events WHERE originator_version = ?", (missing,))
        with pytest.raises(LogDamaged) as raised:
            read(log, 1, 4)
    # Without the newest event the head itself does not stand any more.
    assert raised.value.version in (missing, missing + 1)


@readings
def test_what_was_changed_is_damage(path: Path, read: Reading) -> None:
    state = rows(path)[2][3]
    set_state(path, 3, flipped(state, len(state) - 9))
    with closing(SQLiteLog(path)) as log, pytest.raises(LogDamaged) as raised:
        read(log, 2, 4)
    assert raised.value.version == 3


def test_single_events_come_in_their_order_and_each_follows_the_one_before(path: Path) -> None:
    with closing(SQLiteLog(path)) as log:
        assert [event.version for event in log.read_at("t", [9, 4, 2, 2])] == [2, 4]
        assert log.read_at("t", ()) == []
        assert log.read_at("nobody", [1]) == []
        (_, _, name, second), (_, _, _, third) = rows(path)[1:3]
        execute(path, "UPDATE stored_events SET topic = ? WHERE originator_version = 2", (name,))
        set_state(path, 2, third)
        set_state(path, 3, second)
        with pytest.raises(LogDamaged):
            log.read_at("t", [4])
        with pytest.raises(LogDamaged):
            log.read_at("t", [3])
