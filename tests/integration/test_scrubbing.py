"""Damage behind a snapshot is known after a number of openings, and its conversation takes no appends then."""

import logging
import shutil
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

import refold
from refold.application.errors import LogDamaged, TargetExists
from refold.infrastructure.bootstrap import open_core
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.maintenance.scrubber import (
    LogScrubber,
    ScrubFile,
    ScrubRecord,
    checked_path,
)
from refold.infrastructure.observability.log_observer import Notice
from tests.support.scrubbing import changed, covered, flip, flip_at, quiet, scrubbed

MORE = {"role": "user", "content": "one more"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return covered(tmp_path_factory.mktemp("made") / "agent.db")


@pytest.fixture
def log(made: Path, tmp_path: Path) -> Path:
    """A closed log of two conversations; of ``t`` most is behind a snapshot."""
    for file in made.parent.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path / "agent.db"


def record_of(log: Path) -> ScrubRecord:
    return ScrubFile(checked_path(log), of=log, writable=False).read()


def takes_appends(log: Path, thread: str) -> bool:
    with quiet(log) as memory:
        try:
            memory.conversation(thread).append(MORE)
        except LogDamaged:
            return False
        return True


def test_until_it_is_known_appends_work_and_then_they_are_refused(log: Path) -> None:
    flip(log, b"t-needle-003")
    assert takes_appends(log, "t")
    scrubbed(log)
    assert not takes_appends(log, "t")
    assert takes_appends(log, "u")


def test_the_refusal_names_the_event_and_says_what_to_do(log: Path) -> None:
    flip(log, b"t-needle-003")
    scrubbed(log)
    with quiet(log) as memory, pytest.raises(LogDamaged, match="restore a backup") as refused:
        memory.conversation("t").append(MORE)
    assert (refused.value.thread_id, refused.value.version) == ("t", 7)
    assert "to a damaged conversation" in str(refused.value)


def test_every_opening_tells_of_it_until_it_is_repaired(log: Path) -> None:
    at = flip(log, b"t-needle-003")
    for _ in range(2):
        told: list[Notice] = []
        scrubbed(log, told=told)
        assert [(one.name, one.thread_id, one.figures["version"]) for one in told] == [
            ("log.damaged", "t", 7)
        ]
        assert "restore a backup" in str(told[0].figures["advice"])
    flip_at(log, at)
    told = []
    scrubbed(log, told=told)
    assert told == []


def test_the_refusal_is_lifted_when_the_row_reads_well_again(log: Path) -> None:
    at = flip(log, b"t-needle-003")
    scrubbed(log)
    assert not takes_appends(log, "t")
    flip_at(log, at)
    assert takes_appends(log, "t")
    assert record_of(log).findings == ()


def test_a_memory_that_is_open_hears_of_what_another_one_found(log: Path) -> None:
    flip(log, b"t-needle-003")
    with quiet(log) as memory:
        memory.conversation("t").append(MORE)
        scrubbed(log)
        with pytest.raises(LogDamaged):
            memory.conversation("t").append(MORE)
        memory.conversation("u").append(MORE)


def test_what_a_read_or_a_check_comes_upon_is_known_as_well(log: Path) -> None:
    flip(log, b"t-needle-003")
    flip(log, b"u-needle-003")
    with quiet(log) as memory:
        with pytest.raises(LogDamaged):
            memory.conversation("t").fork(at=20)
        with pytest.raises(LogDamaged):
            memory.conversation("t").append(MORE)
    checked_path(log).unlink(missing_ok=True)
    with quiet(log) as memory:
        assert not memory.verify().ok
        with pytest.raises(LogDamaged):
            memory.conversation("t").append(MORE)


def test_reading_goes_on_where_nothing_is_appended(log: Path) -> None:
    flip(log, b"t-needle-003")
    scrubbed(log)
    with quiet(log) as memory:
        assert memory.conversation("t").context().messages
        memory.conversation("t").fork(at=2, thread_id="copy")
        memory.conversation("copy").append(MORE)


def test_it_goes_on_where_the_opening_before_stopped_and_then_starts_over(log: Path) -> None:
    places: list[int] = []
    for _ in range(6):
        scrubbed(log, 40_000)
        places.append(record_of(log).after)
    end = places.index(0)
    assert places[:end] == sorted(set(places[:end]))
    assert places[0] > 0
    assert places[end + 1] == places[0]


def test_it_ends_at_the_row_that_was_the_newest_when_it_began(log: Path) -> None:
    with closing(SQLiteLog(log)) as opened, quiet(log) as memory:
        scrubber = LogScrubber(opened.known, 1 << 30)
        appends = 0
        while scrubber.step() and appends < 9:
            memory.conversation("u").append([MORE] * 60)
            appends += 1
    assert 0 < appends < 9
    flip(log, b"one more")
    scrubbed(log)
    assert not takes_appends(log, "u")


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM stored_events WHERE originator_id='t' AND originator_version=9",
        "UPDATE stored_events SET originator_version=5000 WHERE rowid=9",
        "UPDATE stored_events SET originator_id='t2' WHERE rowid=9",
        "UPDATE stored_events SET topic='message_erased' WHERE rowid=9",
        "UPDATE stored_events SET state=NULL WHERE rowid=9",
        "UPDATE stored_events SET originator_id=CAST(x'ff74' AS TEXT) WHERE rowid=9",
        "UPDATE stored_events SET originator_version='x' WHERE rowid=9",
        "UPDATE stored_events SET state=(SELECT state FROM stored_events WHERE rowid=8) WHERE rowid=9",
    ],
)
def test_whatever_is_wrong_with_a_row_is_found(log: Path, statement: str) -> None:
    changed(log, statement)
    told: list[Notice] = []
    scrubbed(log, told=told)
    assert told
    assert not takes_appends(log, "t")
    assert takes_appends(log, "u")


