"""The recall index on a real log: what is found, what filters let through, and who may follow at once."""

import multiprocessing
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import refold
from refold.application.ports.recall_index import Filters
from refold.application.ports.stemmer import stem_with
from refold.application.recall.tokens import tokens_of
from refold.domain.events import MessageAppended
from refold.domain.messages import Block, Message, Role
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.recall import recall_index as folding
from refold.infrastructure.recall.recall_index import SQLiteRecallIndex
from refold.infrastructure.recall.stemmer import SNOWBALL
from tests.support.fake_recall import MemoryIndex
from tests.support.hostile_texts import ALL, LIVE

START = datetime(2026, 5, 7, 9, tzinfo=UTC)
CALL: Block = {"type": "tool_use", "id": "c1", "name": "bash", "input": {"cmd": "cat port.txt"}}
RESULT: Block = {"type": "tool_result", "tool_use_id": "c1", "content": "port 5433"}


def write(log: SQLiteLog, thread_id: str, *said: tuple[Role, str | tuple[Block, ...]]) -> None:
    """A minute between two messages."""
    known = log.load(thread_id).state.length
    events = [
        MessageAppended(
            position=known + n,
            message_id=f"{thread_id}-{known + n}",
            message=Message(role=role, content=content),
            tokens=1,
            written_at=START + timedelta(minutes=known + n),
        )
        for n, (role, content) in enumerate(said)
    ]
    log.transact(thread_id, lambda _: events, at=START)


def users(texts: Iterable[str]) -> list[tuple[Role, str]]:
    return [("user", text) for text in texts]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SQLiteLog]:
    with closing(SQLiteLog(tmp_path / "agent.db")) as opened:
        write(
            opened,
            "t",
            ("user", "Which port does postgres use?"),
            ("assistant", ({"type": "text", "text": "I look at the port."}, CALL)),
            ("user", (RESULT,)),
            ("assistant", "Postgres listens on port 5433."),
            ("user", "And the weather?"),
        )
        write(opened, "u", ("user", "Another port, 8080, of another conversation"))
        yield opened


@pytest.fixture
def index(log: SQLiteLog, tmp_path: Path) -> Iterator[SQLiteRecallIndex]:
    with closing(SQLiteRecallIndex(tmp_path / "agent.recall.db", log)) as opened:
        yield opened


def places(index: SQLiteRecallIndex, asked: str, filters: Filters) -> list[tuple[str, int, int]]:
    found = index.find(tokens_of(asked), filters)
    return sorted((p.thread_id, p.position, p.part) for p in found.candidates)


def test_what_has_more_of_the_words_and_rarer_ones_comes_first(index: SQLiteRecallIndex) -> None:
    found = index.find(tokens_of("postgres port 5433"), Filters(thread_id="t"))
    assert [p.position for p in found.candidates][:2] == [3, 2]
    both = index.find(tokens_of("postgres port"), Filters(thread_id="t"))
    assert [p.position for p in both.candidates] == [3, 0, 2, 1, 1]
    assert found.total == 7
    assert found.frequencies == {"postgr": 2, "port": 6, "5433": 2}


def test_messages_beside_the_candidates_come_with_them(index: SQLiteRecallIndex) -> None:
    found = index.find(tokens_of("5433"), Filters(thread_id="t"))
    assert {p.position for p in found.candidates} == {2, 3}
    assert set(found.neighbours) == {("t", 1), ("t", 2), ("t", 3), ("t", 4)}
    assert [p.kind for p in found.neighbours["t", 1]] == ["text", "call"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), [("t", 0, 0), ("t", 1, 0), ("t", 1, 1), ("t", 2, 0), ("t", 3, 0), ("u", 0, 0)]),
        (Filters(thread_id="u"), [("u", 0, 0)]),
        (Filters(thread_id="nobody"), []),
        (Filters(roles=frozenset({"user"})), [("t", 0, 0), ("u", 0, 0)]),
        (
            Filters(roles=frozenset({"tool", "assistant"}), positions=(2, 9)),
            [("t", 2, 0), ("t", 3, 0)],
        ),
        (Filters(kinds=frozenset({"call", "result"})), [("t", 1, 1), ("t", 2, 0)]),
        (Filters(tools=frozenset({"bash"})), [("t", 1, 1), ("t", 2, 0)]),
        (Filters(tools=frozenset({"read"})), []),
        (Filters(thread_id="t", since="2026-05-07T09:02:00.000000Z"), [("t", 2, 0), ("t", 3, 0)]),
        (Filters(thread_id="t", until="2026-05-07T09:01:00.000000Z"), [("t", 0, 0)]),
        (Filters(thread_id="t", leave_out=frozenset({0, 1})), [("t", 2, 0), ("t", 3, 0)]),
    ],
)
def test_filters_let_through_what_they_say(
    index: SQLiteRecallIndex, filters: Filters, expected: list[tuple[str, int, int]]
) -> None:
    assert places(index, "port", filters) == expected


