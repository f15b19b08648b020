"""A verification names conversation, version, kind and remedy of every damage, and repairs what it may."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import refold
from refold.application.errors import LogError
from refold.infrastructure.event_store.envelope import parse_frame
from refold.infrastructure.projection_store import projection_check
from refold.infrastructure.projection_store.projection import Content, begin
from refold.infrastructure.projection_store.tables import Tables
from refold.infrastructure.recall import segments
from refold.infrastructure.recall.segments import problem_of
from tests.support.command_line import Refold
from tests.support.log_files import execute, flipped, log_of, rows, set_state

BEGIN = "refold.infrastructure.projection_store.projection_check.begin"
FIVE = ("one", "two", "three", "four", "five")


def copied(path: Path) -> None:
    """An event at two places."""
    execute(
        path,
        "INSERT INTO stored_events SELECT originator_id, 6, topic, state FROM stored_events "
        "WHERE originator_version=2",
    )


def moved(path: Path) -> None:
    execute(path, "UPDATE stored_events SET rowid=90 WHERE originator_version=2")


def taken_out(path: Path) -> None:
    """An erasure that nobody recorded."""
    from refold.infrastructure.event_store.envelope import Place, erase

    before = parse_frame(rows(path)[2][3])
    remains = before.payload.replace(b"three", b"[gone]")
    set_state(path, 3, erase(Place("t", 3, "message_appended"), before, before.shape, remains))


def cut(path: Path) -> None:
    execute(path, "DELETE FROM stored_events WHERE originator_version=5")
    execute(path, "DELETE FROM message_keys WHERE originator_version=5")


CASES: list[tuple[Callable[[Path], None], int, str]] = [
    (copied, 6, "duplicate"),
    (moved, 2, "reordered"),
    (taken_out, 3, "erased"),
    (cut, 5, "behind"),
]


@pytest.mark.parametrize(("harm", "version", "kind"), CASES)
def test_each_kind_of_damage_is_named_with_its_place_and_what_can_be_done(
    tmp_path: Path, harm: Callable[[Path], None], version: int, kind: str
) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    harm(path)
    with refold.open(path) as memory:
        found = memory.verify()
        assert [(d.place, d.thread_id, d.version, d.kind) for d in found.damage] == [
            ("log", "t", version, kind)
        ]
        assert len(found.damage[0].remedy) > 15
        before = rows(path)
        assert not memory.verify(repair=True).ok
        assert rows(path) == before


def test_an_event_that_is_missing_before_a_damaged_last_one_is_named(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    execute(path, "DELETE FROM stored_events WHERE originator_version=4")
    execute(path, "DELETE FROM message_keys WHERE originator_version=4")
    execute(
        path,
        "UPDATE stored_events SET state=substr(state, 1, length(state) - 3) "
        "WHERE originator_version=5",
    )
    path.with_name("a.db.anchor").unlink()
    with refold.open(path) as memory:
        found = [(d.version, d.kind) for d in memory.verify().damage if d.place == "log"]
    assert (4, "gap") in found
    assert (5, "digest") in found


def test_erased_content_that_is_back_is_told(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    whole = rows(path)[1][3]
    with refold.open(path) as memory:
        memory.conversation("t").erase(1)
        assert memory.verify().ok
        set_state(path, 2, whole)
        [found] = memory.verify().damage
        assert (found.version, found.kind) == (2, "restored")
        assert "refold erase" in found.remedy


def test_a_page_that_cannot_be_read_is_told_and_hides_nothing_else(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", *(f"{n} " + "word " * 400 for n in range(20)))
    content = bytearray(path.read_bytes())
    state = rows(path)[10][3]
    at = content.index(state[-60:]) // 4096 * 4096
    content[at : at + 8] = b"\xff" * 8
    path.write_bytes(content)
    with refold.open(path) as memory:
        found = memory.verify()
    assert {"unreadable", "gap"} <= {d.kind for d in found.damage}
    assert found.events >= 15


def snapshot_flipped(path: Path) -> None:
    [(_, version, _, state)] = rows(path, "stored_snapshots")
    set_state(path, version, flipped(state, len(state) - 9), "stored_snapshots")


def stored(path: Path) -> Path:
    with refold.open(path, window=8_000) as memory:
        conversation = memory.conversation("t")
        for number in range(20):
            conversation.append({"role": "user", "content": f"check {number} please. " * 30})
            conversation.append({"role": "assistant", "content": f"{number} is fine. " * 30})
        assert conversation.compact().outcome == "performed"
        memory.conversations()
    return path


def test_a_damaged_snapshot_is_told_and_repaired(tmp_path: Path) -> None:
    path = stored(tmp_path / "a.db")
    snapshot_flipped(path)
    with refold.open(path) as memory:
        [found] = memory.verify().damage
        assert (found.place, found.thread_id, found.kind) == ("snapshots", "t", "snapshot")
        repaired = memory.verify(repair=True)
        assert repaired.ok
        assert "snapshot" in repaired.repaired[0]


def test_a_load_replaces_a_damaged_snapshot_by_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = stored(tmp_path / "a.db")
    snapshot_flipped(path)
    with refold.open(path, window=8_000) as memory:
        memory.conversation("t").context()
        assert memory.verify().ok
    assert len(rows(path, "stored_snapshots")) == 1
    told = [getattr(record, "event", "") for record in caplog.records]
    assert "snapshot.replaced" in told


def test_damaged_read_models_are_repaired_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = stored(tmp_path / "a.db")
    views = tmp_path / "a.views.db"
    execute(views, "UPDATE messages SET text='other' WHERE position=3")
    with refold.open(path) as memory:
        assert not memory.verify().ok
        repaired = memory.verify(repair=True)
        assert (repaired.ok, len(repaired.repaired)) == (True, 1)
        execute(views, "UPDATE messages SET text='other' WHERE position=3")
        # The read model says where the range begins, so this row is read.
        assert "other" not in [m.text for m in memory.conversation("t").messages(3)]
    told = [getattr(record, "event", "") for record in caplog.records]
    assert "views.rebuilt" in told


def test_a_lost_wal_is_told(tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    killed.mkdir()
    with refold.open(log_of(tmp_path / "a.db", *FIVE)) as memory:
        memory.conversation("t").append({"role": "user", "content": "newest"})
        for name in ("a.db", "a.db.anchor"):
            shutil.copy(tmp_path / name, killed / name)
    with refold.open(killed / "a.db") as memory:
        assert ("t", 6, "behind") in [
            (d.thread_id, d.version, d.kind) for d in memory.verify().damage
        ]


def test_commands_look_into_logs_that_cannot_be_opened(refold: Refold, tmp_path: Path) -> None:
    path = log_of(tmp_path / "agent.db", *FIVE)
    assert refold("verify").code == 0
    path.write_bytes(b"")
    ran = refold("verify")
    assert (ran.code, "empty" in ran.out) == (1, True)
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 9_000)
    ran = refold("verify")
    assert (ran.code, "Traceback" in ran.err) == (1, False)
    assert refold("salvage", "new.db").code == 2
    path.unlink()
    assert refold("verify").code == 1
    assert refold("anchor", "--accept").code == 0
    assert refold("verify").code == 2


@pytest.mark.parametrize("name", ["agent.views.db", "agent.recall.db"])
def test_a_derived_file_of_an_earlier_version_is_no_damage(tmp_path: Path, name: str) -> None:
    path = tmp_path / "agent.db"
    with refold.open(path) as memory:
        memory.conversation("t").append({"role": "user", "content": "the port is 5433"})
        assert memory.search("port").hits
        assert memory.conversations()
    with closing(sqlite3.connect(tmp_path / name, isolation_level=None)) as connection:
        connection.execute("DROP TABLE reading_from")
        assert [d.kind for d in _damage(path)] == ["missing", "unreadable"]
        connection.execute("PRAGMA user_version=1")
    assert _damage(path) == ()
    with refold.open(path) as memory:
        assert memory.search("port").hits
        assert memory.conversations()
        assert memory.verify().ok


def _damage(path: Path) -> tuple[refold.DamageReport, ...]:
    with refold.open(path) as memory:
        return memory.verify().damage


def test_an_erasure_while_the_rows_are_compared_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    positions = iter(range(5))

    def erase_first(content: Content, db: Tables) -> None:
        with refold.open(path) as other:
            other.conversation("t").erase(next(positions))
        begin(content, db)

    with refold.open(path) as memory:
        memory.conversation("t").recall("two")
        monkeypatch.setattr(BEGIN, erase_first)
        assert memory.verify().damage == ()


def test_damage_is_found_although_something_was_erased_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    positions = iter([0])

    def erase_once(content: Content, db: Tables) -> None:
        for position in positions:
            with refold.open(path) as other:
                other.conversation("t").erase(position)
                other.conversation("t").row()
            execute(tmp_path / "a.views.db", "UPDATE messages SET tokens=999 WHERE position=2")
        begin(content, db)

    with refold.open(path) as memory:
        memory.conversation("t").row()
        monkeypatch.setattr(BEGIN, erase_once)
        assert {one.place for one in memory.verify().damage} >= {"messages"}


def test_a_recall_index_that_grows_while_it_is_checked_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)

    def grow_first(db: Tables, segment: int, stop: int) -> str:
        with refold.open(path) as other:
            conversation = other.conversation("t")
            conversation.append([{"role": "user", "content": f"word {n}"} for n in range(600)])
            other.index()
        return problem_of(db, segment, stop)

    with refold.open(path) as memory:
        memory.index()
        monkeypatch.setattr("refold.infrastructure.recall.recall_index.problem_of", grow_first)
        assert memory.verify().damage == ()


def erasing_after(
    function: Callable[..., Any], conversation: refold.ConversationMemory, positions: Iterator[int]
) -> Callable[..., Any]:
    """The function, but each call also erases one of the messages, as another process would."""

    def wrapped(*given: object) -> object:
        found: Any = function(*given)
        found = [*found] if isinstance(found, Iterator) else found
        for position in positions:
            conversation.erase(position)
            break
        return found

    return wrapped


@pytest.mark.parametrize(
    ("module", "name", "times"),
    [
        (projection_check, "begin", 1),
        (projection_check, "begin", 2),
        (segments, "passages_between", 1),
    ],
)
def test_an_erasure_by_another_process_during_a_verification_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, times: int
) -> None:
    path = log_of(tmp_path / "a.db", *FIVE, *("more words",) * 200)
    with refold.open(path) as memory, refold.open(path) as other:
        assert memory.search("three").hits
        erasing = erasing_after(getattr(module, name), other.conversation("t"), iter(range(times)))
        monkeypatch.setattr(module, name, erasing)
        assert memory.verify().damage == ()
        monkeypatch.undo()
        assert {one.position for one in memory.conversation("t").messages() if one.erased} == {
            *range(times)
        }
        assert memory.verify().damage == ()


def run_short_of_memory(*_: object) -> None:
    raise MemoryError


@pytest.mark.parametrize("function", ["rows_of", "_damage_of_file"])
def test_too_little_memory_for_a_check_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    path = tmp_path / "agent.db"

    with refold.open(path) as memory:
        memory.conversation("t").append({"role": "user", "content": "the port is 5433"})
        memory.conversations()
        with monkeypatch.context() as short:
            short.setattr(projection_check, function, run_short_of_memory)
            with pytest.raises(LogError, match=r"read models .*there is not enough memory"):
                memory.verify()
        assert memory.verify().ok


def test_a_damaged_size_that_no_memory_can_hold_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.db"

    with refold.open(path) as memory:
        memory.conversation("t").append({"role": "user", "content": "the port is 5433"})
        memory.conversations()
        execute(tmp_path / "agent.views.db", "DROP INDEX messages_of_others")
        monkeypatch.setattr(projection_check, "rows_of", run_short_of_memory)
        assert ("views", "unreadable") in {(one.place, one.kind) for one in memory.verify().damage}
