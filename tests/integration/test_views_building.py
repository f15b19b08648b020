"""A new file of the read models is filled aside and moved into place: there is a whole one or none."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.errors import LogDamaged
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.projections import conversation_list, message_list
from refold.domain.events import MessageAppended
from refold.domain.messages import Block, Message
from refold.infrastructure.event_store import codec, stream_reads
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.projection_store import catch_up as following
from refold.infrastructure.projection_store.read_models import SQLiteViews
from tests.support.log_files import execute
from tests.support.view_events import EPOCH, Scribe


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SQLiteLog]:
    with closing(SQLiteLog(tmp_path / "agent.db")) as opened:
        Scribe(opened).say("t", *["hello"] * 30)
        yield opened


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if "views" in path.name} - {
        "agent.views.db.lock"
    }


def test_what_a_long_log_has_more_is_folded_in_after_the_file_is_there(
    log: SQLiteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "BULK", 7)
    with closing(SQLiteViews(tmp_path / "agent.views.db", log)) as views:
        assert len(views.messages("t", 0, 99)) == 30
        assert list(views.check()) == []
        assert views.rebuild() == 30
        assert list(views.check()) == []


def test_a_log_that_cannot_be_read_leaves_no_part_of_a_file(log: SQLiteLog, tmp_path: Path) -> None:
    execute(
        tmp_path / "agent.db",
        "UPDATE stored_events SET state=? WHERE originator_version=?",
        (b"rubbish", 20),
    )
    with closing(SQLiteViews(tmp_path / "agent.views.db", log)) as views:
        with pytest.raises(LogDamaged):
            views.conversations()
        assert names(tmp_path) == set()


def test_what_a_killed_process_left_is_not_taken_for_a_file(log: SQLiteLog, tmp_path: Path) -> None:
    (tmp_path / "agent.views.db.new").write_bytes(b"half a database")
    (tmp_path / "agent.views.db.new-journal").write_bytes(b"half a journal")
    with closing(SQLiteViews(tmp_path / "agent.views.db", log)) as views:
        assert len(views.messages("t", 0, 99)) == 30
        assert not any(".new" in name for name in names(tmp_path))


WRITTEN: tuple[datetime | None, ...] = (
    None,
    datetime(2025, 6, 1, 12, tzinfo=UTC),
    datetime(2025, 6, 1, 12, 0, 0, 123000, tzinfo=UTC),
    datetime(2025, 6, 1, 12, tzinfo=timezone(timedelta(hours=2))),
)
CONTENTS: tuple[str | tuple[Block, ...], ...] = (
    "hello",
    "lone \ud800 surrogate",
    ({"type": "text", "text": "Look"}, {"type": "image", "source": {}}),
    ({"type": "tool_use", "id": "c", "name": "read", "input": {"a": [1, "é", None]}},),
    ({"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "b"}]},),
)


def various() -> Iterator[MessageAppended]:
    for number, (content, at) in enumerate(product(CONTENTS, WRITTEN)):
        message = Message(role="user", content=content, author="person" if number % 3 else None)
        yield MessageAppended(
            position=number,
            message_id=f"m{number}",
            message=message,
            tokens=number,
            written_at=at,
            owner="someone" if number % 2 else None,
            conversation_owner="ada" if number == 1 else None,
        )


def test_lists_show_a_stored_message_as_they_show_its_event(tmp_path: Path) -> None:
    events = list(various())
    with closing(SQLiteLog(tmp_path / "agent.db")) as log:
        log.transact("t", lambda _: events, at=EPOCH)
        stored = list(log.scan())
    assert [one.event for one in stored] == events
    made = [LoggedEvent(s.number, "t", s.version, s.at, s.event) for s in stored]
    for fold in (message_list.changes_of_run, conversation_list.changes_of_run):
        assert fold(stored) == fold(made)
        assert [fold([one]) for one in stored] == [fold([one]) for one in made]


def test_a_rebuild_makes_no_event_of_a_message_but_the_last(
    log: SQLiteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = note_events_made(monkeypatch)
    with closing(SQLiteViews(tmp_path / "agent.views.db", log)) as views:
        assert views.rebuild() == 30
        assert len(made) <= 2
        del made[:]
        assert len([one.event for one in log.read("t", 1, 30)]) == len(made) == 30


def test_reading_messages_makes_none_of_their_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.db"
    said = [{"role": "user", "content": f"message {number}"} for number in range(30)]
    with refold.open(path) as memory:
        memory.conversation("t").append(said, recorded=True)
    with refold.open(path, background=False) as memory:
        chat = memory.conversation("t")
        chat.messages(0, 1)
        made = note_events_made(monkeypatch)
        assert [one.message.content for one in chat.iter_messages()] == [
            message["content"] for message in said
        ]
        assert not made


def note_events_made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that gets the fields of each message of which an event is made from now on."""
    made = list[object]()
    make = codec.message_appended

    def noted(fields: dict[str, Any]) -> MessageAppended:
        made.append(fields)
        return make(fields)

    for module in (codec, stream_reads):
        monkeypatch.setattr(module, "message_appended", noted)
    return made
