"""A salvage copies every intact event of a damaged log into a new one, and says what was lost."""

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import refold
from refold.application.errors import (
    LogDamaged,
    LogNotFound,
    NotARefoldLog,
    TargetExists,
)
from refold.application.maintenance.maintenance_results import Salvaged
from refold.domain.errors import UnknownMessage
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.maintenance.restore import salvage_file
from refold.testing.request_judge import violations
from tests.support.log_files import execute, flipped, log_of, rows, set_state, words_of

FIVE = ("one", "two", "three", "four", "five")


def refusals(chat: refold.ConversationMemory) -> list[str]:
    """What the provider would say against a request now; a call may still wait for its result."""
    request = {"messages": chat.context().messages}
    return violations(request, allow_pending_at_end=True)


def spoil(path: Path, *versions: int) -> None:
    for version in versions:
        state = rows(path)[version - 1][3]
        set_state(path, version, flipped(state, len(state) - 3))


def salvaged(path: Path) -> tuple[Salvaged, Path]:
    before = {p: p.read_bytes() for p in path.parent.iterdir() if p.name.startswith("a.db")}
    to = path.with_name("new.db")
    made = salvage_file(path, to)
    assert {p: p.read_bytes() for p in before} == before
    return made, to


def test_of_an_intact_log_everything_is_copied_with_its_times_and_keys(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    made, to = salvaged(path)
    assert made.complete
    assert (made.events, made.conversations) == (5, 1)
    old, new = SQLiteLog(path), SQLiteLog(to)
    assert list(new.scan()) == list(old.scan())
    assert new.versions_of_keys("t", ["t-0", "t-4"]) == {"t-0": 1, "t-4": 5}
    assert list(new.check()) == []
    old.close()
    new.close()


@pytest.mark.parametrize("version", range(1, 6))
def test_a_damaged_event_leaves_its_place_and_the_others_keep_theirs(
    tmp_path: Path, version: int
) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    spoil(path, version)
    made, to = salvaged(path)
    assert [(e.thread_id, e.version, e.position, e.kind) for e in made.lost] == [
        ("t", version, version - 1, "digest")
    ]
    with refold.open(to) as memory:
        assert memory.verify().ok
        chat = memory.conversation("t")
        assert chat.version == 5
        assert [m.position for m in chat.messages()] == [p for p in range(5) if p != version - 1]
        assert chat.append({"role": "user", "content": "on"}).messages[0].position == 5
        assert refusals(chat) == []


def test_what_was_lost_is_neither_read_nor_pinned_and_the_others_are(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    spoil(path, 2)
    _, to = salvaged(path)
    with refold.open(to) as memory:
        chat = memory.conversation("t")
        for act in (chat.read, chat.pin):
            with pytest.raises(refold.UnknownMessage, match="was lost when the log was damaged"):
                act(1)
        assert [f.position for f in chat.explain(1)] == [2, 3, 4]
        assert [line["position"] for line in chat.export()] == [0, 2, 3, 4]
        assert [m.position for m in chat.fork(at=4).messages()] == [0, 2, 3]
        assert chat.erase([1, 3]).positions == (3,)
        assert memory.verify().ok


def test_deleted_events_leave_their_places(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    execute(path, "DELETE FROM stored_events WHERE originator_version IN (2, 3)")
    made, to = salvaged(path)
    assert made.events == 3
    assert ("t", 2, "gap", 1) in [(e.thread_id, e.version, e.kind, e.position) for e in made.lost]
    log = SQLiteLog(to)
    assert words_of(log) == ["one", "four", "five"]
    assert log.load("t").state.length == 5
    log.close()


def test_events_that_are_merely_out_of_order_are_all_copied(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    execute(path, "UPDATE stored_events SET rowid=90 WHERE originator_version=2")
    made, to = salvaged(path)
    assert made.events == 5
    log = SQLiteLog(to)
    assert words_of(log) == list(FIVE)
    assert list(log.check()) == []
    log.close()


def test_a_target_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    (tmp_path / "new.db").write_bytes(b"mine")
    with pytest.raises(TargetExists, match=r"give another path$"):
        salvage_file(path, tmp_path / "new.db")
    assert (tmp_path / "new.db").read_bytes() == b"mine"


def test_reading_back_a_message_that_was_lost_says_so(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    spoil(path, 2)
    _, to = salvaged(path)
    with refold.open(to) as memory:
        chat = memory.conversation("t")
        assert chat.read(2).message.content == "three"
        with pytest.raises(UnknownMessage, match="position 1 was lost"):
            chat.read(1)


def test_nothing_is_salvaged_from_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.db").write_bytes(b"")
    (tmp_path / "rubbish.db").write_bytes(b"no database at all " * 1_000)
    with pytest.raises(LogNotFound):
        salvage_file(tmp_path / "empty.db", tmp_path / "new.db")
    with pytest.raises(LogDamaged):
        salvage_file(tmp_path / "rubbish.db", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def conversation(path: Path) -> Path:
    with refold.open(path, window=8_000) as memory:
        for thread_id in ("t", "u"):
            chat = memory.conversation(thread_id)
            for number in range(30):
                call = {"type": "tool_use", "id": f"c{number}", "name": "n", "input": {"n": number}}
                result = {
                    "type": "tool_result",
                    "tool_use_id": f"c{number}",
                    "content": "line\n" * 90,
                }
                chat.append({"role": "user", "content": f"do {number} " * 30})
                chat.append({"role": "assistant", "content": [call]})
                chat.append({"role": "user", "content": [result]})
                chat.append({"role": "assistant", "content": f"done {number}"})
                chat.context()
            chat.pin("never push")
            chat.compact(force=True)
            chat.append({"role": "user", "content": "after"})
    return path


def zero_page(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    page = draw.randrange(5, len(content) // 4096)
    content[page * 4096 : (page + 1) * 4096] = bytes(4096)
    path.write_bytes(content)


def garble_bytes(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(40):
        content[draw.randrange(4096, len(content))] = draw.randrange(256)
    path.write_bytes(content)


def drop_rows(path: Path, draw: random.Random) -> None:
    for _ in range(9):
        execute(path, "DELETE FROM stored_events WHERE rowid=?", (draw.randrange(1, 240),))


def cut_file(path: Path, draw: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(len(content) // 2, len(content)) // 4096 * 4096])


@pytest.mark.slow(but=["zero_page-0", "zero_page-1"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("harm", [zero_page, garble_bytes, drop_rows, cut_file])
def test_a_salvaged_log_loads_is_whole_and_renders_legal_requests(
    tmp_path: Path, harm: Callable[[Path, random.Random], None], seed: int
) -> None:
    path = conversation(tmp_path / "a.db")
    with refold.open(path, window=8_000) as memory:
        said = {t: {m.position: m.text for m in memory.conversation(t).messages()} for t in "tu"}
    harm(path, random.Random(seed))
    try:
        made, to = salvaged(path)
    except LogDamaged:
        assert harm is cut_file  # Not even the table of tables can be read.
        return
    with refold.open(to, window=8_000, compaction_wait=0) as memory:
        found = memory.verify()
        assert found.damage == ()
        assert found.events >= made.events
        for row in memory.conversations():
            chat = memory.conversation(row.thread_id)
            assert refusals(chat) == []
            for message in chat.messages():
                assert message.text == said[row.thread_id][message.position]
            chat.append({"role": "user", "content": "and on"})
            chat.compact(force=True)
            assert refusals(chat) == []
        assert memory.verify().ok


def truncated(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def long_log(folder: Path) -> Path:
    """A log of several conversations, checkpointed into its file."""
    path = folder / "long.db"
    with refold.open(path) as memory:
        for name in ("one", "two", "three"):
            chat = memory.conversation(name)
            for number in range(40):
                chat.append({"role": "user", "content": f"{name} {number} " + "words " * 200})
        memory.backup(folder / "a.db")
    return folder / "a.db"


@pytest.mark.slow(but="40960")
@pytest.mark.parametrize("lost", [4_096, 5_000, 40_960])
def test_a_log_that_lost_its_end_is_salvaged_up_to_there(tmp_path: Path, lost: int) -> None:
    path = long_log(tmp_path)
    log = SQLiteLog(path)
    whole = len(list(log.scan()))
    log.close()
    truncated(path, path.stat().st_size - lost)
    with pytest.raises(LogDamaged, match="refold salvage") as refused, refold.open(path) as memory:
        memory.conversation("one").append({"role": "user", "content": "x"})
    assert "event 0" not in str(refused.value)
    made, to = salvaged(path)
    assert not made.complete
    # A page of 4,096 bytes has at most three of these messages.
    assert made.events >= whole - 3 * (lost // 4_096 + 2)
    log = SQLiteLog(to)
    assert len(list(log.scan())) >= made.events
    assert list(log.check()) == []
    log.close()


def test_what_cannot_be_read_at_all_sends_nobody_in_a_circle(tmp_path: Path) -> None:
    path = long_log(tmp_path)
    path.write_bytes(b"x" * 8_192)
    with pytest.raises(LogDamaged) as refused:
        salvage_file(path, tmp_path / "new.db")
    assert "refold verify" not in str(refused.value)
    assert "refold salvage" not in str(refused.value)


@pytest.mark.parametrize("page_size", [b"\x10\x00", b"\xff\xff"])
def test_a_header_that_says_too_many_pages_fills_no_disk(tmp_path: Path, page_size: bytes) -> None:
    path = log_of(tmp_path / "a.db", *FIVE)
    with path.open("r+b") as file:
        file.seek(16)
        file.write(page_size)
        for place in (24, 92):
            file.seek(place)
            file.write(b"\0\0\0\1")
        file.seek(28)
        file.write(b"\xff\xff\xff\xfe")
    started = time.monotonic()
    with suppress(refold.RefoldError, sqlite3.Error):
        salvage_file(path, tmp_path / "new.db")
    assert time.monotonic() - started < 20
    assert sum(one.stat().st_blocks for one in tmp_path.rglob("*")) * 512 < 20_000_000


def test_a_folder_is_no_log_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(NotARefoldLog, match="is a folder"):
        salvage_file(tmp_path / "folder", tmp_path / "new.db")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


SALVAGE_ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
import refold
from refold.infrastructure.maintenance.restore import salvage_file
log, new = map(Path, sys.argv[1:])
with refold.open(log) as memory:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    for salvage in (memory.salvage, lambda to: salvage_file(log, to)):
        try:
            salvage(new)
        except refold.LogError as error:
            print(error)
"""


def test_a_disk_that_is_full_gives_no_half_log(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with refold.open(path) as memory:
        for n in range(100):
            memory.conversation("t").append({"role": "user", "content": f"{n} " * 2_000})
    before = sorted(file.name for file in tmp_path.iterdir())
    new = tmp_path / "new.db"
    command = [sys.executable, "-c", SALVAGE_ON_A_FULL_DISK, str(path), str(new)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    # The disk is one that is full because the process may write no larger files.
    assert [line.partition(" would be")[0] for line in said.splitlines()] == [
        f"a file of {new}"
    ] * 2
    assert sorted(file.name for file in tmp_path.iterdir()) == before
