"""A log that was opened by a relative path: the folder changes afterwards, or its name is not text."""

import os
import subprocess
import sys
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


_IN_A_FOLDER = """
import refold
with refold.open("agent.db") as memory:
    conversation = memory.conversation("t")
    conversation.append({"role": "user", "content": "The codename is Wolframite."})
    assert conversation.recall("Wolframite").hits
    assert memory.backup("copy.db").events == 1
    assert memory.verify().ok, memory.verify()
    assert conversation.erase(0).complete
assert memory_of_copy() == 1
"""
_COPY = """
def memory_of_copy():
    with refold.open("copy.db") as memory:
        return len(memory.conversation("t").messages())
"""
_ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0"}


def run(script: str, folder: Path, **environment: str) -> str:
    found = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        timeout=60,
        check=False,
    )
    return found.stderr.decode(errors="replace")


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text on other systems")
@pytest.mark.parametrize("environment", [{}, _ASCII], ids=["UTF-8", "ASCII"])
@pytest.mark.parametrize("name", [b"caf\xe9", "caf\xe9".encode(), b"a %41#?\n"])
def test_a_folder_may_have_any_name(
    tmp_path: Path, name: bytes, environment: dict[str, str]
) -> None:
    folder = tmp_path / os.fsdecode(name)
    folder.mkdir()
    assert run(f"{_COPY}{_IN_A_FOLDER}", folder, **environment) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text on other systems")
def test_a_name_that_the_process_cannot_encode_is_a_typed_error(tmp_path: Path) -> None:
    for call in ("open(name)", "open('a.db').backup(name)", "open('a.db', notes_folder=name)"):
        script = f"import refold; name = chr(233) + '.db'; refold.{call}"
        found = run(script, tmp_path, **_ASCII)
        assert "InvalidSetting" in found.splitlines()[-1], found
        assert "PYTHONUTF8=1" in found.splitlines()[-1], found


def test_an_error_about_a_log_in_memory_names_no_file() -> None:
    memory = refold.open(":memory:")
    memory.close()
    for use in memory.conversations, memory.index, memory.stats:
        with pytest.raises(refold.LogError, match="was closed") as caught:
            use()
        assert str(Path.cwd()) not in str(caught.value)
