"""Damage of the log is never served silently: it is an error that names the thread and the version."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from refold.application.errors import LogBehindAnchor, LogDamaged, NewerLog
from refold.infrastructure.event_store.envelope import Place, parse_frame, seal
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.log_files import execute, flipped, log_of, rows, say, set_state, words_of

FIVE = ("one", "two", "three", "four", "five")
Damage = Callable[[Path], None]


def blob(path: Path, version: int) -> bytes:
    return rows(path)[version - 1][3]


def flip_content(path: Path, version: int = 3) -> None:
    state = blob(path, version)
    set_state(path, version, flipped(state, state.index(b'"content"') + 12))


def swap_rows(path: Path, first: int = 2, second: int = 3) -> None:
    """The two events change places."""
    move = "UPDATE stored_events SET originator_version=? WHERE originator_version=?"
    execute(path, move, (99, first))
    execute(path, move, (first, second))
    execute(path, move, (second, 99))


def swap_payloads(path: Path, first: int = 2, second: int = 3) -> None:
    """Each frame keeps its place and gets the other's payload."""
    (head1, payload1), (head2, payload2) = (blob(path, v).split(b"\n", 1) for v in (first, second))
    set_state(path, first, head1 + b"\n" + payload2)
    set_state(path, second, head2 + b"\n" + payload1)


def delete_row(path: Path, version: int = 3) -> None:
    execute(path, "DELETE FROM stored_events WHERE originator_version=?", (version,))


def close_gap(path: Path) -> None:
    """An event is taken out and those after it move up."""
    delete_row(path)
    for version in (4, 5):
        execute(
            path,
            "UPDATE stored_events SET originator_version=? WHERE originator_version=?",
            (version - 1, version),
        )


def foreign_event(path: Path) -> None:
    """The third event of another log, whole, in the place of ours."""
    other = log_of(path.with_name("other.db"), *FIVE)
    set_state(path, 3, blob(other, 3))


def rename(path: Path) -> None:
    """A whole conversation under another name."""
    execute(path, "UPDATE stored_events SET originator_id='u'")


def other_name_of_event(path: Path) -> None:
    execute(
        path, "UPDATE stored_events SET topic='conversation_labelled' WHERE originator_version=3"
    )


def no_bytes(path: Path) -> None:
    set_state(path, 3, b"")


def null(path: Path) -> None:
    set_state(path, 3, None)


def text_for_bytes(path: Path) -> None:
    set_state(path, 3, "hello")


def shape_zero(path: Path) -> None:
    set_state(path, 3, re.sub(rb"\Arefold1 \d+ ", b"refold1 0 ", blob(path, 3)))


def early_time(path: Path) -> None:
    set_state(path, 3, blob(path, 3).replace(b" 2026-", b" 2025-"))


CASES: list[tuple[Damage, int, str]] = [
    (flip_content, 3, "digest"),
    (swap_rows, 2, "reordered"),
    (swap_payloads, 2, "digest"),
    (delete_row, 3, "gap"),
    (close_gap, 3, "digest"),
    (foreign_event, 3, "foreign"),
    (other_name_of_event, 3, "digest"),
    (no_bytes, 3, "digest"),
    (null, 3, "digest"),
    (text_for_bytes, 3, "digest"),
    (shape_zero, 3, "digest"),
    (early_time, 3, "digest"),
]
IDS = [damage.__name__ for damage, _, _ in CASES]


def damaged(tmp_path: Path, damage: Damage) -> Path:
    path = log_of(tmp_path / "a.db", *FIVE)
    damage(path)
    return path


@pytest.mark.slow(but=["delete_row", "no_bytes"])
@pytest.mark.parametrize(("damage", "version", "kind"), CASES, ids=IDS)
def test_a_damaged_conversation_is_not_loaded(
    tmp_path: Path, damage: Damage, version: int, kind: str
) -> None:
    del kind
    log = SQLiteLog(damaged(tmp_path, damage))
    with pytest.raises(LogDamaged) as caught:
        log.load("t")
    assert (caught.value.thread_id, caught.value.version) == ("t", version)
    assert "refold verify" in str(caught.value)
    log.close()


@pytest.mark.slow(but=["shape_zero", "flip_content"])
@pytest.mark.parametrize(("damage", "version", "kind"), CASES, ids=IDS)
def test_nothing_is_appended_to_a_damaged_conversation(
    tmp_path: Path, damage: Damage, version: int, kind: str
) -> None:
    del version, kind
    path = damaged(tmp_path, damage)
    before = rows(path)
    log = SQLiteLog(path)
    with pytest.raises(LogDamaged):
        say(log, "more")
    assert rows(path) == before
    say(log, "hello", thread_id="another")
    assert words_of(log, "another") == ["hello"]
    log.close()


@pytest.mark.slow(but=["swap_payloads", "null"])
@pytest.mark.parametrize(("damage", "version", "kind"), CASES, ids=IDS)
def test_the_check_names_the_first_event_that_is_wrong_and_goes_on(
    tmp_path: Path, damage: Damage, version: int, kind: str
) -> None:
    log = SQLiteLog(damaged(tmp_path, damage))
    say(log, "fine", thread_id="another")
    found = list(log.check())
    assert (found[0].place, found[0].thread_id, found[0].version) == ("log", "t", version)
    assert found[0].kind == kind
    assert all(d.thread_id == "t" for d in found)
    log.close()


