"""The folder of notes: brought up to date file by file, whatever others do there meanwhile."""

from pathlib import Path

import pytest

from refold.infrastructure.notes import notes_folder as folder_module
from refold.infrastructure.notes.notes_folder import BEGIN, END, MarkdownFolder, with_block

NOTES = {"MEMORY.md": "# Memory", "memory/2026-01-02.md": "# Notes of 2026-01-02"}


def block(text: str) -> bytes:
    return BEGIN + b"\n" + text.encode() + b"\n" + END + b"\n"


def test_files_are_made_and_a_second_time_nothing_is_written(tmp_path: Path) -> None:
    made = MarkdownFolder(tmp_path / "deep" / "notes", None)
    made.write(lambda: NOTES)
    found = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.rglob("*.md")}
    assert {content for content, _ in found.values()} == set(map(block, NOTES.values()))
    made.write(lambda: NOTES)
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.rglob("*.md")} == found
    assert {p.suffix for p in tmp_path.rglob("*") if p.is_file()} == {".md"}, "nothing else is left"


def test_what_has_no_notes_any_more_loses_our_part_alone(tmp_path: Path) -> None:
    made = MarkdownFolder(tmp_path, None)
    made.write(lambda: NOTES)
    daily = tmp_path / "memory" / "2026-01-02.md"
    daily.write_bytes(b"mine\n" + daily.read_bytes())
    other = tmp_path / "memory" / "2026-01-02-plan.md"
    other.write_bytes(block("not named like a day"))
    made.write(dict)
    assert daily.read_bytes() == b"mine\n"
    assert not (tmp_path / "MEMORY.md").exists()
    assert other.exists()


def test_what_a_person_saves_in_the_very_moment_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "MEMORY.md"
    saved = [b"first\n", b"second\n"]

    def meanwhile(content: bytes, text: str) -> bytes:
        if saved:
            mine.write_bytes(saved.pop(0))
        return with_block(content, text)

    monkeypatch.setattr(folder_module, "with_block", meanwhile)
    MarkdownFolder(tmp_path, None).write(lambda: {"MEMORY.md": "# Memory"})
    assert mine.read_bytes() == b"second\n\n" + block("# Memory")


def test_a_file_that_is_saved_all_the_time_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, times = tmp_path / "MEMORY.md", iter(range(99))

    def meanwhile(content: bytes, text: str) -> bytes:
        mine.write_text(str(next(times)))
        return with_block(content, text)

    monkeypatch.setattr(folder_module, "with_block", meanwhile)
    with pytest.raises(TimeoutError):
        MarkdownFolder(tmp_path, None).write(lambda: {"MEMORY.md": "# Memory"})
    assert mine.read_text().isdecimal()


def test_notes_behind_a_link_are_removed_and_the_link_stays(tmp_path: Path) -> None:
    kept = tmp_path / "elsewhere.md"
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "MEMORY.md").symlink_to(kept)
    made = MarkdownFolder(folder, None)
    made.write(lambda: NOTES)
    assert kept.read_bytes() == block("# Memory")
    made.write(dict)
    assert not kept.exists()
    made.write(lambda: NOTES)
    assert kept.read_bytes() == block("# Memory")


def test_a_file_that_cannot_be_written_keeps_no_other_from_being_written(tmp_path: Path) -> None:
    made = MarkdownFolder(tmp_path, None)
    made.write(lambda: NOTES)
    (tmp_path / "MEMORY.md").unlink()
    (tmp_path / "MEMORY.md").mkdir()
    with pytest.raises(OSError, match="directory"):
        made.write(dict)
    assert not (tmp_path / "memory" / "2026-01-02.md").exists()


def test_a_folder_in_the_place_of_a_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").mkdir()
    with pytest.raises(OSError, match="directory"):
        MarkdownFolder(tmp_path, None).write(lambda: NOTES)