def test_a_row_whose_page_cannot_be_read_is_found_and_what_follows_it_is_read(log: Path) -> None:
    flip(log, b"u-needle-020")
    content = bytearray(log.read_bytes())
    at = content.find(b"t-needle-003") // 4096 * 4096
    content[at : at + 100] = b"\xff" * 100
    log.write_bytes(content)
    told: list[Notice] = []
    scrubbed(log, told=told)
    assert {one.thread_id for one in told} == {"t", "u"}
    assert not takes_appends(log, "t")
    assert not takes_appends(log, "u")


def test_an_index_that_does_not_lead_to_a_row_is_found(log: Path) -> None:
    content = bytearray(log.read_bytes())
    # Of the primary key: stream, version and row in one short cell.
    at = content.find(b"\x04\x0f\x01\x01t\x09")
    assert at > 0
    content[at + 5] ^= 0x40
    log.write_bytes(content)
    told: list[Notice] = []
    scrubbed(log, told=told)
    assert {one.thread_id for one in told} == {"t"}


@pytest.mark.parametrize("lost", [b"", b"garbage", b"refold-checked-1\n00000000\n{}"])
def test_a_lost_or_damaged_note_begins_from_the_start(log: Path, lost: bytes) -> None:
    scrubbed(log, 20_000)
    checked_path(log).write_bytes(lost)
    assert record_of(log).after == 0
    flip(log, b"t-needle-003")
    scrubbed(log)
    assert not takes_appends(log, "t")


def test_a_note_of_another_log_is_not_believed(log: Path, tmp_path: Path) -> None:
    flip(log, b"t-needle-003")
    scrubbed(log)
    (tmp_path / "other").mkdir()
    other = covered(tmp_path / "other" / "other.db", 30)
    other.replace(log)
    for suffix in (".anchor", "-wal", "-shm"):
        Path(f"{log}{suffix}").unlink(missing_ok=True)
    told: list[Notice] = []
    scrubbed(log, told=told)
    assert told == []
    assert record_of(log).findings == ()
    assert takes_appends(log, "t")


def test_the_note_is_its_owners_alone_names_nobody_and_is_a_file_of_the_log(
    log: Path, tmp_path: Path
) -> None:
    flip(log, b"t-needle-003")
    scrubbed(log)
    note = checked_path(log)
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert b'"t"' not in note.read_bytes()
    with quiet(log) as memory:
        assert "checked" in {file.name for file in memory.stats().files}
        with pytest.raises(TargetExists):
            memory.backup(note)


def test_a_restored_log_is_not_accused_of_what_the_old_one_had(log: Path, tmp_path: Path) -> None:
    with quiet(log) as memory:
        memory.backup(tmp_path / "backup.db")
    flip(log, b"t-needle-003")
    scrubbed(log)
    refold.restore(tmp_path / "backup.db", log, force=True, scrub_megabytes=0)
    assert not checked_path(log).exists()
    assert takes_appends(log, "t")


def test_opening_reads_in_the_background(log: Path, caplog: pytest.LogCaptureFixture) -> None:
    flip(log, b"t-needle-003")
    with caplog.at_level(logging.ERROR), refold.open(log) as memory:
        for thread in threading.enumerate():
            if thread.name == "refold-scrub":
                thread.join()
        with pytest.raises(LogDamaged):
            memory.conversation("t").append(MORE)
    assert "log.damaged thread_id=t" in caplog.text
    assert "restore a backup" in caplog.text


def test_a_log_opens_without_its_check_where_no_thread_can_start(
    log: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        with refold.open(log) as memory:
            memory.conversation("t").append(MORE)
    assert "the background check of the log does not run" in caplog.text


def test_openings_that_are_closed_at_once_read_everything_in_the_end(log: Path) -> None:
    flip(log, b"u-answer-029")
    for _ in range(3):
        refold.open(log).close()
    assert not takes_appends(log, "u")


def test_a_new_log_and_one_in_memory_have_no_note(tmp_path: Path) -> None:
    with refold.open(":memory:") as memory:
        memory.conversation("t").append(MORE)
    refold.open(tmp_path / "new.db").close()
    assert not checked_path(tmp_path / "new.db").exists()


def test_closing_the_log_alone_ends_the_reading_before_its_connections_are_closed(
    log: Path,
) -> None:
    for _ in range(20):
        open_core(log).log.close()
        assert all(thread.name != "refold-scrub" for thread in threading.enumerate())
