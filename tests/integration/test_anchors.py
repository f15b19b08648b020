"""The anchor tells of a log that was cut or put back to an earlier day; nothing goes on by itself then."""

import logging
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import refold
from refold.application.errors import LogBehindAnchor, LogDamaged
from refold.infrastructure.event_store.anchor import SIZE, Anchor, anchor_path
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.maintenance.restore import verify_file
from tests.support.log_files import execute, flipped, log_of, rows, say, words_of


def put_back(path: Path) -> None:
    """The whole file of an earlier day."""
    shutil.copy(path.with_name("earlier.db"), path)


def cut_newest(path: Path) -> None:
    execute(path, "DELETE FROM stored_events WHERE originator_version=3")


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def deleted(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    """As many events, others."""
    path.with_name("other.db").unlink(missing_ok=True)
    shutil.copy(log_of(path.with_name("other.db"), "four", "five", "six"), path)


USES: list[Callable[[SQLiteLog], object]] = [
    lambda log: log.load("t"),
    lambda log: say(log, "more"),
    lambda log: say(log, "more", thread_id="another"),
]
LOSSES: list[Callable[[Path], None]] = [put_back, cut_newest, emptied, deleted, replaced]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = log_of(tmp_path / "a.db", "one", "two")
    shutil.copy(made, tmp_path / "earlier.db")
    log = SQLiteLog(made)
    say(log, "three")
    log.close()
    return made


@pytest.mark.parametrize("lose", LOSSES)
def test_a_log_behind_its_anchor_is_neither_read_nor_gone_on_with(
    path: Path, lose: Callable[[Path], None]
) -> None:
    lose(path)
    before = path.read_bytes() if path.exists() else None
    for use in USES:
        with pytest.raises(LogBehindAnchor) as caught:
            used(path, use)
        for way_out in ("Restore the newer file", "refold salvage", "refold anchor --accept"):
            assert way_out in str(caught.value)
    assert (path.read_bytes() if path.exists() else None) == before


def used(path: Path, use: Callable[[SQLiteLog], object]) -> None:
    log = SQLiteLog(path)
    try:
        use(log)
    finally:
        log.close()


def test_without_an_anchor_a_log_that_was_put_back_is_gone_on_with(path: Path) -> None:
    put_back(path)
    log = SQLiteLog(path, anchor=False)
    assert words_of(log) == ["one", "two"]
    log.close()


def test_an_open_log_that_another_process_went_on_with_is_no_damage(path: Path) -> None:
    one, two = SQLiteLog(path), SQLiteLog(path)
    for number in range(4):
        say(one, f"a{number}", thread_id=f"n{number}")
        say(two, f"b{number}", thread_id=f"n{number}")
        say(two, f"c{number}")
    assert words_of(one)[-1] == words_of(two)[-1] == "c3"
    lines, damaged = one.held.anchor.lines()
    assert len(lines) == 5
    assert damaged == 0
    assert list(one.check()) == []
    one.close()
    two.close()


def test_a_log_that_never_had_an_anchor_gets_one_with_all_of_its_conversations(
    tmp_path: Path,
) -> None:
    log = SQLiteLog(tmp_path / "a.db", anchor=False)
    say(log, "one", thread_id="t")
    say(log, "two", thread_id="u")
    log.close()
    assert not (tmp_path / "a.db.anchor").exists()
    log = SQLiteLog(tmp_path / "a.db")
    say(log, "three", thread_id="v")
    assert len(log.held.anchor.lines()[0]) == 3
    log.close()


def test_a_conversation_that_the_anchor_does_not_know_is_not_presumed_new(path: Path) -> None:
    anchor_path(path).unlink()
    with closing(SQLiteLog(path)) as log:
        say(log, "four")
        assert words_of(log) == ["one", "two", "three", "four"]
    anchor_path(path).unlink()
    execute(path, "DELETE FROM stored_events WHERE originator_version<3")
    with closing(SQLiteLog(path)) as log, pytest.raises(LogDamaged, match="the event is missing"):
        say(log, "five")
    assert len(rows(path)) == 2


@pytest.mark.parametrize("line", [0, 1])
def test_a_damaged_line_counts_as_absent_is_told_and_renewed(path: Path, line: int) -> None:
    file = path.with_name("a.db.anchor")
    file.write_bytes(flipped(file.read_bytes(), line * SIZE + 40))
    with refold.open(path) as memory:
        assert memory.conversation("t").version == 3
        [found] = memory.verify().damage
        assert (found.place, found.kind) == ("anchor", "unreadable")
        assert "--repair" in found.remedy
        repaired = memory.verify(repair=True)
        assert repaired.ok
        assert repaired.repaired
        assert memory.verify().repaired == ()
    assert len(Anchor(file).lines()[0]) == 1


def test_an_anchor_that_cannot_be_written_is_told_once_and_costs_nothing_else(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = path.with_name("a.db.anchor")
    file.unlink()
    file.mkdir()
    log = SQLiteLog(path)
    with caplog.at_level(logging.WARNING, "refold"):
        say(log, "four")
        say(log, "five")
    assert words_of(log)[-1] == "five"
    assert len([r for r in caplog.records if "anchor" in r.getMessage()]) == 1
    log.close()


def test_an_exported_anchor_tells_of_a_log_put_back_together_with_its_own(
    path: Path, tmp_path: Path
) -> None:
    with refold.open(path) as memory:
        memory.anchor(tmp_path / "kept.anchor")
        with pytest.raises(refold.RefoldError):
            memory.anchor(tmp_path / "kept.anchor")
    put_back(path)
    path.with_name("a.db.anchor").unlink()
    with refold.open(path) as memory:
        assert memory.verify().ok
        [found] = memory.verify(anchor=tmp_path / "kept.anchor").damage
        assert (found.thread_id, found.version, found.kind) == ("t", 3, "behind")


def test_an_exported_anchor_that_cannot_be_read_is_named(path: Path, tmp_path: Path) -> None:
    missing = tmp_path / "none.anchor"
    with (
        refold.open(path) as memory,
        pytest.raises(refold.LogError, match=r"the anchor .*none\.anchor cannot be read: No such"),
    ):
        memory.verify(anchor=missing)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_an_exported_anchor_may_come_through_a_pipe(path: Path, tmp_path: Path) -> None:
    pipe, checks = tmp_path / "pipe", list[bool]()
    os.mkfifo(pipe)
    with refold.open(path) as memory:
        memory.anchor(tmp_path / "kept.anchor")
        content = (tmp_path / "kept.anchor").read_bytes()
        threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True).start()
        check = threading.Thread(
            target=lambda: checks.append(memory.verify(anchor=pipe).ok), daemon=True
        )
        check.start()
        check.join(20)
        # Whoever still waits for the pipe gets its end.
        os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))
    assert checks == [True]


