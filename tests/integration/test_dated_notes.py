"""Notes keep the day on which they were taken, whatever is erased later, and stand in the files once."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import refold
from refold.domain.errors import InvalidSetting

JANUARY = "2026-01-05"
MARCH = "2026-03-09"
APRIL = "2026-04-01"
KEPT = "We decided to use zstd."
LONG = "Look at it once more, with all that was said. " * 12


class Calendar:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.day = JANUARY

    def now(self) -> datetime:
        return datetime.fromisoformat(f"{self.day}T12:00:00").replace(tzinfo=UTC)


@pytest.fixture
def calendar() -> Calendar:
    return Calendar()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "notes"


@pytest.fixture
def memory(tmp_path: Path, folder: Path, calendar: Calendar) -> Iterator[refold.Memory]:
    path = tmp_path / "a.db"
    with refold.open(path, window=8_000, notes_folder=folder, clock=calendar.now) as made:
        yield made


def noted(memory: refold.Memory) -> refold.ConversationMemory:
    conversation = memory.conversation("t")
    for said in (KEPT, "My phone is 0170 123.", "I prefer tabs over spaces."):
        conversation.append({"role": "user", "content": said})
        conversation.append({"role": "assistant", "content": "ok"})
    for _ in range(20):
        conversation.append({"role": "user", "content": LONG})
        conversation.append({"role": "assistant", "content": LONG})
    conversation.compact()
    return conversation


def days(folder: Path) -> list[str]:
    return sorted(path.stem for path in (folder / "memory").iterdir())


def when(conversation: refold.ConversationMemory) -> dict[str, str]:
    return {row.text: row.taken_at[:10] for row in conversation.notes()}


@pytest.mark.slow
def test_notes_keep_their_day_when_another_message_is_erased(
    memory: refold.Memory, folder: Path, calendar: Calendar
) -> None:
    conversation = noted(memory)
    before = list(conversation.notes())
    assert days(folder) == [JANUARY]
    for day, position in ((MARCH, 2), (APRIL, 4)):
        calendar.day = day
        conversation.erase(position)
        assert when(conversation)[KEPT] == JANUARY
        assert days(folder) == [JANUARY]
    [row] = [row for row in before if row.text == KEPT]
    [now] = [row for row in conversation.notes() if row.text == KEPT]
    assert now.taken_at == row.taken_at
    memory.replay()
    assert when(conversation)[KEPT] == JANUARY
    assert memory.verify().ok


@pytest.mark.slow
def test_notes_of_a_copy_of_an_old_version_keep_their_day(
    memory: refold.Memory, calendar: Calendar
) -> None:
    conversation = noted(memory)
    then = conversation.version
    calendar.day = MARCH
    conversation.erase(2)
    calendar.day = APRIL
    assert when(conversation.fork(at=then, thread_id="copy"))[KEPT] == JANUARY


MIDNIGHT = datetime(2026, 1, 5, 23, 30, tzinfo=UTC)
"""In UTC half an hour before the end of that day."""


@pytest.mark.slow(but=["Asia/Shanghai-UTC-2026-01-05", "UTC-+00:45-2026-01-06"])
@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone of a process cannot be set here")
@pytest.mark.parametrize(
    ("local", "setting", "day"),
    [
        ("UTC", None, "2026-01-05"),
        ("Asia/Shanghai", None, "2026-01-06"),
        ("America/New_York", None, "2026-01-05"),
        ("America/New_York", "Asia/Shanghai", "2026-01-06"),
        ("Asia/Shanghai", "UTC", "2026-01-05"),
        ("UTC", "+00:45", "2026-01-06"),
        ("UTC", "-08:00", "2026-01-05"),
    ],
)
def test_a_day_is_the_users(
    tmp_path: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    local: str,
    setting: str | None,
    day: str,
) -> None:
    monkeypatch.setenv("TZ", local)
    time.tzset()
    try:
        with refold.open(
            tmp_path / "a.db",
            window=8_000,
            notes_folder=folder,
            notes_timezone=setting,
            clock=lambda: MIDNIGHT,
        ) as memory:
            noted(memory)
        assert days(folder) == [day]
        assert f"# Notes of {day}" in (folder / "memory" / f"{day}.md").read_text("utf-8")
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.slow
def test_with_another_zone_the_files_are_made_again_and_hand_edits_stay(
    tmp_path: Path, folder: Path
) -> None:
    def opened(zone: str) -> refold.Memory:
        return refold.open(
            tmp_path / "a.db",
            window=8_000,
            notes_folder=folder,
            notes_timezone=zone,
            clock=lambda: MIDNIGHT,
        )

    with opened("UTC") as memory:
        noted(memory)
    first = (folder / "memory" / "2026-01-05.md").read_text("utf-8")
    with opened("Asia/Shanghai"):
        assert days(folder) == ["2026-01-06"]
    mine = folder / "memory" / "2026-01-06.md"
    mine.write_text("My own words.\n" + mine.read_text("utf-8"), "utf-8")
    with opened("UTC"):
        assert days(folder) == ["2026-01-05", "2026-01-06"]
    assert mine.read_text("utf-8") == "My own words.\n"
    assert (folder / "memory" / "2026-01-05.md").read_text("utf-8") == first


@pytest.mark.parametrize("zone", ["Mars/Olympus", "+25:00", "../UTC", "utc+1", ""])
def test_what_is_no_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(InvalidSetting, match=r"notes_timezone.*must be a time zone such as"):
        refold.open(":memory:", notes_timezone=zone)


def lines(folder: Path, text: str) -> list[str]:
    paths = sorted(folder.rglob("*.md"))
    return [x for p in paths for x in p.read_text("utf-8").splitlines() if text in x]


@pytest.mark.slow
def test_what_a_fork_copied_stands_in_the_files_once(
    memory: refold.Memory, folder: Path, calendar: Calendar
) -> None:
    conversation = noted(memory)
    assert len(lines(folder, KEPT)) == 2, "in MEMORY.md and in the file of the day"
    copy = conversation.fork(thread_id="copy")
    assert copy.fork(thread_id="of the copy").notes()
    memory.write_notes()
    assert len(lines(folder, KEPT)) == 2
    assert not lines(folder, "refold://copy")
    assert len(memory.notes()) == 3 * len(conversation.notes()), "each conversation has its own"
    calendar.day = MARCH
    copy.erase(2)
    assert len(lines(folder, KEPT)) == 2, "also where they were taken anew"
    copy.append({"role": "user", "content": "We decided to use brotli."})
    copy.append([{"role": r, "content": LONG} for _ in range(15) for r in ("assistant", "user")])
    copy.compact()
    assert len(lines(folder, "refold://copy/46")) == 2, "what was noted since is its own"
    assert not lines(folder, "refold://copy/0")


def test_equal_notes_of_conversations_that_share_nothing_stand_twice(
    memory: refold.Memory, folder: Path
) -> None:
    for thread in ("one", "two"):
        conversation = memory.conversation(thread)
        conversation.append({"role": "user", "content": KEPT})
        conversation.append(
            [{"role": r, "content": LONG} for _ in range(15) for r in ("assistant", "user")]
        )
        conversation.compact()
    assert len(lines(folder, KEPT)) == 4
