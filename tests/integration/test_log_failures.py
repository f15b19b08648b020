"""Errors from below the log: each becomes one of ours that says what to do, and passing ones are tried again."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.domain import EventSourcingError
from eventsourcing.persistence import (
    ConnectionPoolClosedError,
    ConnectionUnavailableError,
    PersistenceError,
    StoredEvent,
)

import refold
from refold.application.errors import (
    LogBusy,
    LogDamaged,
    LogError,
    LogFull,
    LogGone,
    LogNotWritable,
    NotARefoldLog,
)
from refold.infrastructure.event_store import shelf
from refold.infrastructure.event_store.recorder import DurableDatastore, DurablePool, LogRecorder
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.maintenance import compressed_payloads as compressing
from refold.infrastructure.sqlite import sqlite_failures as retries
from refold.infrastructure.sqlite.sqlite_failures import retry, translate_errors
from tests.support.log_files import log_of, rows, say, words_of

SAID = "the words of somebody"
PATH = Path("/x/full/busy/agent.db")


def with_all_below(kind: type[Exception]) -> Iterator[type[Exception]]:
    yield kind
    for below in kind.__subclasses__():
        yield from with_all_below(below)


def kinds() -> list[type[Exception]]:
    found = {*with_all_below(PersistenceError), *with_all_below(sqlite3.Error)}
    found |= {ConnectionPoolClosedError, ConnectionUnavailableError}
    return sorted(found, key=lambda kind: (kind.__module__, kind.__name__))


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_class_of_error_of_the_store_is_translated(kind: type[Exception]) -> None:
    """A class that a newer library adds is here by itself."""
    with pytest.raises(LogError) as caught, translate_errors(PATH):
        raise kind(SAID) if issubclass(kind, EventSourcingError) else kind()
    assert str(PATH) in str(caught.value)
    assert "again" in str(caught.value)
    assert SAID not in str(caught.value)


def coded(name: str) -> sqlite3.Error:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = name
    return error


CODES: dict[type[LogError], tuple[list[str], list[int]]] = {
    LogFull: (["SQLITE_FULL"], [errno.ENOSPC, errno.EDQUOT]),
    LogGone: (["SQLITE_READONLY_DBMOVED"], [errno.ENOENT, errno.ESTALE, errno.ENOTDIR]),
    LogNotWritable: (
        ["SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH"],
        [errno.EACCES, errno.EPERM, errno.EROFS],
    ),
    LogBusy: (
        ["SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_LOCKED", "SQLITE_PROTOCOL"],
        [errno.EAGAIN],
    ),
    NotARefoldLog: (["SQLITE_NOTADB"], []),
    LogDamaged: (["SQLITE_CORRUPT", "SQLITE_CORRUPT_VTAB", "SQLITE_FORMAT"], []),
    LogError: (
        ["SQLITE_IOERR", "SQLITE_IOERR_FSYNC", "SQLITE_NOMEM", "SQLITE_MISUSE", "SQLITE_ERROR"],
        [errno.EIO, errno.EMFILE, errno.ENOMEM],
    ),
}


def raise_it(error: Exception, wrapped: bool) -> None:
    if wrapped:
        raise PersistenceError(SAID) from error
    raise error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param(error, kind, id=str(error))
        for kind, (names, numbers) in CODES.items()
        for error in (*map(coded, names), *(OSError(n, os.strerror(n), str(PATH)) for n in numbers))
    ],
)
def test_the_code_says_which_error_it_is(error: Exception, kind: type[LogError]) -> None:
    for wrapped in (False, True):
        with pytest.raises(LogError) as caught, translate_errors(PATH):
            raise_it(error, wrapped)
        assert type(caught.value) is kind
        assert SAID not in str(caught.value)


class Failing:
    """Fails so often, then works."""

    def __init__(self, times: int, error: Exception) -> None:
        self.times, self.error, self.calls = times, error, 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error
        return "done"


@pytest.mark.parametrize("name", ["SQLITE_IOERR_READ", "SQLITE_BUSY_RECOVERY", "SQLITE_PROTOCOL"])
def test_a_trouble_that_passes_is_tried_three_times(name: str) -> None:
    act = Failing(2, coded(name))
    assert retry(act) == "done"
    assert act.calls == 3
    act = Failing(3, coded(name))
    with pytest.raises(sqlite3.Error):
        retry(act)
    assert act.calls == 3


@pytest.mark.parametrize("name", ["SQLITE_FULL", "SQLITE_READONLY", "SQLITE_NOTADB"])
def test_a_trouble_that_stays_is_told_at_once(name: str) -> None:
    act = Failing(1, coded(name))
    with pytest.raises(sqlite3.Error):
        retry(act)
    assert act.calls == 1


def test_who_has_waited_out_the_time_is_not_sent_to_wait_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retries, "PATIENCE", -1)
    act = Failing(1, coded("SQLITE_BUSY"))
    with pytest.raises(sqlite3.Error):
        retry(act)
    assert act.calls == 1


@pytest.mark.parametrize("committed", [False, True])
def test_a_write_that_was_reported_to_have_failed_is_stored_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    path = log_of(tmp_path / "a.db", "one")
    log = SQLiteLog(path)
    stored = LogRecorder._insert_events  # pyright: ignore[reportPrivateUsage]
    failures = iter([coded("SQLITE_IOERR_FSYNC")])

    def unclear(self: LogRecorder, c: object, events: list[StoredEvent], **more: object) -> object:
        answer = stored(self, c, events, **more)  # type: ignore[arg-type]  # pyright: ignore
        if (error := next(failures, None)) is not None:
            if committed:
                c.sqlite_cursor.connection.commit()  # type: ignore[attr-defined]  # pyright: ignore
            raise error
        return answer

    monkeypatch.setattr(LogRecorder, "_insert_events", unclear)
    say(log, "two", key="k")
    assert words_of(log) == ["one", "two"]
    assert len(rows(path)) == 2
    assert list(log.check()) == []
    log.close()


@pytest.mark.parametrize("is_writer", [True, False])
def test_a_failed_connection_does_not_block_those_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_writer: bool
) -> None:
    path = log_of(tmp_path / "a.db", "one")
    pool = DurablePool(db_name=str(path))
    with monkeypatch.context() as while_it_fails:
        while_it_fails.setattr(pool, "db_name", str(tmp_path / "no" / "folder"))
        for _ in range(20):
            with pytest.raises((sqlite3.Error, LogGone)):
                pool.get_connection(timeout=0.1, is_writer=is_writer)
    pool.put_connection(pool.get_connection(timeout=0.1, is_writer=is_writer))
    pool.close()


@pytest.mark.slow(but="counted")
@pytest.mark.parametrize("place", ["rewritten", "a dictionary is stored", "counted"])
def test_compressing_is_tried_again_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    module, name = {
        "rewritten": (compressing.LogCompressor, "_rewrite_one"),
        "a dictionary is stored": (compressing, "put_dictionary"),
        "counted": (compressing, "_is_plain"),
    }[place]
    done = getattr(module, name)
    with refold.open(tmp_path / "a.db") as memory:
        conversation = memory.conversation("t")
        hashes = (
            " ".join(sha256(b"%d %d" % (n, m)).hexdigest()[:6] for m in range(60))
            for n in range(60)
        )
        conversation.append(
            [{"role": "user", "content": f"{hash} and so on and on {hash}"} for hash in hashes]
        )
        conversation.append({"role": "assistant", "content": "Fine."})
        assert conversation.compact().outcome == "performed"
    log = SQLiteLog(tmp_path / "a.db")
    before = words_of(log)
    for times, succeeds in ((3, False), (2, True)):
        failing = Failing(times, coded("SQLITE_IOERR_WRITE"))

        def unsteady(*given: object, failing: Failing = failing) -> object:
            failing()
            return done(*given)

        monkeypatch.setattr(module, name, unsteady)
        if succeeds:
            assert log.compress(0).events > 0
        else:
            with pytest.raises(LogError, match="check the disk"):
                log.compress(0)
        assert words_of(log) == before
        assert list(log.check()) == []
    log.close()


def test_opening_looks_for_its_keys_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = SQLiteLog(tmp_path / "a.db", key=b"k" * 32)
    say(log, "one")
    log.close()
    there = shelf._is_there  # pyright: ignore[reportPrivateUsage]
    for times, succeeds in ((3, False), (2, True)):
        failing = Failing(times, coded("SQLITE_BUSY_RECOVERY"))

        def unsteady(*given: Any, failing: Failing = failing) -> bool:
            failing()
            return there(*given)

        monkeypatch.setattr(shelf, "_is_there", unsteady)
        if not succeeds:
            with pytest.raises(LogBusy):
                SQLiteLog(tmp_path / "a.db", key=b"k" * 32)
            continue
        log = SQLiteLog(tmp_path / "a.db", key=b"k" * 32)
        assert words_of(log) == ["one"]
        log.close()


def test_a_log_whose_last_connection_was_closed_by_a_failure_is_gone_on_with(
    tmp_path: Path,
) -> None:
    log = SQLiteLog(log_of(tmp_path / "a.db", "one"))
    say(log, "two")
    with log._datastore.get_connection(commit=True) as writer:  # pyright: ignore[reportPrivateUsage]
        writer.close()
    log._datastore.pool.close()  # pyright: ignore[reportPrivateUsage]
    log._datastore.pool._closed = False  # pyright: ignore
    assert not (tmp_path / "a.db-wal").exists()
    say(log, "three")
    assert words_of(log) == ["one", "two", "three"]
    log.close()


def test_a_connection_that_comes_back_after_the_log_was_closed_is_closed(tmp_path: Path) -> None:
    store = DurableDatastore(str(tmp_path / "log.db"))
    connection = store.pool.get_connection()
    store.close()
    store.pool.put_connection(connection)
    assert connection.closed
