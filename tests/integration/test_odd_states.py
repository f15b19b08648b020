"""States that nobody planned: other programs hold the log, files beside it vanish, the clock runs backwards."""

import fcntl
import itertools
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import refold
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.errors import BackupDamaged, LogBusy, LogGone, NewerLog
from refold.infrastructure.event_store import recorder as log_sqlite
from refold.infrastructure.event_store import turn_files as log_file
from refold.infrastructure.event_store.anchor import anchor_path
from refold.infrastructure.event_store.envelope import Place, parse_frame, seal
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.files.lock import WriteLock
from tests.support.builders import requested
from tests.support.command_line import ran
from tests.support.log_files import execute, log_of, rows, say, words_of

ROOT = Path(__file__).resolve().parents[2]
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def writer(path: Path, count: int, name: str = "a") -> subprocess.Popen[str]:
    """Another process that appends so many messages, twice each."""
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.support.writer_process",
            "write",
            path,
            "t",
            name,
            str(count),
        ],
        cwd=ROOT,
        text=True,
    )


def talk_on(conversation: ConversationMemory, turns: int) -> None:
    for turn in range(turns):
        for role in ("user", "assistant"):
            conversation.append(
                {"role": role, "content": f"{turn} " + "some words of a talk " * 40}
            )


def running_back() -> Iterator[datetime]:
    """An hour earlier whenever it is asked."""
    return (START - timedelta(hours=hour) for hour in itertools.count())


def test_a_clock_that_runs_backwards_loses_nothing(tmp_path: Path) -> None:
    clock = running_back()
    for opened in range(3):
        with refold.open(tmp_path / "a.db", window=8_000, clock=lambda: next(clock)) as memory:
            conversation = memory.conversation("t")
            talk_on(conversation, 10)
            assert conversation.compact().outcome == "performed"
            assert len(conversation.messages()) == 20 + 21 * opened
            assert len(conversation.summaries()) == opened + 1
            version = conversation.version
            before = conversation.context().messages
            conversation.append({"role": "user", "content": "more"}, key=f"more {opened}")
            assert conversation.context(at=version).messages == before
            assert (
                conversation.context(at=START + timedelta(days=1)).version == conversation.version
            )
            conversation.erase(conversation.messages()[-1].position)
            assert memory.verify().ok


@pytest.mark.parametrize("days", [-100, 100], ids=["long ago", "in the future"])
def test_an_attempt_of_another_time_holds_nobody_up(tmp_path: Path, days: int) -> None:
    path = tmp_path / "a.db"
    with refold.open(path, window=8_000, clock=lambda: START) as memory:
        talk_on(memory.conversation("t"), 10)
    attempt = requested(8, requested_at=START + timedelta(days=days))
    with closing(SQLiteLog(path)) as log:
        log.transact("t", lambda _: (attempt,), at=START)
    with refold.open(path, window=8_000, clock=lambda: START) as memory:
        assert memory.conversation("t").compact().outcome == "performed"
        assert memory.verify().ok


