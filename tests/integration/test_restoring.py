"""A backup takes the place of a log: checked first, nothing thrown away, nothing erased comes back."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from refold.application.erasure.clean_up import clean_up
from refold.application.errors import (
    BackupDamaged,
    LogBusy,
    LogError,
    LogGone,
    LogLocked,
    LogNotFound,
    NotARefoldLog,
    TargetExists,
)
from refold.application.maintenance.maintenance_results import ErasedAgain
from refold.application.runtime.core import Core
from refold.infrastructure.bootstrap import open_memory
from refold.infrastructure.event_store.anchor import anchor_path
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.maintenance.restore import restore_log, salvage_file
from tests.support.command_line import Refold, talk
from tests.support.log_files import compacted_log, execute, rows, set_state

SECRET = "the code is 7391"


def filled(path: Path, *words: str) -> Path:
    with open_memory(path) as memory:
        for word in words:
            memory.conversation("t").append({"role": "user", "content": word}, recorded=True)
    return path


def kept(path: Path, to: Path) -> Path:
    with open_memory(path) as memory:
        memory.backup(to)
    return to


def words_in(path: Path, thread_id: str = "t") -> list[str]:
    with open_memory(path) as memory:
        assert memory.verify().ok
        return [m.text for m in memory.conversation(thread_id).messages()]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return filled(tmp_path / "agent.db", "one", "two")


@pytest.fixture
def backup(log: Path, tmp_path: Path) -> Path:
    return kept(log, tmp_path / "backup.db")


def test_where_no_log_is(backup: Path, tmp_path: Path) -> None:
    new = tmp_path / "elsewhere" / "agent.db"
    new.parent.mkdir()
    restored = restore_log(backup, new)
    assert (restored.events, restored.conversations, restored.moved_aside) == (2, 1, None)
    assert words_in(new) == ["one", "two"]
    assert new.stat().st_mode & 0o777 == 0o600


def test_the_log_that_was_there_is_moved_aside_with_everything(log: Path, backup: Path) -> None:
    filled(log, "three")
    with pytest.raises(TargetExists, match="in Python force=True, moves it away"):
        restore_log(backup, log)
    restored = restore_log(backup, log, force=True)
    assert words_in(log) == ["one", "two"]
    assert restored.moved_aside is not None
    assert words_in(restored.moved_aside) == ["one", "two", "three"]
    # And once more in the same second.
    again = restore_log(backup, log, force=True)
    assert again.moved_aside not in (None, restored.moved_aside)


def test_what_comes_after_is_stored_and_anchored(log: Path, backup: Path) -> None:
    filled(log, "three")
    restore_log(backup, log, force=True)
    filled(log, "four")
    assert words_in(log) == ["one", "two", "four"]
    assert anchor_path(log).stat().st_size == 256


def test_what_lies_in_the_write_ahead_log_only_is_moved_as_well(log: Path, backup: Path) -> None:
    with open_memory(log) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "three"})
        assert Path(f"{log}-wal").stat().st_size
        moved = restore_log(backup, log, force=True).moved_aside
        with pytest.raises(LogGone):
            conversation.append({"role": "user", "content": "into nowhere"})
    assert moved is not None
    assert words_in(moved) == ["one", "two", "three"]
    assert words_in(log) == ["one", "two"]


def test_a_reader_in_the_way_takes_nothing_from_either_log(log: Path, backup: Path) -> None:
    with open_memory(log) as memory, closing(sqlite3.connect(log)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM stored_events").fetchall()
        # It keeps what comes now in the write-ahead log.
        memory.conversation("t").append({"role": "user", "content": "three"})
        moved = restore_log(backup, log, force=True).moved_aside
        assert not Path(f"{log}-wal").exists() or not Path(f"{log}-wal").stat().st_size
        assert words_in(log) == ["one", "two"]
    assert moved is not None
    assert words_in(moved) == ["one", "two", "three"]


@pytest.mark.slow
def test_another_process_that_had_it_open_is_told(log: Path, backup: Path) -> None:
    program = f"""
