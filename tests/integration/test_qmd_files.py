"""What QMD is given: files in a folder beside the log, made anew when lost and deleted by an erasure."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import refold
from refold import InvalidSetting
from refold.application.api.memory import Memory
from tests.support.fake_qmd import FakeQmd, places, say, searched_by_qmd

KEY = "ab" * 32


@pytest.fixture
def memory(folder: Path, qmd: FakeQmd) -> Iterator[Memory]:
    """A memory that asks it, with two conversations."""
    del qmd
    with searched_by_qmd(folder) as made:
        yield made


def test_all_that_it_is_given_lies_in_one_private_folder_beside_the_log(
    memory: Memory, qmd: FakeQmd, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFOLD_ENCRYPTION_KEY", KEY)
    places(memory, "postgres")
    given = folder / "agent.qmd"
    assert given.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o077 == 0 for path in given.rglob("*.md"))
    assert {Path(str(call["index"])).parent.parent for call in qmd.recorded} == {given}
    assert all(call["secrets"] == [] for call in qmd.recorded)


@pytest.mark.parametrize("with_backend", [True, False])
def test_an_erasure_deletes_all_that_was_handed_over_whoever_erases(
    memory: Memory, folder: Path, with_backend: bool
) -> None:
    assert places(memory, "redis") == [1]
    assert holds(folder, b"Redis is")
    if with_backend:
        memory.conversation("ports").erase(1)
    else:
        memory.close()
        with refold.open(folder / "agent.db") as plain:
            assert plain.conversation("ports").erase(1).complete
    assert not holds(folder, b"Redis is")
    with searched_by_qmd(folder) as again:
        assert places(again, "redis") == []
        assert places(again, "postgres") == [0]
    assert not holds(folder, b"Redis is")


def test_an_erasure_that_another_process_did_is_noticed(memory: Memory, folder: Path) -> None:
    assert places(memory, "redis") == [1]
    with refold.open(folder / "agent.db") as other:
        other.conversation("ports").erase(1)
    (folder / "agent.qmd").mkdir(exist_ok=True)
    assert places(memory, "redis") == []
    assert not holds(folder, b"Redis is")


def test_a_log_that_was_put_back_to_an_earlier_day_is_handed_over_anew(
    memory: Memory, folder: Path
) -> None:
    memory.close()
    kept = (folder / "agent.db").read_bytes()
    with searched_by_qmd(folder) as memory:
        say(memory.conversation("ports"), "Kafka is on 9092.")
        assert places(memory, "kafka") == [2]
    for left in folder.glob("agent.db*"):
        left.unlink()
    (folder / "agent.db").write_bytes(kept)
    with searched_by_qmd(folder) as memory:
        say(memory.conversation("ports"), "Vault is on 8200.")
        assert places(memory, "vault") == [2]
        assert places(memory, "kafka") == []


@pytest.mark.parametrize("damage", ["", "{}", "[]", '{"version": 99}'])
def test_a_lost_or_damaged_note_of_progress_is_made_anew(
    memory: Memory, folder: Path, damage: str
) -> None:
    assert places(memory, "redis") == [1]
    (folder / "agent.qmd" / "state.json").write_text(damage)
    assert places(memory, "redis") == [1]
    shutil.rmtree(folder / "agent.qmd")
    assert places(memory, "redis") == [1]


def test_texts_that_are_not_to_lie_in_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="in memory"):
        refold.open(":memory:", search_backend="qmd")
    with pytest.raises(InvalidSetting, match="encrypted"):
        refold.open(tmp_path / "agent.db", search_backend="qmd", encryption_key=KEY)
    assert not list(tmp_path.iterdir())


def holds(folder: Path, content: bytes) -> bool:
    """Whether a file holds it, or its name does."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return any(content in path.read_bytes() for path in paths)


def test_the_real_program_finds_what_was_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = shutil.which("qmd")
    if program is None or not works(program, tmp_path):
        pytest.skip("no qmd on PATH that works: npm install -g @tobilu/qmd, with Node 22")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with searched_by_qmd(folder, timeout=60) as memory:
        say(memory.conversation("ports"), "- 重试策略: C++ and node.js, `pg_host`")
        assert places(memory, "which number has postgres?") == [0]
        assert places(memory, "-redis") == [1]
        for question in ("重试策略是什么", "C++", "node.js", "pg_host", "lex: x\nvec: node.js"):
            assert places(memory, question) == [2], question
        memory.conversation("ports").erase(1)
        assert places(memory, "redis") == []
    assert not holds(folder, b"Redis is")


def works(program: str, folder: Path) -> bool:
    environment = {**os.environ, "INDEX_PATH": str(folder / "i.sqlite"), "HOME": str(folder)}
    try:
        said = subprocess.run(
            [program, "search", "x", "--json"], env=environment, capture_output=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.returncode == 0
