"""Events are decoded when they are first used. Damage in them is reported as if they had been decoded before."""

import copy
import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from refold.application.conversation.thread_log import ThreadLog
from refold.application.errors import LogBehindAnchor, LogDamaged
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.projections.row_changes import listed_time
from refold.domain.conversation import Conversation
from refold.domain.events import Event
from refold.domain.notes import NotesFlushed
from refold.infrastructure.event_store.envelope import (
    GENESIS,
    EventMapper,
    Place,
    UnsealedEvent,
    parse_frame,
    seal,
)
from refold.infrastructure.event_store.recorder import Head, Plain
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.event_store.stream_reads import StreamReader
from tests.support.log_files import log_of, rows, set_state

AT = "2026-03-01T12:00:00.000000Z"
NOTES = NotesFlushed(flush_id="f", notes=(), start=0, stop=1, taken_by="x")


class Observed:
    """An observer that keeps the damage that is reported."""

    def __init__(self) -> None:
        self.damage: list[LogDamaged | LogBehindAnchor] = []

    def stored(
        self, thread_id: str, before: Conversation, after: Conversation, events: Sequence[Event]
    ) -> None:
        """Ignore what is stored."""

    def damaged(self, error: LogDamaged | LogBehindAnchor) -> None:
        self.damage.append(error)


class Rows:
    """Rows of a stream, and what happens while they are read."""

    def __init__(self, *stored: Plain, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.stored = stored
        self.meanwhile = meanwhile

    def rows_at(self, stream: str, versions: Sequence[int]) -> Sequence[Plain]:
        self.meanwhile()
        return [row for row in self.stored if row[0] in versions]

    def rows_of(self, stream: str, after: int, limit: int, last: int = 9) -> Sequence[Plain]:
        return [row for row in self.stored if after < row[0] <= last]

    def is_newest(self, stream: str, head: Head) -> bool:
        del stream, head
        return True


def damaged_log(path: Path, payload: bytes, name: str = "message_appended", shape: int = 3) -> Path:
    """A log of two events whose second has a digest that fits this payload."""
    log_of(path, "one", "two")
    old = parse_frame(rows(path)[1][-1])
    place = Place("t", 2, name)
    set_state(path, 2, seal(place, shape, old.at, old.salt, old.previous, payload)[1])
    return path


def notes_row() -> Plain:
    row, _ = EventMapper().store(UnsealedEvent("t", 1, AT, NOTES, GENESIS, "00"))
    return 1, row.topic, row.state


def reader_of(source: Rows) -> StreamReader:
    return StreamReader(source, EventMapper(), lambda: None)


@pytest.mark.parametrize("written_at", ["nonsense", 5])
def test_a_time_that_is_none_names_its_event(tmp_path: Path, written_at: object) -> None:
    said = {"role": "user", "content": "two"}
    fields = {"position": 1, "message_id": "a", "message": said, "tokens": 1}
    payload = json.dumps({**fields, "written_at": written_at}).encode()
    log = SQLiteLog(damaged_log(tmp_path / "a.db", payload))
    [logged] = log.read("t", 2, 2)
    assert logged.message
    with pytest.raises(LogDamaged) as found:
        listed_time(logged, logged.message)
    assert (found.value.thread_id, found.value.version) == ("t", 2)
    log.close()


def test_damage_that_is_found_later_is_told(tmp_path: Path) -> None:
    log, observed = SQLiteLog(damaged_log(tmp_path / "a.db", b"{bad")), Observed()
    threads = ThreadLog(log, observer=observed)
    reads: list[Callable[[], Sequence[LoggedEvent]]] = [
        lambda: threads.read("t", 2, 2),
        lambda: threads.read_at("t", [2]),
        lambda: [*threads.scan()],
    ]
    for read in reads:
        observed.damage.clear()
        with pytest.raises(LogDamaged, match="not JSON") as found:
            _ = read()[-1].event
        assert observed.damage == [found.value]
    log.close()


def test_a_read_keeps_nothing_if_events_are_erased_meanwhile() -> None:
    source = Rows(notes_row())
    reader = reader_of(source)
    [kept] = reader.read_at("t", [1])
    assert reader.read_at("t", [1])[0] is kept
    source.meanwhile = reader.forget_opened
    [read] = reader.read_at("t", [1])
    source.meanwhile = lambda: None
    assert reader.read_at("t", [1])[0] is not read


def test_a_row_that_is_found_twice_is_damage() -> None:
    with pytest.raises(LogDamaged):
        reader_of(Rows(notes_row(), notes_row())).read("t", 1, 2)


def test_a_damaged_frame_before_an_event_is_named(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "one", "two", "three")
    set_state(path, 2, b"no frame")
    log = SQLiteLog(path)
    reads: list[Callable[[], Sequence[LoggedEvent]]] = [
        lambda: log.read("t", 3, 3),
        lambda: log.read_at("t", [3]),
    ]
    for read in reads:
        with pytest.raises(LogDamaged) as found:
            read()
        assert found.value.version == 2
    log.close()


def test_a_copy_of_an_event_is_a_plain_value() -> None:
    [logged] = reader_of(Rows(notes_row())).read("t", 1, 1)
    logged.report_damage(Observed().damaged)
    plain = LoggedEvent(0, "t", 1, AT, NOTES)
    assert copy.deepcopy(logged) == copy.copy(logged) == plain
    assert pickle.loads(pickle.dumps(logged)) == plain