def begin_exclusive(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    return connection


def take_the_lock_file(path: Path) -> "Holding":
    return Holding(Path(f"{path}.lock"))


class Holding:
    """A program that holds the lock of the writers."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def close(self) -> None:
        self._file.close()


@pytest.mark.parametrize("hold", [begin_exclusive, take_the_lock_file])
def test_a_log_that_another_program_holds_is_busy_and_goes_on_afterwards(
    tmp_path: Path,
    hold: "Callable[[Path], sqlite3.Connection | Holding]",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_sqlite, "LOCK_TIMEOUT", 0.05)
    monkeypatch.setattr(log_file, "LOCK_TIMEOUT", 0.05)
    path = log_of(tmp_path / "a.db", "one")
    with closing(SQLiteLog(path)) as log:
        say(log, "two", key="two")
        with closing(hold(path)):
            for _ in range(2):
                with pytest.raises(LogBusy, match="try again"):
                    say(log, "three", key="three")
            assert words_of(log) == ["one", "two"]
        say(log, "three", key="three")
        say(log, "two", key="two")
        assert words_of(log) == ["one", "two", "three"]
        assert list(log.check()) == []


def test_a_log_that_another_program_has_for_itself_is_busy_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_sqlite, "LOCK_TIMEOUT", 0.05)
    path = log_of(tmp_path / "a.db", "one")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("UPDATE stored_events SET state=state WHERE 0")
        with pytest.raises(LogBusy, match="try again"), closing(SQLiteLog(path)) as log:
            words_of(log)
    with closing(SQLiteLog(path)) as log:
        assert words_of(log) == ["one"]


def write_newer(path: Path) -> None:
    """Replace the second event of conversation ``t`` with one that only a newer refold knows."""
    anchor_path(path).unlink()
    old = parse_frame(rows(path)[1][3])
    _, blob = seal(
        Place("t", 2, "mood_felt"), 1, old.at, old.salt, old.previous, b'{"mood":"fine"}'
    )
    where = "WHERE originator_id='t' AND originator_version=2"
    execute(path, f"UPDATE stored_events SET topic='mood_felt', state=? {where}", [blob])


def test_an_event_of_a_newer_refold_stops_its_conversation_and_no_other(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "one", "two")
    with refold.open(path) as memory:
        memory.conversation("u").append({"role": "user", "content": "hello"})
    write_newer(path)
    with refold.open(path) as memory:
        with pytest.raises(NewerLog, match="install a newer refold"):
            memory.conversation("t").append({"role": "user", "content": "three"})
        with pytest.raises(NewerLog):
            memory.conversation("t").context()
        conversation = memory.conversation("u")
        conversation.append({"role": "user", "content": "more"})
        assert "more" in str(conversation.context().messages)
        found = memory.verify()
        assert [(d.thread_id, d.version, d.kind) for d in found.damage] == [("t", 2, "newer")]


def test_an_event_of_a_newer_refold_is_not_called_damage(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "one", "two")
    write_newer(path)
    with refold.open(path) as memory, pytest.raises(NewerLog, match="mood_felt"):
        memory.backup(tmp_path / "copy.db")
    with pytest.raises(NewerLog, match="mood_felt"):
        refold.restore(path, tmp_path / "copy.db")
    assert not list(tmp_path.glob("*copy*"))
    said = ran("verify", "--db", path, folder=tmp_path)
    assert said.code == 1
    assert "install a newer refold" in said.out
    assert "is damaged" not in said.out
    execute(path, "UPDATE stored_events SET state=? WHERE originator_version=1", [b"damaged"])
    with refold.open(path) as memory, pytest.raises(BackupDamaged) as refused:
        memory.backup(tmp_path / "copy.db")
    assert {one.kind for one in refused.value.damage} > {"newer"}


def test_what_others_wrote_is_kept_when_the_shared_memory_was_deleted(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", "one")
    log = SQLiteLog(path)
    say(log, "two")
    Path(f"{path}-shm").unlink()
    assert writer(path, 1).wait(60) == 0
    for act in (lambda: say(log, "three"), lambda: words_of(log)):
        with pytest.raises(LogGone, match="-shm"):
            act()
    log.close()
    with closing(SQLiteLog(path)) as log:
        assert words_of(log) == ["one", "two", "a0", "shared0"]
        assert list(log.check()) == []


@pytest.mark.parametrize("suffixes", [["-wal"], ["-wal", "-shm"], ["-shm"]], ids="".join)
def test_what_was_acknowledged_is_there_when_files_beside_the_log_were_deleted(
    tmp_path: Path, suffixes: list[str]
) -> None:
    path = log_of(tmp_path / "a.db", "one")
    log = SQLiteLog(path)
    say(log, "two")
    for suffix in suffixes:
        Path(f"{path}{suffix}").unlink()
    with pytest.raises(LogGone, match="Close it"):
        say(log, "three")
    log.close()
    with closing(SQLiteLog(path)) as log:
        assert words_of(log) == ["one", "two"]
        say(log, "three")
        assert list(log.check()) == []


def test_who_waits_for_a_lock_file_that_was_deleted_waits_for_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    one, two = WriteLock(path, 0.05), WriteLock(path, 0.05)
    with one.held():
        pass
    path.unlink()
    with two.held(), pytest.raises(LogBusy), one.held():
        pass
    with one.held(), pytest.raises(LogBusy), two.held():
        pass
    one.close()
    two.close()


@pytest.mark.slow
def test_writers_keep_their_order_while_the_lock_file_is_deleted_again_and_again(
    tmp_path: Path,
) -> None:
    path = log_of(tmp_path / "a.db")
    others = [writer(path, 40, name) for name in "ab"]
    while any(other.poll() is None for other in others):
        Path(f"{path}.lock").unlink(missing_ok=True)
    assert [other.returncode for other in others] == [0, 0]
    with closing(SQLiteLog(path)) as log:
        words = words_of(log)
        for name in ("a", "b", "shared"):
            mine = [word for word in words if word.startswith(name)]
            assert mine == [f"{name}{number}" for number in range(40)]
        assert list(log.check()) == []


def test_an_anchor_that_is_deleted_while_the_log_is_open_is_made_again_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = log_of(tmp_path / "a.db", "one")
    with closing(SQLiteLog(path)) as log:
        say(log, "two", thread_id="u")
        anchor_path(path).unlink()
        say(log, "three")
        assert len(log.held.anchor.lines()[0]) == 2
        assert list(log.check()) == []
    assert caplog.records == []


LIMITED = """
import resource, sys
from pathlib import Path
from refold.application.errors import LogError
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.log_files import say, words_of

log = SQLiteLog(Path(sys.argv[1]))
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, unlimited[1]))
said = []
try:
    for number in range(1_000):
        say(log, f"{number} " + "x" * 9_000, key=str(number))
        said.append(number)
except LogError as error:
    print(type(error).__name__, "|", error)
assert [int(word.split()[0]) for word in words_of(log)] == said
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
say(log, f"{len(said)} at last", key=str(len(said)))
print(len(said) + 1)
log.close()
"""


def test_a_file_that_may_not_grow_further_is_told_and_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    told, count = done.stdout.splitlines()
    assert told.startswith(("LogFull", "LogError"))
    assert "again" in told
    assert int(count) > 5
    with closing(SQLiteLog(path)) as log:
        assert len(words_of(log)) == int(count)
        assert list(log.check()) == []
