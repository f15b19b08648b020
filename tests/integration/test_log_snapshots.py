"""Snapshots of the log: a convenience that is never believed against the events."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import refold
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.errors import LogDamaged, LogError
from refold.infrastructure.event_store.store import SQLiteLog
from tests.support.fake_ports import core_of
from tests.support.log_files import compacted_log, execute, flipped, rows, say, set_state, with_chat

Damage = Callable[[Path], None]


def blob(path: Path, version: int) -> bytes:
    return rows(path)[version - 1][3]


def snapshot(path: Path) -> tuple[int, bytes]:
    [(_, version, _, state)] = rows(path, "stored_snapshots")
    return version, state


def test_a_compacted_conversation_has_a_snapshot_and_loads_the_same_without(tmp_path: Path) -> None:
    path = compacted_log(tmp_path / "a.db")
    with_it, without = SQLiteLog(path), SQLiteLog(path)
    one = with_it.load("t")
    assert 50 < snapshot(path)[0] <= one.state.version
    execute(path, "DELETE FROM stored_snapshots")
    assert without.load("t") == one
    with_it.close()
    without.close()


def test_a_load_from_a_snapshot_does_not_read_what_is_covered(tmp_path: Path) -> None:
    path = compacted_log(tmp_path / "a.db")
    expected = contents(path)
    set_state(path, 1, b"rubbish")
    assert contents(path) == expected
    log = SQLiteLog(path)
    with pytest.raises(LogDamaged) as caught:
        log.read("t", 1, 3)
    assert caught.value.version == 1
    assert [d.version for d in log.check()][:1] == [1]
    log.close()


def contents(path: Path) -> object:
    log = SQLiteLog(path)
    loaded = log.load("t")
    log.close()
    return loaded


def flip_snapshot(path: Path) -> None:
    version, state = snapshot(path)
    set_state(path, version, flipped(state, len(state) - 5), "stored_snapshots")


def rubbish_snapshot(path: Path) -> None:
    set_state(path, snapshot(path)[0], b"rubbish", "stored_snapshots")


def empty_snapshot(path: Path) -> None:
    set_state(path, snapshot(path)[0], None, "stored_snapshots")


def newer_snapshot(path: Path) -> None:
    version, state = snapshot(path)
    later = state.replace(b"refold1 1 ", b"refold1 2 ")
    set_state(path, version, later, "stored_snapshots")


def moved_snapshot(path: Path) -> None:
    execute(path, "UPDATE stored_snapshots SET originator_version=originator_version-1")


def snapshot_of_another_log(path: Path) -> None:
    other = compacted_log(path.with_name("other.db"))
    set_state(path, snapshot(path)[0], snapshot(other)[1], "stored_snapshots")


@pytest.mark.slow(but=["empty_snapshot", "newer_snapshot"])
@pytest.mark.parametrize(
    "damage",
    [
        flip_snapshot,
        rubbish_snapshot,
        empty_snapshot,
        newer_snapshot,
        moved_snapshot,
        snapshot_of_another_log,
    ],
)
def test_a_snapshot_that_does_not_fit_the_log_is_not_used(
    tmp_path: Path, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    path = compacted_log(tmp_path / "a.db")
    expected = contents(path)
    damage(path)
    with caplog.at_level(logging.WARNING, "refold"):
        assert contents(path) == expected
    log = SQLiteLog(path)
    say(log, "on")
    assert list(log.check()) == []
    log.close()


def test_a_damaged_snapshot_is_told_in_the_log_of_the_program(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = compacted_log(tmp_path / "a.db")
    flip_snapshot(path)
    with caplog.at_level(logging.WARNING, "refold"):
        contents(path)
    assert "damaged snapshot" in caplog.text


def test_a_kept_message_from_before_the_snapshot_is_not_exchanged_silently(tmp_path: Path) -> None:
    """A request of the running turn stays in the context and is read by itself."""
    path = kept_request(tmp_path / "a.db")
    assert snapshot(path)[0] > 2
    set_state(path, 1, blob(path, 2))
    log = SQLiteLog(path)
    with pytest.raises(LogError):
        log.load("t")
    log.close()


def kept_request(path: Path) -> Path:
    log = SQLiteLog(path)

    def play(conversation: ConversationMemory) -> None:
        conversation.append([{"role": "user", "content": "do it all"}] * 2)
        for number in range(30):
            use = {"type": "tool_use", "id": f"c{number}", "name": "n", "input": {"v": "x" * 100}}
            done = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "word " * 50}
            conversation.append(
                [{"role": "assistant", "content": [use]}, {"role": "user", "content": [done]}]
            )
        assert conversation.compact().outcome == "performed"

    with_chat(core_of(log), play)
    assert log.load("t").state.live[0].position == 0
    log.close()
    return path


def test_a_kept_round_comes_back_with_its_preview_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with refold.open(path, window=6_000) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "sort the log files"})
        for number in range(40):
            call_id = f"c{number}"
            call = {"type": "tool_use", "id": call_id, "name": "read", "input": {"n": number}}
            conversation.append({"role": "assistant", "content": [call]})
            size = 9_000 if number == 3 else 60
            result = {"type": "tool_result", "tool_use_id": call_id, "content": "line\n" * size}
            words = (
                [{"type": "text", "text": "stop: never touch billing.log"}] if number == 3 else []
            )
            conversation.append({"role": "user", "content": [result, *words]})
            conversation.context()
        shown = conversation.context()
        assert len(conversation.summaries()) > 1
        assert "never touch billing.log" in str(shown.messages)
        assert "refold://t/8" in str(shown.messages)
        assert shown.summary is not None
        assert {7, 8} <= set(shown.summary.coverage.exclusions)
    with refold.open(path, window=6_000) as memory:
        again = memory.conversation("t").context()
        assert (again.messages, again.tokens) == (shown.messages, shown.tokens)
