"""What another process drops and makes anew while it is asked is opened again, never moved into memory."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.projection_store.catch_up import RENEWALS, TRIES
from refold.infrastructure.projection_store.read_models import SQLiteViews
from refold.infrastructure.recall.recall_index import SQLiteRecallIndex
from refold.infrastructure.recall.vectors import SQLiteVectorStore
from tests.support.fake_embedders import DigestEmbedder
from tests.support.view_events import Scribe


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SQLiteLog]:
    with closing(SQLiteLog(tmp_path / "agent.db")) as opened:
        Scribe(opened).say("t", "one", "two", "three")
        yield opened


def failure() -> sqlite3.OperationalError:
    """What SQLite says where the files beside the database are gone."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHORT_READ
    return error


def test_read_models_that_others_drop_while_they_are_asked_are_opened_again(
    log: SQLiteLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "agent.views.db"
    left = 3 * TRIES
    with closing(SQLiteViews(path, log)) as views, closing(SQLiteViews(path, log)) as other:

        def question(_: object) -> str:
            nonlocal left
            if left:
                left -= 1
                other.drop()
                if left % 2:
                    other.conversations()
                raise failure()
            return "answered"

        assert views.followed.answer(question) == "answered"
        assert path.exists()
        assert views.conversation("t") is not None
    assert "in memory" not in caplog.text


def test_the_same_file_that_fails_again_is_not_waited_for(
    log: SQLiteLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked = 0

    def question(_: object) -> str:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise failure()
        return "answered"

    with closing(SQLiteViews(tmp_path / "agent.views.db", log)) as views:
        views.conversations()
        assert views.followed.answer(question) == "answered"
    assert caplog.text.count("in memory") == 1


@pytest.mark.slow
def test_a_file_that_is_replaced_all_the_time_is_not_asked_for_ever(
    log: SQLiteLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "agent.recall.db"
    asked = 0
    with closing(SQLiteRecallIndex(path, log)) as index:

        def question(_: object) -> str:
            nonlocal asked
            asked += 1
            if asked > RENEWALS + 1:
                return "answered"
            path.unlink(missing_ok=True)
            raise failure()

        index.edition()
        assert index.followed.answer(question) == "answered"
    assert asked == RENEWALS + 2
    assert "in memory" in caplog.text


def test_vectors_that_others_drop_while_they_are_asked_are_opened_again(
    log: SQLiteLog,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embedder = DigestEmbedder()
    path = tmp_path / "agent.vectors.db"
    left = 3 * TRIES
    with (
        closing(SQLiteRecallIndex(":memory:", log)) as index,
        closing(SQLiteVectorStore(path, index)) as store,
        closing(SQLiteVectorStore(path, index)) as other,
    ):
        store.add(embedder.model, {"d": embedder.vector("one")})

        def failing(*_: object) -> int:
            nonlocal left
            if left:
                left -= 1
                other.drop()
                other.add(embedder.model, {"d": embedder.vector("one")})
                raise failure()
            return 1

        monkeypatch.setattr("refold.infrastructure.recall.vectors.count_of", failing)
        assert store.count(embedder.model) == 1
    assert "in memory" not in caplog.text