@pytest.mark.slow(but=["delete_row", "no_bytes"])
@pytest.mark.parametrize(("damage", "version", "kind"), CASES, ids=IDS)
def test_single_events_of_a_damaged_conversation_are_not_read(
    tmp_path: Path, damage: Damage, version: int, kind: str
) -> None:
    del version, kind
    log = SQLiteLog(damaged(tmp_path, damage))
    with pytest.raises(LogDamaged):
        log.read("t", 1, 5)
    log.close()


def test_a_conversation_under_another_name_is_not_believed(tmp_path: Path) -> None:
    log = SQLiteLog(damaged(tmp_path, rename))
    with pytest.raises(LogDamaged) as caught:
        log.load("u")
    assert caught.value.thread_id == "u"
    log.close()


@pytest.mark.slow(but="5")
@pytest.mark.parametrize("version", [3, 5])
def test_no_flipped_byte_changes_what_is_served(tmp_path: Path, version: int) -> None:
    """Every other byte of frame and content; the newest event has no successor to vouch for it."""
    path = log_of(tmp_path / "a.db", *FIVE)
    state = blob(path, version)
    served: set[int] = set()
    for at in range(0, len(state), 2):
        set_state(path, version, flipped(state, at))
        log = SQLiteLog(path)
        try:
            assert words_of(log) == list(FIVE)
            served.add(at)
        except (LogDamaged, NewerLog):
            pass
        finally:
            log.close()
    # Served whole or not at all; only the time of the newest event is not vouched for yet.
    time = state.split(b" ")[2]
    begin = state.index(time)
    assert served <= (set(range(begin, begin + len(time))) if version == 5 else set())


@pytest.mark.parametrize("damage", [flip_content, delete_row, swap_rows])
def test_an_open_log_does_not_serve_damage_after_its_memory_is_gone(
    tmp_path: Path, damage: Damage
) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    log = SQLiteLog(path)
    assert words_of(log) == list(FIVE)
    damage(path)
    fresh = SQLiteLog(path)
    with pytest.raises(LogDamaged):
        fresh.load("t")
    fresh.close()
    log.close()


def flip_newest(path: Path) -> None:
    flip_content(path, 5)


def delete_newest(path: Path) -> None:
    delete_row(path, 5)


def replace_newest(path: Path) -> None:
    """The newest event of another log, which follows another event."""
    other = log_of(path.with_name("other.db"), *FIVE[:4], "else")
    set_state(path, 5, blob(other, 5))


@pytest.mark.parametrize("damage", [delete_newest, replace_newest])
def test_an_open_log_notices_that_its_newest_event_was_changed(
    tmp_path: Path, damage: Damage
) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    log = SQLiteLog(path)
    log.load("t")
    damage(path)
    before = rows(path)
    with pytest.raises(LogDamaged) as caught:
        log.load("t")
    assert caught.value.version == 5
    with pytest.raises((LogDamaged, LogBehindAnchor)):
        say(log, "more")
    assert rows(path) == before
    log.close()


def test_the_check_notices_a_newest_event_that_is_missing_by_its_key(tmp_path: Path) -> None:
    log = SQLiteLog(damaged(tmp_path, delete_newest), anchor=False)
    [found] = log.check()
    assert (found.thread_id, found.version, found.kind) == ("t", 5, "missing")
    log.close()


def test_a_key_of_a_missing_event_is_told_as_damage(tmp_path: Path) -> None:
    log = SQLiteLog(damaged(tmp_path, delete_newest), anchor=False)
    with pytest.raises(LogDamaged):
        say(log, "five", key="t-4")
    log.close()


def test_the_check_notices_an_index_of_keys_that_differs(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    execute(path, "DELETE FROM message_keys WHERE key='t-2'")
    log = SQLiteLog(path)
    assert [(d.thread_id, d.kind) for d in log.check()] == [("t", "keys")]
    log.close()


def test_the_check_finds_all_damage_of_all_conversations(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    log_of(path, *FIVE, thread_id="u")
    for number in (2, 4):
        execute(
            path,
            "UPDATE stored_events SET state=? WHERE originator_version=?",
            (b"rubbish", number),
        )
    log = SQLiteLog(path)
    bad = {(d.thread_id, d.version) for d in log.check() if d.kind == "digest"}
    assert bad == {("t", 2), ("t", 4), ("u", 2), ("u", 4)}
    log.close()


def test_an_event_of_a_newer_version_is_told_as_such(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    old = parse_frame(blob(path, 5))
    place = Place("t", 5, "message_appended")
    set_state(path, 5, seal(place, 9, old.at, old.salt, old.previous, old.payload)[1])
    log = SQLiteLog(path)
    with pytest.raises(NewerLog, match="install a newer refold"):
        log.load("t")
    found = list(log.check())
    assert found[0].kind == "newer"
    assert {d.version for d in found} == {5}
    log.close()
