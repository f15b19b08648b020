"""Pages of the sorted list of conversations: their order, their rows, and the work that they take."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.application.api.memory import Memory
from refold.application.api.memory_lists import ORDERS
from refold.application.ports.read_models import ConversationOrder, ConversationRow
from refold.domain.errors import InvalidOwner, InvalidSetting
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.projection_store import row_checksums, view_answers, view_folds
from refold.infrastructure.projection_store.read_models import SQLiteViews
from tests.support.view_events import Scribe

from .test_views import ACTS, Act, play


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SQLiteLog]:
    with closing(SQLiteLog(tmp_path / "agent.db")) as opened:
        yield opened


@pytest.fixture
def views(log: SQLiteLog, tmp_path: Path) -> Iterator[SQLiteViews]:
    with closing(SQLiteViews(tmp_path / "agent.views.db", log)) as opened:
        yield opened


def say(memory: Memory, thread_id: str, words: str, owner: str | None = None) -> None:
    memory.conversation(thread_id, owner=owner).append({"role": "user", "content": words})


def ids(memory: Memory, order: ConversationOrder = "activity", **how: Any) -> list[str]:
    return [row.thread_id for row in memory.conversations_page(order=order, **how).rows]


def test_a_page_is_a_part_of_the_list(memory: Memory) -> None:
    for number in range(5):
        say(memory, f"t{number}", "hello " * (number + 1))
    every, page = memory.conversations(), memory.conversations_page(1, 2)
    names = set(ConversationRow.model_fields)
    assert [row.model_dump(include=names) for row in page.rows] == [
        row.model_dump() for row in every[1:3]
    ]
    assert page.count == 5
    assert memory.conversations_page(5).rows == ()


def test_every_order_has_its_reason(log: SQLiteLog, views: SQLiteViews) -> None:
    scribe = Scribe(log)
    scribe.say("old", "one")
    scribe.say("compacted", "one", "two", "three")
    scribe.compact("compacted")
    scribe.compact("compacted")
    scribe.fail("compacted")
    scribe.say("failed", *["one"] * 9)
    scribe.fail("failed")
    scribe.fail("failed")
    scribe.say("young", "one", "two")
    found = {
        order: [row.thread_id for row in views.conversations_page(0, 9, None, order).rows]
        for order in ORDERS
    }
    assert found == {
        "activity": ["young", "failed", "compacted", "old"],
        "messages": ["failed", "compacted", "young", "old"],
        "size": ["failed", "compacted", "young", "old"],
        "age": ["old", "compacted", "failed", "young"],
        "compactions": ["compacted", "young", "failed", "old"],
        "failures": ["failed", "compacted", "young", "old"],
        "compacted": ["failed", "compacted", "young", "old"],
    }


@given(acts=st.lists(ACTS, max_size=20), order=st.sampled_from(ORDERS))
def test_a_page_counts_the_attempts_that_the_conversation_lists(
    acts: list[Act], order: ConversationOrder
) -> None:
    with closing(SQLiteLog(":memory:")) as log, closing(SQLiteViews(":memory:", log)) as views:
        play(Scribe(log), acts, views)
        for row in views.conversations_page(0, 100, None, order).rows:
            tried = views.compactions(row.thread_id)
            assert row.failures == sum(one.outcome == "failed" for one in tried)
            newest = tried[-1] if tried else None
            assert row.attempted_at == (newest.ended_at if newest else None)
            assert row.outcome == (newest.outcome if newest else None)
            assert row.reason == (newest.reason if newest else None)


def test_a_page_of_an_owner_has_only_what_is_theirs(memory: Memory) -> None:
    say(memory, "a", "hello", "ann")
    say(memory, "b", "hello", "bob")
    say(memory, "c", "hello")
    assert ids(memory, owner="ann") == ["a"]
    assert memory.conversations_page(owner="ann").count == 1
    assert memory.conversations_page().count == 3


def test_erased_conversations_and_earlier_uses_of_an_id_are_left_out(memory: Memory) -> None:
    say(memory, "a", "hello")
    say(memory, "b", "hello")
    memory.erase_conversation("a")
    assert (ids(memory), memory.conversations_page().count) == (["b"], 1)
    say(memory, "a", "hello again")
    assert (sorted(ids(memory)), memory.conversations_page().count) == (["a", "b"], 2)


def test_a_conversation_without_content_has_no_size(memory: Memory) -> None:
    say(memory, "large", "hello " * 100)
    say(memory, "small", "hello")
    memory.conversation("large").erase(0)
    assert ids(memory, "size") == ["small", "large"]


def test_a_fork_names_its_source(memory: Memory) -> None:
    say(memory, "a", "hello")
    memory.conversation("a").fork(thread_id="b")
    sources = {row.thread_id: row.forked_from for row in memory.conversations_page().rows}
    assert sources == {"a": None, "b": "a"}


def test_invalid_pages_are_refused(memory: Memory) -> None:
    cases: tuple[dict[str, Any], ...] = (
        {"start": -1},
        {"start": 1 << 63},
        {"count": 0},
        {"count": 1_001},
        {"order": "newest"},
    )
    for invalid in cases:
        with pytest.raises(InvalidSetting, match=next(iter(invalid))):
            memory.conversations_page(**invalid)
    with pytest.raises(InvalidOwner):
        memory.conversations_page(owner="")
    assert get_args(ConversationOrder) == ORDERS


@pytest.mark.parametrize("order", ORDERS)
def test_the_rows_that_are_read_do_not_grow_with_the_list(
    order: ConversationOrder, log: SQLiteLog, views: SQLiteViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[str]()

    def opened(table: str, row: Any) -> Any:
        read.append(table)
        return row_checksums.open_row(table, row)

    for module in (view_answers, view_folds):
        monkeypatch.setattr(module, "open_row", opened)
    scribe, counts = Scribe(log), set[int]()
    for number in range(120):
        scribe.say(f"t{number}", "hello")
        scribe.fail(f"t{number}")
        if number in (20, 119):
            views.conversations_page(0, 10, None, order)
            read.clear()
            assert views.conversations_page(0, 10, None, order).count == number + 1
            counts.add(len(read))
    assert counts == {30}


def test_the_list_of_an_owner_reads_the_rows_of_that_owner_alone(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []

    def opened(table: str, row: Any) -> Any:
        read.append(row)
        return row_checksums.open_row(table, row)

    for n in range(60):
        say(memory, f"t{n}", "hello", "ada" if n % 20 == 0 else "ben")
    wanted = [row for row in memory.conversations() if row.owner == "ada"]
    assert memory.conversations(owner="ada") == wanted
    monkeypatch.setattr(view_answers, "open_row", opened)
    assert memory.conversations(owner="ada") == wanted
    assert len(read) == len(wanted) == 3


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE conversations SET label = 'changed' WHERE thread_id = 't'",
        "DELETE FROM conversations WHERE thread_id = 'u'",
        "UPDATE compactions SET outcome = 'performed' WHERE attempt_id = 'a4'",
        "DELETE FROM compactions WHERE attempt_id = 'a2'",
        "UPDATE compactions SET thread_id = 'u' WHERE attempt_id = 'a2'",
        "DELETE FROM compactions",
        "DELETE FROM compactions; DELETE FROM tallies WHERE projection = 'compactions'",
    ],
)
def test_damage_of_a_row_is_repaired_from_the_log(
    damage: str, log: SQLiteLog, views: SQLiteViews, tmp_path: Path
) -> None:
    scribe = Scribe(log)
    scribe.say("t", "one")
    scribe.fail("t")
    scribe.fail("t")
    scribe.say("u", "two")
    scribe.fail("u")
    page = views.conversations_page(0, 9, None, "failures")
    assert [row.failures for row in page.rows] == [2, 1]
    with closing(sqlite3.connect(tmp_path / "agent.views.db")) as connection, connection:
        connection.executescript(damage)
    assert views.conversations_page(0, 9, None, "failures") == page