def test_a_strict_filter_finds_what_stands_far_behind(
    log: SQLiteLog, index: SQLiteRecallIndex
) -> None:
    write(log, "long", *(users(f"port number {n}" for n in range(300))))
    found = index.find(["port"], Filters(thread_id="long", positions=(0, 3)), limit=5)
    assert [p.position for p in found.candidates] == [2, 1, 0]
    assert len(index.find(["port"], Filters(thread_id="long"), limit=5).candidates) == 5


def test_passages_are_added_by_number_as_far_as_the_filters_let_them_through(
    index: SQLiteRecallIndex,
) -> None:
    every = {(p.thread_id, p.position): p.number for p in index.passages()}
    weather, other = every["t", 4], every["u", 0]
    found = index.find(["5433"], Filters(thread_id="t"), also=[weather, other, weather, 999])
    assert [p.position for p in found.candidates][-1] == 4
    assert len(found.candidates) == 3
    assert [p.number for p in index.find([], Filters(), also=[other]).candidates] == [other]
    assert index.find([], Filters()).candidates == []


def test_all_passages_are_handed_out_in_their_order(index: SQLiteRecallIndex) -> None:
    every = index.passages()
    numbers = [p.number for p in every]
    assert len(set(numbers)) == 7
    assert numbers == sorted(numbers)
    assert index.passages(numbers[1], 3) == every[2:5]
    assert [p.thread_id for p in index.passages(filters=Filters(thread_id="u"))] == ["u"]
    assert index.passages(numbers[6]) == []


def test_what_was_said_since_is_found_by_the_next_question(
    log: SQLiteLog, index: SQLiteRecallIndex
) -> None:
    assert places(index, "kangaroo", Filters()) == []
    write(log, "t", ("user", "A kangaroo."))
    assert places(index, "kangaroo", Filters()) == [("t", 5, 0)]
    assert list(index.check()) == []
    write(log, "t", ("assistant", "Indeed."))
    assert list(index.check()) == []


def test_an_append_does_not_touch_the_file(log: SQLiteLog, tmp_path: Path) -> None:
    with closing(SQLiteRecallIndex(tmp_path / "agent.recall.db", log)):
        write(log, "t", ("user", "hello"))
        assert not (tmp_path / "agent.recall.db").exists()