from refold.infrastructure.bootstrap import open_memory
with open_memory({str(log)!r}) as memory:
    conversation = memory.conversation("t")
    conversation.append({{"role": "user", "content": "three"}})
    print("ready", flush=True)
    input()
    conversation.append({{"role": "user", "content": "into nowhere"}})
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        restored = restore_log(backup, log, force=True)
        _, err = other.communicate("\n", timeout=60)
    assert "LogGone" in err
    assert words_in(log) == ["one", "two"]
    assert restored.moved_aside is not None
    assert words_in(restored.moved_aside) == ["one", "two", "three"]


def test_a_writer_that_does_not_let_go_is_not_overtaken(
    log: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refold.infrastructure.maintenance.restore.LOCK_TIMEOUT", 0.1)
    before = log.read_bytes()
    lock = WriteLock(Path(f"{log}.lock"), 1)
    with lock.held(), pytest.raises(LogBusy):
        restore_log(backup, log, force=True)
    lock.close()
    assert log.read_bytes() == before


def test_a_damaged_backup_changes_nothing(log: Path, backup: Path, tmp_path: Path) -> None:
    set_state(backup, 2, b"damaged")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(BackupDamaged, match="event 2") as refused:
        restore_log(backup, log, force=True)
    assert refused.value.damage
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert before == after


def test_a_backup_that_lost_its_end_changes_nothing(log: Path, backup: Path) -> None:
    execute(backup, "DELETE FROM stored_events WHERE originator_version=2")
    with pytest.raises(LogError):
        restore_log(backup, log, force=True)
    assert words_in(log) == ["one", "two"]


def test_what_is_no_backup_is_refused(log: Path, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("something else, and long enough to be looked at " * 30)
    with closing(sqlite3.connect(tmp_path / "other.db")) as other, other:
        other.execute("CREATE TABLE mine (x)")
    (tmp_path / "empty.db").touch()
    for name, error in (
        ("text.db", NotARefoldLog),
        ("other.db", NotARefoldLog),
        ("empty.db", LogNotFound),
        ("none.db", LogNotFound),
        ("agent.db", TargetExists),
        (".", NotARefoldLog),
    ):
        with pytest.raises(error):
            restore_log(tmp_path / name, log, force=True)
    assert words_in(log) == ["one", "two"]


def test_a_log_that_cannot_be_read_at_all_is_replaced_too(log: Path, backup: Path) -> None:
    log.write_bytes(b"no database " * 500)
    restored = restore_log(backup, log, force=True)
    assert restored.unread == (restored.moved_aside,)
    assert words_in(log) == ["one", "two"]


def test_read_models_and_snapshots_are_made_anew(tmp_path: Path) -> None:
    log = tmp_path / "agent.db"
    with open_memory(log, window=8_000) as memory:
        memory.conversation("t").append(talk(40), recorded=True)
        memory.conversation("t").compact()
        shown = memory.conversation("t").context().messages
        memory.backup(tmp_path / "backup.db")
        memory.conversation("t").append({"role": "user", "content": SECRET})
        assert len(memory.conversation("t").messages()) == 161
        assert memory.search(SECRET)
    restore_log(tmp_path / "backup.db", log, force=True)
    assert rows(log, "stored_snapshots") == []
    assert not any(SECRET.encode() in p.read_bytes() for p in tmp_path.glob("agent.views*"))
    assert list(tmp_path.glob("agent.recall.db")) == []
    with open_memory(log, window=8_000) as memory:
        assert memory.conversation("t").context().messages == shown
        assert len(memory.conversation("t").messages()) == 160


def test_a_damaged_snapshot_keeps_nobody_from_backing_up_and_restoring(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "agent.db")
    backup = kept(log, tmp_path / "backup.db")
    execute(log, "UPDATE stored_snapshots SET state=x'00'")
    kept(log, tmp_path / "other.db")
    execute(backup, "UPDATE stored_snapshots SET state=x'00'")
    restore_log(backup, log, force=True)
    assert len(words_in(log)) == 61


def test_a_log_that_is_encrypted(tmp_path: Path) -> None:
    log, backup, key = tmp_path / "agent.db", tmp_path / "backup.db", b"k" * 32
    with open_memory(log, encryption_key=key) as memory:
        memory.conversation("t").append({"role": "user", "content": SECRET})
        memory.backup(backup)
        assert memory.stats().frames[0].name == "aes"
        memory.conversation("t").erase(0)
    assert SECRET.encode() not in backup.read_bytes()
    with pytest.raises(LogLocked):
        restore_log(backup, log, force=True)
    restored = restore_log(backup, log, force=True, encryption_key=key)
    assert len(restored.erased_again) == 1
    with open_memory(log, encryption_key=key) as memory:
        assert memory.verify().ok
        assert SECRET not in memory.conversation("t").messages()[0].text


def test_a_message_that_was_erased_since_does_not_come_back(tmp_path: Path) -> None:
    log = filled(tmp_path / "agent.db", "one", SECRET, "three")
    backup = kept(log, tmp_path / "backup.db")
    with open_memory(log) as memory:
        memory.conversation("t").erase(1)
    restored = restore_log(backup, log, force=True)
    assert restored.erased_again == (ErasedAgain(thread_id="t", position=1),)
    assert words_in(log)[::2] == ["one", "three"]
    held = [p.name for p in tmp_path.iterdir() if SECRET.encode() in p.read_bytes()]
    assert held == ["backup.db"]


def test_many_that_were_erased_since_are_erased_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(tmp_path / "agent.db", *(f"{SECRET} {number}" for number in range(6)))
    with open_memory(log) as memory:
        memory.conversation("u").append({"role": "user", "content": SECRET})
        memory.conversation("t").fork(at=3, thread_id="v")
    backup = kept(log, tmp_path / "backup.db")
    with open_memory(log) as memory:
        memory.conversation("t").erase([4, 1], reason="asked")
        memory.conversation("t").erase([5, 3])
        memory.erase_conversation("u")
    cleaned = list[object]()

    def counted(core: Core) -> object:
        cleaned.append(core)
        return clean_up(core)

    monkeypatch.setattr("refold.application.erasure.erasing.clean_up", counted)
    again = restore_log(backup, log, force=True).erased_again
    erased = [("t", 1), ("t", 3), ("t", 4), ("t", 5), ("u", None)]
    assert {(applied.thread_id, applied.position) for applied in again} == {*erased}
    assert len(again) == len(erased)
    assert len(cleaned) == 1
    there = [f"{SECRET} {number}" for number in (0, 2)]
    assert [words for words in words_in(log) if SECRET in words] == there
    assert [words for words in words_in(log, "v") if SECRET in words] == there
    for place in tmp_path.glob("agent.db*"):
        assert not [n for n in (1, 3, 4, 5) if f"{SECRET} {n}".encode() in place.read_bytes()]


def test_nor_does_it_from_a_later_backup(tmp_path: Path) -> None:
    log = filled(tmp_path / "agent.db", "one")
    early = kept(log, tmp_path / "early.db")
    late = kept(filled(log, SECRET), tmp_path / "late.db")
    with open_memory(log) as memory:
        memory.conversation("t").erase(1)
    assert restore_log(early, log, force=True).erased_again == ()
    # The log knows nothing of that message now; the one that was moved aside does.
    assert restore_log(late, log, force=True).erased_again
    assert SECRET not in words_in(log)


def test_a_conversation_that_was_erased_since_does_not_come_back(tmp_path: Path) -> None:
    log = filled(tmp_path / "agent.db", SECRET)
    backup = kept(log, tmp_path / "backup.db")
    with open_memory(log) as memory:
        memory.erase_conversation("t")
    restored = restore_log(backup, log, force=True)
    assert restored.erased_again == (ErasedAgain(thread_id="t", position=None),)
    assert SECRET.encode() not in log.read_bytes()
    with open_memory(log) as memory:
        assert list(memory.conversations()) == []


def test_a_conversation_of_the_same_name_in_another_history_stays(tmp_path: Path) -> None:
    log = filled(tmp_path / "agent.db", "one")
    other = kept(filled(tmp_path / "other.db", "something else"), tmp_path / "backup.db")
    with open_memory(log) as memory:
        memory.erase_conversation("t")
    assert restore_log(other, log, force=True).erased_again == ()
    assert words_in(log) == ["something else"]


def test_an_erasure_in_another_history_touches_nothing(tmp_path: Path) -> None:
    log = filled(tmp_path / "agent.db", "one")
    other = kept(filled(tmp_path / "other.db", "something else"), tmp_path / "backup.db")
    with open_memory(log) as memory:
        memory.conversation("t").erase(0)
    assert restore_log(other, log, force=True).erased_again == ()
    assert words_in(log) == ["something else"]


def test_the_command_says_what_it_did(tmp_path: Path, refold: Refold, stored: Path) -> None:
    assert refold("backup", "copy.db").code == 0
    assert "TargetExists" in refold("restore", "copy.db").err
    ran = refold("restore", "copy.db", "--force")
    assert ran.code == 0
    assert "agent.replaced-" in ran.out
    assert refold("verify").code == 0
    answer = refold("restore", "copy.db", "--db", "new.db", "--json").answer
    assert (answer["events"], answer["moved_aside"]) == (len(rows(stored)), None)
    assert refold("restore", "none.db", "--db", "new2.db").code == 2
    assert not (tmp_path / "new2.db").exists()


def test_an_erasure_names_the_logs_that_were_moved_aside(tmp_path: Path) -> None:
    log = filled(tmp_path / "agent.db", "one", SECRET, "three")
    backup = kept(log, tmp_path / "backup.db")
    restored = restore_log(backup, log, force=True)
    with open_memory(log) as memory:
        report = memory.conversation("t").erase(1)
        assert report.earlier_logs == (str(restored.moved_aside),)
        assert not report.complete
        assert SECRET.encode() in Path(report.earlier_logs[0]).read_bytes()
        Path(report.earlier_logs[0]).unlink()
        assert memory.conversation("t").erase(1).complete


def linked(path: Path) -> Path:
    """A link to a file, in another folder."""
    link = path.parent / "links" / "latest.db"
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(path)
    return link


def test_a_link_to_a_backup_that_lost_its_end_changes_nothing(log: Path, backup: Path) -> None:
    execute(backup, "DELETE FROM stored_events WHERE originator_version=2")
    with pytest.raises(LogError):
        restore_log(linked(backup), log, force=True)
    assert words_in(log) == ["one", "two"]
    lost = salvage_file(linked(backup), backup.with_name("salvaged.db")).lost
    assert [one.version for one in lost] == [2]


def test_a_link_to_a_log_that_was_copied_with_its_write_ahead_log(tmp_path: Path) -> None:
    with open_memory(tmp_path / "live.db") as memory:
        for word in ("one", "two"):
            memory.conversation("t").append({"role": "user", "content": word}, recorded=True)
        for suffix in ("", "-wal", ".anchor"):
            shutil.copy(f"{tmp_path}/live.db{suffix}", f"{tmp_path}/copied.db{suffix}")
    restore_log(linked(tmp_path / "copied.db"), tmp_path / "new.db")
    assert words_in(tmp_path / "new.db") == ["one", "two"]


def test_a_log_that_is_salvaged_through_a_link_has_its_anchor_next_to_it(
    log: Path, tmp_path: Path
) -> None:
    link = linked(tmp_path / "new.db")
    salvage_file(log, link)
    assert anchor_path(tmp_path / "new.db").exists()
    assert [path.name for path in link.parent.iterdir()] == [link.name]
