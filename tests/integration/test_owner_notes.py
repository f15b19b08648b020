"""Notes files: those of an owner lie in a folder of their own, and nobody else's has a word of them."""

from pathlib import Path
from typing import Any

import refold
from refold.application.notes.note_files import owner_folder

FILLER = "Tidying the garden shed, raking leaves and painting the fence white. " * 14


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def noted(
    memory: refold.Memory, thread: str, owner: str | None, likes: str, guest: str = ""
) -> None:
    conversation = memory.conversation(thread, owner=owner)
    conversation.append([said(f"Remember: I prefer {likes} to tea."), said("Noted.", "assistant")])
    if guest:
        conversation.append(said(f"Remember: I prefer {guest} to tea."), owner="user-9")
        conversation.append(said("Noted.", "assistant"))
    conversation.append([m for _ in range(6) for m in (said(FILLER), said("Fine.", "assistant"))])
    conversation.append(said("Go on."))
    assert conversation.compact().outcome == "performed"
    assert likes in str(conversation.notes())
    assert guest in str(conversation.notes())


def texts(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.md")}


def test_each_owner_has_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    with refold.open(tmp_path / "agent.db", window=8_000, notes_folder=folder) as memory:
        noted(memory, "a", "user-7", "coffee")
        noted(memory, "b", "User-7", "water", guest="juice")
        noted(memory, "c", None, "milk", guest="lemonade")
        found = texts(folder)
        seven, other = owner_folder("user-7"), owner_folder("User-7")
        assert seven != other
        assert {name.rpartition("/memory/")[0] or name for name in found} >= {
            "MEMORY.md",
            seven,
            other,
        }
        for name, text in found.items():
            assert ("coffee" in text) == name.startswith(seven)
            assert ("water" in text) == name.startswith(other)
            assert ("milk" in text) == (not name.startswith("owners/"))
            assert "juice" not in text
            assert "lemonade" not in text
        memory.erase_owner("user-7")
        assert not [name for name in texts(folder) if name.startswith(seven)]
        assert "water" in str(texts(folder))


def test_notes_move_when_a_conversation_is_given_an_owner(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    with refold.open(tmp_path / "agent.db", window=8_000, notes_folder=folder) as memory:
        noted(memory, "a", None, "coffee")
        assert "coffee" in texts(folder)["MEMORY.md"]
        memory.conversation("a", owner="user-7").append(said("Fine.", "assistant"))
        memory.write_notes()
        assert "MEMORY.md" not in texts(folder)
        assert "coffee" in texts(folder)[f"{owner_folder('user-7')}/MEMORY.md"]


def test_an_owner_cannot_name_a_place_outside_of_the_folder(tmp_path: Path) -> None:
    for owner in ("../../etc/passwd", "/root", "..", "a/b", "CON", "ä" * 300):
        name = owner_folder(owner)
        assert name.startswith("owners/")
        assert name.count("/") == 1
        assert ".." not in name
        assert len(name) < 80
