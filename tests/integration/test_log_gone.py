"""The file of an open log is moved, deleted or replaced: nothing is acknowledged that cannot be found again."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import refold
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError, LogGone
from refold.domain.appending import append_messages
from refold.domain.events import Event
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.builders import NOON, incoming, user
from tests.support.log_files import log_of, say, words_of


def delete(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def move(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replace(path: Path) -> None:
    other = log_of(path.with_name("other.db"), "something else")
    other.replace(path)


def delete_what_was_written_ahead(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def delete_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


ACTS = (delete, move, replace, delete_what_was_written_ahead, delete_folder)


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
def test_nothing_is_acknowledged_into_a_file_that_is_gone(
    tmp_path: Path, act: Callable[[Path], None]
) -> None:
    (tmp_path / "folder").mkdir()
    path = log_of(tmp_path / "folder" / "a.db", "one")
    log = SQLiteLog(path)
    say(log, "two")
    act(path)
    for _ in range(2):
        with pytest.raises(LogGone, match=r"open it at its new path|put the file back"):
            say(log, "three")
    log.close()


@pytest.mark.parametrize("act", [delete, move, replace], ids=lambda act: act.__name__)
def test_a_read_of_a_log_that_was_replaced_does_not_serve_the_old_one(
    tmp_path: Path, act: Callable[[Path], None]
) -> None:
    path = log_of(tmp_path / "a.db", "one")
    with refold.open(path) as memory:
        conversation = memory.conversation("t")
        assert len(conversation.messages()) == 1
        act(path)
        for read in (
            conversation.messages,
            conversation.context,
            memory.conversations,
            memory.verify,
        ):
            with pytest.raises(LogGone):
                read()


def test_a_file_that_vanishes_during_a_write_is_not_written_to_unseen(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "one")
    log = SQLiteLog(path)
    say(log, "two")
    moved = tmp_path / "b.db"

    def decide(loaded: LoadedConversation) -> tuple[Event, ...]:
        path.rename(moved)
        return append_messages(loaded.state, [incoming(user("three"))])

    with pytest.raises(LogGone):
        log.transact("t", decide, at=NOON)
    moved.rename(path)
    say(log, "four")
    log.close()
    again = SQLiteLog(path)
    assert words_of(again) == ["one", "two", "four"]
    assert list(again.check()) == []
    again.close()


def test_a_file_that_is_gone_is_not_made_anew_behind_the_back(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "one")
    log = SQLiteLog(path)
    say(log, "two")
    delete(path)
    with pytest.raises(LogError):
        say(log, "three")
    assert not path.exists()
    log.close()
    assert not path.exists()


def test_a_log_that_was_closed_by_another_thread_says_so(tmp_path: Path) -> None:
    log = SQLiteLog(log_of(tmp_path / "a.db", "one"))
    log.close()
    with pytest.raises(LogError, match="open it again"):
        say(log, "two")
