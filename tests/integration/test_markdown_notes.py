"""The Markdown notes of a workspace are searched as they are now, and nothing outside of their folder."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

import refold
from refold.application.notes.note_files import owner_folder
from refold.application.ports.embedder import Vector
from tests.support.command_line import ran
from tests.support.fake_embedders import DigestEmbedder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    (made / "memory").mkdir(parents=True)
    (made / "MEMORY.md").write_text(
        "# Memory\n\n## Preferences\n\n- I like Python for scripts.\n\n## Servers\n\nStaging postgres: port 54331.\n"
    )
    (made / "memory" / "2026-01-02.md").write_text("# Day\n\nWe tidied the garden shed.\n")
    (made / "memory" / "plan.md").write_text("Deploy on Friday, never on Monday.\n")
    return made


class Broken(DigestEmbedder):
    def embed_query(self, text: str) -> Vector:
        raise RuntimeError("no GPU")


def opened(folder: Path, **options: Any) -> refold.Memory:
    made: dict[str, Any] = {"markdown_folder": folder, **options}
    return refold.open(folder.parent / "agent.db", **made)


def test_a_hand_edit_is_found_with_its_place(folder: Path) -> None:
    with opened(folder) as memory:
        found = memory.search_notes("Which port does the staging postgres have?")
        assert found.mode == "keyword"
        best = found.hits[0]
        assert (best.path, best.heading, best.line) == ("MEMORY.md", "Memory > Servers", 9)
        assert best.text == "Staging postgres: port 54331."
        assert best.score == 1
        assert memory.search_notes("Which port does the staging postgres have?") == found
        memory_file = folder / "MEMORY.md"
        memory_file.write_text(memory_file.read_text().replace("54331", "9999"))
        assert "9999" in memory.search_notes("port of postgres").hits[0].text
        assert memory.conversations() == [], "nothing is stored"


def test_number_of_hits_least_score_and_mode_can_be_given(folder: Path) -> None:
    with opened(folder) as memory:
        question = "port of postgres, garden, Friday"
        assert len(memory.search_notes(question).hits) == 3
        assert len(memory.search_notes(question, limit=1).hits) == 1
        assert all(h.score >= 0.9 for h in memory.search_notes(question, min_score=0.9).hits)
        asked = memory.search_notes(question, mode="vector")
        assert (asked.mode, bool(asked.notice)) == ("keyword", True)
        wrong: Any
        for wrong in ({"limit": 0}, {"min_score": 2}, {"min_score": "x"}, {"mode": "guess"}):
            with pytest.raises(refold.InvalidSetting):
                memory.search_notes(question, **wrong)
        wrong = 5
        with pytest.raises(refold.InvalidSetting, match="query"):
            memory.search_notes(wrong)
        half = memory.search_notes("garden \ud83d")
        assert [hit.path for hit in half.hits] == ["memory/2026-01-02.md"]


def test_by_meaning_where_an_embedder_is_configured(folder: Path) -> None:
    with opened(folder, embedder=DigestEmbedder()) as memory:
        assert memory.search_notes("port of postgres").mode == "hybrid"
        same = "Deploy on Friday, never on Monday."
        assert memory.search_notes(same, mode="vector").hits[0].path == "memory/plan.md"


def test_an_embedder_that_fails_is_told_of(folder: Path) -> None:
    with opened(folder, embedder=Broken()) as memory:
        found = memory.search_notes("port of postgres")
        assert found.mode == "keyword"
        assert found.notice
        assert found.hits


def test_the_status_says_what_is_searched(folder: Path) -> None:
    (folder / "memory" / "bad.md").write_bytes(b"\xff\xfe\x00")
    (folder / "memory" / "large.md").write_bytes(b"large\n" * (1 << 18))
    (folder / "memory" / "note.txt").write_text("no Markdown")
    (folder / "other.md").write_text("secret-beside")
    with opened(folder) as memory:
        status = memory.notes_status()
        assert [f.path for f in status.files] == [
            "MEMORY.md",
            "memory/2026-01-02.md",
            "memory/plan.md",
        ]
        assert [(s.path, s.why) for s in status.skipped] == [
            ("memory/bad.md", "it is not UTF-8 text"),
            ("memory/large.md", "it is larger than 1 MiB"),
        ]
        assert status.folder == str(folder)
        assert not memory.search_notes("secret-beside").hits


def test_nothing_outside_of_the_folder_is_read(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("kangaroo secret")
    (folder / "memory" / "link.md").symlink_to(outside / "secret.md")
    os.mkfifo(folder / "memory" / "pipe.md")
    with opened(folder) as memory:
        assert not memory.search_notes("kangaroo secret").hits
        skipped = {s.path: s.why for s in memory.notes_status().skipped}
        assert skipped["memory/link.md"] == "it leads out of the folder"
        assert skipped["memory/pipe.md"] == "it is not a regular file"
    for name in ("MEMORY.md", "memory"):
        other = tmp_path / f"linked-{name}"
        other.mkdir()
        (other / name).symlink_to(outside / "secret.md" if name == "MEMORY.md" else outside)
        with opened(other) as memory:
            assert not memory.search_notes("kangaroo secret").hits
            assert memory.notes_status().skipped


def test_each_owner_finds_their_own_alone(folder: Path) -> None:
    for owner in ("user-7", "user-8"):
        own = folder / owner_folder(owner)
        own.mkdir(parents=True)
        (own / "MEMORY.md").write_text(f"The kangaroo of {owner} is green.")
    stolen = folder / "memory" / "stolen.md"
    stolen.symlink_to(folder / owner_folder("user-8") / "MEMORY.md")
    (folder / owner_folder("user-7") / "memory").symlink_to(folder / owner_folder("user-8"))
    with opened(folder) as memory:

        def told(owner: str | None) -> str:
            return str(memory.search_notes("kangaroo postgres", owner=owner).hits)

        assert "user-7" in told("user-7")
        assert "user-8" not in told("user-7")
        assert "54331" not in told("user-7")
        assert "kangaroo" not in told(None)
        assert "54331" in told(None)
        assert told("user-9") == "()"


def test_without_a_folder_it_says_so(tmp_path: Path) -> None:
    with refold.open(tmp_path / "agent.db") as memory:
        found = memory.search_notes("port")
        assert not found.hits
        assert "markdown_folder" in str(found.notice)
        assert memory.notes_status().folder is None


def test_a_folder_without_notes_is_named(folder: Path) -> None:
    with opened(folder, markdown_folder=folder / "misspelt") as memory:
        found = memory.search_notes("port of postgres")
        assert not found.hits
        assert str(folder / "misspelt") in str(found.notice)
    with opened(folder) as memory:
        assert memory.search_notes("wombat").notice is None


@pytest.mark.slow
def test_asyncio_and_the_command_line(folder: Path) -> None:
    async def work() -> None:
        path = folder.parent / "agent.db"
        async with refold.aopen(path, notes_folder=folder) as memory:
            assert (await memory.search_notes("port of postgres")).hits
            assert (await memory.notes_status()).files

    asyncio.run(work())
    words = ("search-notes", "port of postgres", "--folder", "work")
    done = ran(*words, "--json", folder=folder.parent)
    assert done.code == 0
    assert done.answer["hits"][0]["path"] == "MEMORY.md"
    assert "54331" in ran(*words, folder=folder.parent).out
    assert "plan.md" in ran("search-notes", "--folder", "work", folder=folder.parent).out
    assert ran("search-notes", "wombat", "--folder", "work", folder=folder.parent).code == 1


def test_sections_of_odd_files_are_whole(folder: Path) -> None:
    fence = "```\n# no heading\n```\n"
    long = "word " * 1_000
    (folder / "MEMORY.md").write_text(f"# A\n{fence}\n## B ##\n{long}\n\n### C\n### D\nend-word")
    with opened(folder) as memory:
        hit = memory.search_notes("end-word").hits[0]
        assert (hit.heading, hit.text) == ("A > B > D", "end-word")
        assert "# no heading" in memory.search_notes("heading").hits[0].text
        assert all(len(h.text) <= 1_600 for h in memory.search_notes("word", limit=50).hits)
