"""A new file of the read models is filled aside and moved into place: there is a whole one or none."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from refold.application.errors import LogDamaged
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.projection_store import catch_up as following
from refold.infrastructure.projection_store.read_models import SQLiteViews
from tests.support.log_files import execute
from tests.support.view_events import Scribe


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
