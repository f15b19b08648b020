"""Search by QMD: what it is given, how it is asked, and what happens where it fails or hangs."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from refold.application.api.memory import Memory
from refold.application.runtime.memory_settings import RecallMode
from tests.support.fake_qmd import FakeQmd, is_gone, places, say, searched_by_qmd

KEY = "ab" * 32


@pytest.fixture
def memory(folder: Path, qmd: FakeQmd) -> Iterator[Memory]:
    """A memory that asks it, with two conversations."""
    del qmd
    with searched_by_qmd(folder) as made:
        yield made


def notice_of(memory: Memory) -> str:
    """What is said where the built-in search had to step in, which it did."""
    found = memory.conversation("ports").recall("postgres")
    assert found[0].position == 0
    assert found[0].why != ("found by qmd",)
    assert found.notice is not None
    return found.notice


def test_the_program_finds_messages_of_one_conversation_only(memory: Memory) -> None:
    assert places(memory, "postgres") == [0]
    assert sorted(places(memory, "redis or postgres?")) == [0, 1]
    assert {hit.thread_id for hit in memory.search("postgres", mode="keyword")} == {
        "ports",
        "others",
    }


def test_what_is_said_later_is_handed_over_when_it_is_asked_for(
    memory: Memory, qmd: FakeQmd
) -> None:
    assert places(memory, "kafka") == []
    say(memory.conversation("ports"), "Kafka is on 9092.")
    assert places(memory, "kafka") == [2]
    assert places(memory, "kafka 9092") == [2]
    assert qmd.commands() == ["--version", "collection", "query", "update", "query", "query"]


@pytest.mark.slow(
    but=[
        "keyword---index other postgres",
        "keyword-expand: postgres; $(touch hacked) `touch hacked`",
    ]
)
@pytest.mark.parametrize(
    "question",
    [
        "-n 100 postgres",
        "--index other postgres",
        "lex: postgres\nvec: redis",
        'postgres" NOT "x',
        "expand: postgres; $(touch hacked) `touch hacked`",
        "postgres\0\r\n\ud800",
        "postgres " * 50_000,
    ],
)
@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
def test_a_question_is_one_argument_and_nothing_in_it_is_an_order(
    memory: Memory, qmd: FakeQmd, folder: Path, question: str, mode: RecallMode
) -> None:
    assert 0 in places(memory, question, mode)
    *options, separator, asked = qmd.calls[-1]
    assert separator == "--"
    assert set(options) < {
        "query",
        "vsearch",
        "--no-rerank",
        "-n50",
        "-n500",
        "--min-score=-1",
        "--json",
    }
    assert "\0" not in asked
    assert not list(folder.rglob("hacked"))
    if mode == "vector":
        assert "\n" not in asked
        return
    lines = asked.split("\n")
    assert all(line.startswith(("lex: ", "vec: ")) for line in lines)
    words = [line.split()[1:] for line in lines if line.startswith("lex: ")]
    assert all(re.fullmatch(r'"[^\W_]+"', word) for line in words for word in line)


@pytest.mark.parametrize("question", ["", "  ", "???", "\0", '"', "-"])
def test_a_question_without_words_asks_nobody(memory: Memory, qmd: FakeQmd, question: str) -> None:
    assert len(memory.conversation("ports").recall(question)) == 0
    assert qmd.calls == []


def test_search_by_meaning_makes_vectors_first_and_once(memory: Memory, qmd: FakeQmd) -> None:
    assert places(memory, "which port", mode="vector") == [0, 1]
    assert places(memory, "which port", mode="vector") == [0, 1]
    assert qmd.commands().count("embed") == 1


def test_scores_of_zero_as_in_small_collections_keep_their_order(memory: Memory) -> None:
    found = memory.conversation("ports").recall("anything", mode="vector")
    assert [hit.score for hit in found] == [1.0, 0.5]


def test_an_absent_program_is_named_and_the_built_in_search_answers(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with searched_by_qmd(folder) as memory:
        assert "npm install -g @tobilu/qmd" in notice_of(memory)
    assert not (folder / "agent.qmd").exists()


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ({"version": "print('qmd 2.0.1'); sys.exit()"}, "2.8 or newer is needed"),
        ({"version": "print('quick mail daemon'); sys.exit()"}, "is that QMD?"),
        ({"query": "os.kill(os.getpid(), 11)"}, "needs Node 22"),
        ({"query": "print('no such table', file=sys.stderr); sys.exit(1)"}, "no such table"),
        ({"query": "print('Searching...'); sys.exit()"}, "no JSON array"),
        ({"query": "print('[1, 2'); sys.exit()"}, "no JSON array"),
        ({"query": "print('[1]'); sys.exit()"}, "no JSON array of hits"),
        ({"query": "print('{}'); sys.exit()"}, "no JSON array"),
        ({"collection": "sys.exit('disk full')"}, "disk full"),
    ],
)
def test_a_program_that_fails_says_what_to_do_and_the_built_in_search_answers(
    memory: Memory, qmd: FakeQmd, behaviour: dict[str, str], said: str
) -> None:
    qmd.behave(**behaviour)
    assert said in notice_of(memory)
    qmd.behave()
    assert places(memory, "postgres") == [0]


def test_hits_that_are_no_messages_of_ours_are_left_out(memory: Memory, qmd: FakeQmd) -> None:
    foreign = '[{"file": "qmd://notes/today.md", "score": 1}, {"file": "../../etc/passwd"}]'
    qmd.behave(query=f"print({foreign!r}); sys.exit()")
    assert places(memory, "postgres") == []


@pytest.mark.parametrize("command", ["--version", "query"])
def test_a_program_that_hangs_is_ended_with_all_that_it_started(
    folder: Path, qmd: FakeQmd, command: str
) -> None:
    child = qmd.hang(command)
    with searched_by_qmd(folder, timeout=1) as memory:
        began = time.monotonic()
        assert "within 1 s" in notice_of(memory)
        assert time.monotonic() - began < 8
        assert is_gone(int(child.read_text()))
        asked = len(qmd.calls)
        assert "not used for" in notice_of(memory)
        assert len(qmd.calls) == asked


@pytest.mark.slow
def test_a_hanging_model_does_not_stop_search_by_words(folder: Path, qmd: FakeQmd) -> None:
    child = qmd.hang("embed")
    with searched_by_qmd(folder, timeout=2) as memory:
        found = memory.conversation("ports").recall("postgres", mode="hybrid")
        assert "qmd embed did not answer" in str(found.notice)
        assert "qmd pull" in str(found.notice)
        assert is_gone(int(child.read_text()))
        assert places(memory, "postgres") == [0]


@pytest.mark.slow
def test_a_program_that_never_stops_talking_is_ended(folder: Path, qmd: FakeQmd) -> None:
    qmd.behave(query="while True: print('[' * 1_000_000)")
    with searched_by_qmd(folder, timeout=2) as memory:
        assert "within 2 s" in notice_of(memory)


@pytest.mark.slow
def test_a_child_that_keeps_the_output_open_is_ended(folder: Path, qmd: FakeQmd) -> None:
    child = qmd.folder / "child.pid"
    script = f"c = subprocess.Popen(['sleep', '600']); Path({str(child)!r}).write_text(str(c.pid)); sys.exit()"
    qmd.behave(query=script)
    with searched_by_qmd(folder, timeout=2) as memory:
        assert "within 2 s" in notice_of(memory)
        assert is_gone(int(child.read_text()))
