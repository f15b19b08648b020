"""A QMD that does not start, or hangs: which advice is given, and when it is not used."""

import time
from pathlib import Path

import pytest

from refold.application.api.memory import Memory
from refold.application.runtime.memory_settings import RecallMode
from refold.infrastructure.search_backends.programs import MessageFiles, State
from tests.support.fake_qmd import FakeQmd, places, say, searched_by_qmd

MODELS = "qmd pull"
DOCTOR = "qmd doctor"


def notice_of(memory: Memory, mode: RecallMode = "keyword") -> str:
    """What is said where the built-in search had to step in."""
    return str(memory.conversation("ports").recall("postgres", mode=mode).notice)


@pytest.mark.parametrize(
    ("first_line", "said"),
    [
        ("#!/nowhere/bin/node", "the interpreter that it names is missing"),
        ("#!/usr/bin/env no-such-interpreter-of-ours", "no-such-interpreter-of-ours"),
        ("\0\0\0", "Exec format error"),
    ],
)
def test_a_program_that_cannot_be_started_is_to_be_installed_again(
    folder: Path, qmd: FakeQmd, first_line: str, said: str
) -> None:
    (qmd.folder / "qmd").write_text(f"{first_line}\nprint('qmd 2.8.3')\n")
    with searched_by_qmd(folder) as memory:
        notice = notice_of(memory)
    assert "qmd cannot be started" in notice
    assert said in notice
    assert "reinstall it" in notice
    assert "permissions" not in notice


def test_a_program_that_is_gone_since_is_told_in_the_same_words(folder: Path, qmd: FakeQmd) -> None:
    with searched_by_qmd(folder) as memory:
        assert places(memory, "postgres") == [0]
        (qmd.folder / "qmd").unlink()
        assert "qmd cannot be started" in notice_of(memory)


def test_a_folder_that_cannot_be_written_is_still_a_matter_of_permissions(
    folder: Path, qmd: FakeQmd
) -> None:
    del qmd
    (folder / "agent.qmd").write_text("no folder")
    with searched_by_qmd(folder) as memory:
        assert "check its permissions" in notice_of(memory)


@pytest.mark.parametrize("command", ["collection", "update"])
def test_a_program_that_takes_nothing_in_hangs_and_is_left_alone(
    folder: Path, qmd: FakeQmd, command: str
) -> None:
    with searched_by_qmd(folder, timeout=1) as memory:
        if command == "update":
            assert places(memory, "postgres") == [0]
            say(memory.conversation("ports"), "Kafka is on 9092.")
        qmd.hang(command)
        notice = notice_of(memory)
        assert f"qmd {command} did not answer within 1 s, indexed nothing and was stopped" in notice
        assert DOCTOR in notice
        assert "ask again" not in notice
        asked = len(qmd.calls)
        assert "not used for 5 minutes" in notice_of(memory)
        assert "not used for 5 minutes" in notice_of(memory, "hybrid")
        assert len(qmd.calls) == asked


@pytest.mark.slow
def test_a_program_that_is_still_taking_in_is_asked_again(folder: Path, qmd: FakeQmd) -> None:
    grow = "open(os.environ['INDEX_PATH'], 'a').write(' ' * 1000); time.sleep(60)"
    qmd.behave(collection=grow, update=grow)
    with searched_by_qmd(folder, timeout=1) as memory:
        for _ in range(3):
            assert "still indexing" in notice_of(memory)
        assert "not used" in notice_of(memory)
    qmd.behave()
    with searched_by_qmd(folder) as memory:
        assert places(memory, "postgres") == [0]


@pytest.mark.slow
def test_who_had_hardly_any_time_is_not_said_to_hang(
    folder: Path, qmd: FakeQmd, monkeypatch: pytest.MonkeyPatch
) -> None:
    with searched_by_qmd(folder, timeout=2) as memory:
        places(memory, "postgres")
        say(memory.conversation("ports"), "Kafka is on 9092.")
        qmd.hang("update")
        written = MessageFiles.write_more

        def slow(files: MessageFiles, state: State) -> tuple[State, int]:
            time.sleep(1.5)
            return written(files, state)

        monkeypatch.setattr(MessageFiles, "write_more", slow)
        assert "still indexing" in notice_of(memory)


@pytest.mark.slow(but=["hybrid-embed-qmd pull", "vector---version-qmd doctor"])
@pytest.mark.parametrize(
    ("mode", "command", "advice"),
    [
        ("keyword", "--version", DOCTOR),
        ("vector", "--version", DOCTOR),
        ("hybrid", "--version", DOCTOR),
        ("vector", "collection", DOCTOR),
        ("hybrid", "collection", DOCTOR),
        ("keyword", "query", DOCTOR),
        ("hybrid", "query", MODELS),
        ("hybrid", "embed", MODELS),
        ("vector", "vsearch", MODELS),
    ],
)
def test_the_advice_is_about_the_command_that_hung(
    folder: Path, qmd: FakeQmd, mode: RecallMode, command: str, advice: str
) -> None:
    qmd.hang(command)
    with searched_by_qmd(folder, timeout=1) as memory:
        notice = notice_of(memory, mode)
        assert f"qmd {command} did not answer within 1 s" in notice
        assert advice in notice
        assert ({MODELS, DOCTOR} - {advice}).pop() not in notice


def test_what_hangs_without_a_model_is_left_alone_in_every_mode(folder: Path, qmd: FakeQmd) -> None:
    qmd.hang("--version")
    with searched_by_qmd(folder, timeout=1) as memory:
        assert "--version did not answer" in notice_of(memory, "hybrid")
        asked = len(qmd.calls)
        assert "not used" in notice_of(memory, "keyword")
        assert len(qmd.calls) == asked
