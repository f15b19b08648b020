"""A flipped bit in the write-ahead log costs no message that is still intact, whatever is done next."""

import errno
import os
import random
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.infrastructure.maintenance.restore import (
    accept_lost,
    restore_log,
    salvage_file,
    verify_file,
)
from refold.infrastructure.write_ahead import examination
from refold.infrastructure.write_ahead.damaged_copies import damaged_copies
from refold.infrastructure.write_ahead.examination import examine
from tests.support.damaged_ahead import (
    FRAME,
    HEAD,
    ahead,
    copy_store,
    flip,
    killed_store,
    messages_of,
    places,
    texts_in,
)

COUNT = 40
DELIVERED = 140
KEY = "ab" * 32


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return killed_store(tmp_path_factory.mktemp("plain"), COUNT)


@pytest.fixture
def log(killed: Path, tmp_path: Path) -> Path:
    """A log of which a frame in the middle of the write-ahead log is damaged."""
    path = copy_store(killed, tmp_path)
    flip(ahead(path), ahead(path).stat().st_size // 2)
    return path


def seed(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if ".damaged-" not in p.name}


def opened(path: Path) -> None:
    refold.open(path).close()


def listed(path: Path) -> None:
    with refold.open(path) as memory:
        memory.conversations()


def verified(path: Path) -> None:
    with refold.open(path) as memory:
        memory.verify()


def appended(path: Path) -> None:
    with refold.open(path) as memory:
        memory.conversation("t").append({"role": "user", "content": "more"})


def backed_up(path: Path) -> None:
    with refold.open(path) as memory:
        memory.backup(path.with_name("backup.db"))


@pytest.mark.parametrize("act", [opened, listed, verified, appended, backed_up])
def test_every_use_is_refused_and_no_byte_is_changed(
    act: Callable[[Path], None], log: Path
) -> None:
    before = seed(log.parent)
    with pytest.raises(refold.WriteAheadDamaged, match=r"`refold salvage NEW.db --db .*a\.db`"):
        act(log)
    assert seed(log.parent) == before
    assert texts_in(log.parent, COUNT) == COUNT


def test_the_file_is_copied_aside_once_and_privately(log: Path) -> None:
    copies: list[Path | None] = []
    for _ in range(3):
        with pytest.raises(refold.WriteAheadDamaged) as refused:
            refold.open(log)
        copies.append(refused.value.copy)
    [copy] = damaged_copies(log)
    assert copies == [copy] * 3
    assert copy.read_bytes() == ahead(log).read_bytes()
    assert copy.stat().st_mode & 0o777 == 0o600


def test_a_damage_that_a_program_writes_on_behind_keeps_one_copy(killed: Path, log: Path) -> None:
    whole = ahead(log).read_bytes()
    ahead(log).write_bytes(whole[: -2 * FRAME])
    for content in (whole[: -2 * FRAME], whole):
        ahead(log).write_bytes(content)
        with pytest.raises(refold.WriteAheadDamaged):
            refold.open(log)
    [copy] = damaged_copies(log)
    assert copy.read_bytes() == whole


@pytest.mark.slow(but=["0.98", "0"])
@pytest.mark.parametrize("share", [0, 0.02, 0.5, 0.98, 1])
def test_a_bit_costs_no_message_wherever_it_is(killed: Path, tmp_path: Path, share: float) -> None:
    chance = random.Random(f"{share}")
    for zone, place in places(ahead(killed / "a.db").stat().st_size, share, chance):
        folder = tmp_path / zone.replace(" ", "-")
        path = copy_store(killed, folder)
        flip(ahead(path), place, chance.randrange(8))
        with pytest.raises(refold.WriteAheadDamaged):
            refold.open(path)
        made = salvage_file(path, folder / "new.db")
        assert len(messages_of(folder / "new.db")) == COUNT, zone
        assert made.complete or zone == "page"


@pytest.mark.slow
def test_a_sector_that_is_gone_costs_at_most_the_message_on_it(
    killed: Path, tmp_path: Path
) -> None:
    size = ahead(killed / "a.db").stat().st_size
    for number, start in enumerate(range(0, size, size // 12)):
        path = copy_store(killed, tmp_path / str(number))
        content = bytearray(ahead(path).read_bytes())
        content[start : start + 512] = bytes(len(content[start : start + 512]))
        ahead(path).write_bytes(content)
        salvage_file(path, path.with_name("new.db"))
        assert len(messages_of(path.with_name("new.db"))) >= COUNT - 1


@pytest.mark.slow(but="encrypted")
@pytest.mark.parametrize(("size", "key"), [(200, KEY), (9_000, None)], ids=["encrypted", "long"])
def test_encrypted_and_long_messages_are_read_from_page_images(
    tmp_path: Path, size: int, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if key:
        monkeypatch.setenv("REFOLD_ENCRYPTION_KEY", key)
    killed = killed_store(tmp_path, 12, size=size, key=key)
    length = ahead(killed / "a.db").stat().st_size
    for number, start in enumerate(range(HEAD, length, length // 5)):
        path = copy_store(killed, tmp_path / str(number))
        content = bytearray(ahead(path).read_bytes())
        content[start : start + 64] = bytes(64)
        ahead(path).write_bytes(content)
        salvage_file(path, path.with_name("new.db"))
        assert len(messages_of(path.with_name("new.db"), key)) >= 11


def test_the_file_header_can_be_told_from_the_frames(killed: Path, tmp_path: Path) -> None:
    path = copy_store(killed, tmp_path)
    content = bytearray(ahead(path).read_bytes())
    content[:HEAD] = os.urandom(HEAD)
    ahead(path).write_bytes(content)
    with pytest.raises(refold.WriteAheadDamaged, match="its header differs"):
        refold.open(path)
    salvage_file(path, tmp_path / "new.db")
    assert len(messages_of(tmp_path / "new.db")) == COUNT


def test_a_log_without_its_file_is_salvaged_from_its_write_ahead_log(
    killed: Path, tmp_path: Path
) -> None:
    path = copy_store(killed, tmp_path)
    path.write_bytes(b"")
    with pytest.raises(refold.WriteAheadDamaged, match="is missing or empty"):
        refold.open(path)
    salvage_file(path, tmp_path / "new.db")
    assert len(messages_of(tmp_path / "new.db")) == COUNT
    content = ahead(path).read_bytes()
    path.unlink()
    moved = restore_log(tmp_path / "new.db", path).moved_aside
    assert moved is not None
    assert ahead(moved).read_bytes() == content
    assert len(messages_of(path)) == COUNT


def test_a_log_is_given_up_only_when_its_write_ahead_log_was_deleted(
    killed: Path, tmp_path: Path
) -> None:
    path = copy_store(killed, tmp_path)
    content = ahead(path).read_bytes()
    path.unlink()
    with pytest.raises(refold.WriteAheadDamaged, match="refold salvage"):
        accept_lost(path)
    assert ahead(path).read_bytes() == content
    ahead(path).unlink()
    assert accept_lost(path)
    assert [copy.read_bytes() for copy in damaged_copies(path)] == [content]
    opened(path)
    assert not accept_lost(tmp_path / "another.db")


def test_a_verification_names_the_damage_and_the_way_out(log: Path) -> None:
    with pytest.raises(refold.WriteAheadDamaged) as refused:
        refold.open(log)
    found = verify_file(log, refused.value)
    assert [(d.place, d.kind) for d in found.damage] == [("log", "write-ahead")]
    assert "refold salvage NEW.db" in found.damage[0].remedy
    assert str(refused.value.copy) in found.damage[0].detail


def test_damage_that_comes_while_the_log_is_open_is_found_by_a_verification(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with refold.open(path) as memory:
        for number in range(10):
            memory.conversation("t").append({"role": "user", "content": f"message-{number:03d} "})
        assert memory.verify().ok
        whole = ahead(path).read_bytes()
        flip(ahead(path), len(whole) // 2)
        assert "write-ahead" in [d.kind for d in memory.verify().damage]
        memory.salvage(tmp_path / "new.db")
        ahead(path).write_bytes(whole)
    assert len(messages_of(tmp_path / "new.db")) == 10


def test_what_was_salvaged_is_put_in_place_and_every_image_is_kept(log: Path) -> None:
    with pytest.raises(refold.WriteAheadDamaged):
        refold.open(log)
    damaged = ahead(log).read_bytes()
    salvage_file(log, log.with_name("new.db"))
    restored = restore_log(log.with_name("new.db"), log, force=True)
    assert len(messages_of(log)) == COUNT
    moved = restored.moved_aside
    assert moved is not None
    assert ahead(moved).read_bytes() == damaged
    assert [copy.read_bytes() for copy in damaged_copies(moved)] == [damaged]
    assert damaged_copies(log) == []


def test_a_copy_is_salvaged_after_another_program_dropped_the_rest(log: Path) -> None:
    with pytest.raises(refold.WriteAheadDamaged):
        refold.open(log)
    with closing(sqlite3.connect(log)) as another:
        another.execute("SELECT count(*) FROM stored_events").fetchone()
    assert not ahead(log).exists()
    salvage_file(log, log.with_name("new.db"))
    assert len(messages_of(log.with_name("new.db"))) == COUNT


def test_a_copy_of_a_history_that_was_given_up_adds_nothing(log: Path) -> None:
    with pytest.raises(refold.WriteAheadDamaged):
        refold.open(log)
    with closing(sqlite3.connect(log)) as another:
        another.execute("SELECT count(*) FROM stored_events").fetchone()
    with refold.open(log) as memory:
        memory.anchor(accept=True)
        kept = len(memory.conversation("t").messages())
        assert kept < COUNT
        memory.conversation("t").append({"role": "user", "content": "another history"})
        found = memory.verify()
        assert found.ok
        assert "copy of a write-ahead log" in found.notices[0]
    salvage_file(log, log.with_name("new.db"))
    assert len(messages_of(log.with_name("new.db"))) == kept + 1


def test_an_erasure_names_a_copy_that_may_hold_the_text(log: Path) -> None:
    with pytest.raises(refold.WriteAheadDamaged):
        refold.open(log)
    [copy] = damaged_copies(log)
    with closing(sqlite3.connect(log)) as another:
        another.execute("SELECT count(*) FROM stored_events").fetchone()
    with refold.open(log) as memory:
        memory.anchor(accept=True)
        report = memory.conversation("t").erase(0)
        assert report.damaged_copies == (str(copy),)
        assert not report.complete
        copy.unlink()
        assert memory.conversation("t").erase(1).complete


@pytest.mark.slow
def test_what_was_erased_does_not_come_back_from_an_older_image(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    with refold.open(source / "a.db") as memory:
        conversation = memory.conversation("t")
        for number in range(8):
            conversation.append({"role": "user", "content": f"message-{number:03d} " + "x" * 300})
        reader = sqlite3.connect(source / "a.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM stored_events").fetchone()
        conversation.erase(2)  # The reader keeps the older images in the write-ahead log.
        conversation.append({"role": "user", "content": "message-008 "})
        path = copy_store(source, tmp_path / "killed")
        reader.close()
    size = ahead(path).stat().st_size
    assert b"message-002 " in ahead(path).read_bytes()
    for number, start in enumerate(range(HEAD, size, 2 * FRAME)):
        one = copy_store(path.parent, tmp_path / str(number))
        content = bytearray(ahead(one).read_bytes())
        content[start + 600 : start + 1200] = bytes(600)
        ahead(one).write_bytes(content)
        salvage_file(one, one.with_name("new.db"))
        assert b"message-002 " not in one.with_name("new.db").read_bytes()


@pytest.mark.parametrize("name", ["a.db-wal.damaged-20261123T101530Z", "a.db-wal"])
def test_nothing_is_written_in_the_place_of_a_copy(log: Path, name: str) -> None:
    with pytest.raises(refold.TargetExists, match="a file of the log itself"):
        salvage_file(log, log.with_name(name))


def test_a_torn_tail_raises_no_alarm(killed: Path, tmp_path: Path) -> None:
    for cut in range(1, 3 * FRAME, 700):
        path = copy_store(killed, tmp_path / str(cut))
        path.with_name("a.db.anchor").unlink()
        content = ahead(path).read_bytes()
        ahead(path).write_bytes(content[: HEAD + 20 * FRAME + cut])
        assert examine(path) is None


def test_the_anchor_proves_a_damaged_last_commit(killed: Path, tmp_path: Path) -> None:
    path = copy_store(killed, tmp_path)
    flip(ahead(path), ahead(path).stat().st_size - FRAME + 2000)
    assert examine(path) is not None
    path.with_name("a.db.anchor").unlink()
    assert examine(path) is None


def test_a_header_that_is_torn_while_the_log_begins_again_raises_no_alarm(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with refold.open(path) as memory:
        for number in range(10):
            memory.conversation("t").append({"role": "user", "content": str(number)})
        with closing(sqlite3.connect(path)) as another:
            another.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        one = copy_store(tmp_path, tmp_path / "one")
    flip(ahead(one), 17)
    assert examine(one) is None
    assert len(messages_of(one)) == 10


def test_a_log_that_is_written_to_meanwhile_raises_no_alarm(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with refold.open(path) as memory:
        conversation = memory.conversation("t")
        for number in range(30):
            conversation.append({"role": "user", "content": f"{number} " + "x" * 3000})
            if number % 7 == 0:
                with closing(sqlite3.connect(path)) as another:
                    another.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
            assert examine(path) is None


def test_a_frame_that_is_good_at_the_second_look_raises_no_alarm(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = ahead(log).read_bytes()
    whole = bytearray(damaged)
    whole[len(whole) // 2] ^= 1 << 3
    usual: Callable[..., Any] = Path.open
    looks: list[Path] = []

    def look(path: Path, *arguments: Any, **options: Any) -> Any:
        if path == ahead(log) and "w" not in (arguments or ("r",))[0]:
            looks.append(path)
            if len(looks) == 2:
                os.truncate(path, 0)
                with usual(path, "wb") as file:
                    file.write(whole)
        return usual(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", look)
    assert examine(log) is None
    assert len(looks) >= 3


def test_a_read_that_fails_for_a_moment_is_no_damage(
    killed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copy_store(killed, tmp_path)
    usual, failures = examine, [OSError(errno.EIO, "Input/output error")] * 2

    def failing(log: Path) -> object:
        if failures:
            raise failures.pop()
        return usual(log)

    monkeypatch.setattr(examination, "examine", failing)
    assert len(messages_of(path)) == COUNT


def test_after_a_clean_close_nothing_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    appended(path)
    assert not ahead(path).exists()

    def examined(log: Path) -> None:
        pytest.fail(f"{log} was read")

    monkeypatch.setattr(examination, "examine", examined)
    opened(path)


@pytest.mark.parametrize("place", [0, 9, 48, 60, 96, 100, 136, 5000, 20000])
def test_a_bit_in_the_shared_memory_costs_nothing(killed: Path, tmp_path: Path, place: int) -> None:
    path = copy_store(killed, tmp_path)
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as reader:
        reader.execute("SELECT count(*) FROM stored_events").fetchone()
        shared = Path(f"{path}-shm").read_bytes()
    Path(f"{path}-shm").write_bytes(shared)
    flip(Path(f"{path}-shm"), place)
    assert len(messages_of(path)) == COUNT


@pytest.mark.parametrize("place", [5, 16, 18, 28, 100, 105, 2000, 4000])
def test_a_bit_in_a_page_with_a_newer_image_costs_nothing(
    killed: Path, tmp_path: Path, place: int
) -> None:
    path = copy_store(killed, tmp_path)
    flip(path, place)
    assert len(messages_of(path)) == COUNT


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return killed_store(tmp_path_factory.mktemp("delivered"), DELIVERED, size=60, delivered=True)


def cuts_in_commits(content: bytes) -> list[int]:
    """Where a commit can be cut off so that its message is there and the end of the commit is not."""
    found: list[int] = []
    for at in range(HEAD, len(content), FRAME):
        page = content[at : at + FRAME]
        newest = max(re.findall(rb"message-\d+", page), default=None)
        if newest and content.find(newest) > at and not any(page[4:8]):
            found.append(at + FRAME)
    return found


@pytest.mark.slow(but="4119")
@pytest.mark.parametrize("more", [0, 20, FRAME - 1])
def test_a_file_that_was_cut_in_a_commit_loses_nothing_that_is_left_in_it(
    delivered: Path, tmp_path: Path, more: int
) -> None:
    whole = ahead(delivered / "a.db").read_bytes()
    cuts = cuts_in_commits(whole)
    assert cuts
    for cut in cuts:
        folder = tmp_path / str(cut)
        log = copy_store(delivered, folder)
        ahead(log).write_bytes(whole[: cut + more])
        left = texts_in(folder, DELIVERED)
        assert left < DELIVERED
        for _ in range(2):
            with pytest.raises(refold.WriteAheadDamaged, match="it ends in the middle of a commit"):
                listed(log)
            assert texts_in(folder, DELIVERED) == left
        salvage_file(log, folder / "new.db")
        assert len(messages_of(folder / "new.db")) == left