def test_an_exported_anchor_that_cannot_be_read_is_named_where_the_log_cannot_be_opened(
    path: Path, tmp_path: Path
) -> None:
    foreign = tmp_path / "notes.txt"
    foreign.write_text("not an anchor")
    for anchor, why in (tmp_path / "none.anchor", "cannot be read"), (foreign, "is not an anchor"):
        with pytest.raises(refold.LogError, match=why):
            verify_file(path, LogDamaged("", 0, "damaged"), anchor=anchor)


def test_what_is_accepted_is_gone_on_with(path: Path) -> None:
    put_back(path)
    with refold.open(path) as memory:
        with pytest.raises(LogBehindAnchor):
            memory.anchor()
        assert memory.anchor(accept=True).accepted
        assert memory.conversation("t").append({"role": "user", "content": "on"}).version == 3
        assert memory.verify().ok


def test_nothing_is_accepted_if_the_anchor_cannot_be_exported(path: Path, tmp_path: Path) -> None:
    put_back(path)
    kept = tmp_path / "kept.anchor"
    kept.write_text("an older one")
    with refold.open(path) as memory:
        with pytest.raises(refold.TargetExists):
            memory.anchor(kept, accept=True)
        with pytest.raises(LogBehindAnchor):
            memory.anchor()


def test_a_list_of_conversations_does_not_leave_out_the_one_that_is_missing(path: Path) -> None:
    log = SQLiteLog(path)
    say(log, "only this", thread_id="u")
    log.close()
    execute(path, "DELETE FROM stored_events WHERE originator_id='u'")
    execute(path, "DELETE FROM message_keys WHERE originator_id='u'")
    with refold.open(path) as memory:
        with pytest.raises(LogBehindAnchor):
            memory.conversations()
        [found] = memory.verify().damage
        assert found.kind == "missing"