def test_a_result_far_behind_its_call_knows_the_tool(
    log: SQLiteLog, index: SQLiteRecallIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two batches, and between two questions."""
    monkeypatch.setattr(folding, "BATCH", 2)
    call: Block = {"type": "tool_use", "id": "c2", "name": "deploy", "input": {}}
    result: Block = {"type": "tool_result", "tool_use_id": "c2", "content": "kangaroo"}
    write(log, "t", ("assistant", (call,)), *users(["wait"] * 5))
    index.passages()
    write(log, "t", ("user", (result,)))
    (found,) = index.find(["kangaroo"]).candidates
    assert found.tool == "deploy"


def test_hostile_texts_are_found_like_others_and_break_nothing(tmp_path: Path) -> None:
    with refold.open(tmp_path / "agent.db") as memory:
        memory.conversation("../t'; --").append(LIVE)
        core = memory._core  # pyright: ignore[reportPrivateUsage]
        plain = MemoryIndex(core.log)
        assert core.recall.index.passages() == plain.passages()
        for asked in (ALL, *ALL.split()):
            tokens = tokens_of(asked)
            found = core.recall.index.find(tokens, limit=10_000)
            expected = plain.find(tokens, limit=10_000)
            assert {p.number for p in found.candidates} == {p.number for p in expected.candidates}
            assert found.frequencies == expected.frequencies
        assert memory.verify().ok


@pytest.mark.parametrize(
    "token", ['"', 'a" OR "b', "*", "thread", "NEAR", "-", "a\x00b", "\ud83d", ""]
)
def test_a_token_that_is_none_finds_nothing_and_raises_nothing(
    index: SQLiteRecallIndex, token: str
) -> None:
    assert index.find([token]).candidates == []


def _ask(folder: str, rebuild: bool, found: "multiprocessing.Queue[int]") -> None:
    stem_with(SNOWBALL)  # As ``refold.open`` does in a process of its own.
    with (
        closing(SQLiteLog(Path(folder) / "agent.db")) as log,
        closing(SQLiteRecallIndex(Path(folder) / "agent.recall.db", log)) as index,
    ):
        if rebuild:
            index.rebuild()
        found.put(len(index.find(["hello"], limit=5_000).candidates))


@pytest.mark.slow
def test_processes_that_catch_up_and_rebuild_at_once_see_the_same(
    log: SQLiteLog, index: SQLiteRecallIndex, tmp_path: Path
) -> None:
    for _ in range(20):
        write(log, "t", *users(["hello"] * 50))
    context = multiprocessing.get_context("spawn")
    found: multiprocessing.Queue[int] = context.Queue()
    workers = [
        context.Process(target=_ask, args=(str(tmp_path), rebuild, found))
        for rebuild in (False, True, False)
    ]
    for worker in workers:
        worker.start()
    for _ in range(5):
        assert len(index.find(["hello"], limit=5_000).candidates) == 1_000
    assert [found.get(timeout=60) for _ in workers] == [1_000] * 3
    for worker in workers:
        worker.join()
    assert list(index.check()) == []


def test_threads_that_catch_up_at_once_see_the_same(log: SQLiteLog, tmp_path: Path) -> None:
    for n in range(100):
        write(log, f"t{n % 5}", ("user", "hello"), ("assistant", "world"))
    path = tmp_path / "agent.recall.db"
    with closing(SQLiteRecallIndex(path, log)) as one, closing(SQLiteRecallIndex(path, log)) as two:
        answers: list[object] = []

        def ask(index: SQLiteRecallIndex) -> None:
            answers.append(index.find(["hello"], limit=999))

        workers = [threading.Thread(target=ask, args=(i,)) for i in (one, two, one, two)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(answers) == 4
        assert all(answer == answers[0] for answer in answers)


def test_what_is_erased_is_gone_from_the_files_at_once_and_never_found(tmp_path: Path) -> None:
    """Not by those either that have an index of their own in memory, or had the file open."""
    with (
        refold.open(tmp_path / "agent.db") as memory,
        closing(SQLiteLog(tmp_path / "agent.db")) as log,
        closing(SQLiteRecallIndex(":memory:", log)) as apart,
        closing(SQLiteRecallIndex(tmp_path / "agent.recall.db", log)) as beside,
    ):
        conversation = memory.conversation("t")
        conversation.append([{"role": "user", "content": f"word{n} kangaroo"} for n in range(3)])
        before = apart.edition()
        for index in (apart, beside):
            assert len(index.find(["kangaroo"]).candidates) == 3
        assert b" word1 " in (tmp_path / "agent.recall.db").read_bytes()
        report = conversation.erase(1)
        assert "recall index" in {one.place for one in report.removed}
        assert not any(b"word1" in path.read_bytes() for path in tmp_path.iterdir())
        for index in (apart, beside):
            assert [p.position for p in index.find(["kangaroo"]).candidates] == [2, 0]
            assert index.find(["word1"]).frequencies == {}
            assert index.edition() != before
        memory.erase_conversation("t")
        for index in (apart, beside):
            assert index.find(["kangaroo"]).candidates == []
        assert not any(b"kangaroo" in path.read_bytes() for path in tmp_path.iterdir())


def test_the_index_of_an_encrypted_log_never_touches_the_disk(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    path = tmp_path / "agent.db"
    with refold.open(path) as memory:
        memory.conversation("t").append({"role": "user", "content": "plain kangaroo"})
        assert memory.search("kangaroo")
    assert (tmp_path / "agent.recall.db").exists()
    path.unlink()
    (tmp_path / "agent.db.anchor").unlink()
    with refold.open(path, encryption_key=b"k" * 32) as memory:
        assert not (tmp_path / "agent.recall.db").exists()
        memory.conversation("t").append({"role": "user", "content": "sealed kangaroo"})
        assert [hit.text for hit in memory.search("kangaroo")] == ["sealed kangaroo"]
        assert not any("recall.db" in p.name and p.suffix != ".lock" for p in tmp_path.iterdir())
