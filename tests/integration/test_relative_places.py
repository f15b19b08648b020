"""A log that was opened by a relative path, in a program that changes its folder afterwards."""

from pathlib import Path

import pytest

import refold


def test_no_file_is_made_in_another_folder_and_what_is_erased_is_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    with refold.open("agent.db") as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "The codename is Wolframite."})
        monkeypatch.chdir(elsewhere)
        assert conversation.recall("Wolframite").hits
        assert len(conversation.messages()) == 1
        conversation.append({"role": "assistant", "content": "Noted."})
        assert memory.verify().ok
        conversation.compact(all=True, keep_last=1)
    assert not list(elsewhere.iterdir())
    monkeypatch.chdir(tmp_path)
    with refold.open("agent.db") as memory:
        assert memory.conversation("t").erase(0).complete
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or b"Wolframite" not in file.read_bytes(), file


def test_a_link_that_leads_to_itself_is_a_typed_error(tmp_path: Path) -> None:
    loop = tmp_path / "agent.db"
    loop.symlink_to(loop)
    with pytest.raises(refold.LogNotFound, match="leads to no file"):
        refold.open(loop)


def test_a_current_folder_that_was_deleted_is_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(refold.LogNotFound, match="leads to no file"):
        refold.open("agent.db")
